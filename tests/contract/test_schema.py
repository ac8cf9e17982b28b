"""What OpenAPI says of `/v1` is what is answered: generated requests as alice and as mallory.

The short form runs with the tests and asks a quarter of the operations, others with each commit
(`tests.parts`); `make contract-api` (CONTRACT_EXAMPLES) asks all of them, and many times more.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

import httpx2 as httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.parts import chosen_part

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "4"))
"""Generated requests for each operation and person."""
PARTS = 1 if "CONTRACT_EXAMPLES" in os.environ else 4
"""One operation of so many is asked."""
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDLESS = ("v1_sessions_events_stream", "v1_sessions_threads_stream")
"""Operations whose answer does not end; tests of their own follow them."""


@pytest.fixture(scope="module")
def belongings(world) -> dict[str, str]:
    """What of alice's mallory may guess the address of."""
    alice = world.client()
    agent = alice.beta.agents.create(name=f"Secret {uuid.uuid4()}", model="demo")
    session = alice.beta.sessions.create(
        agent=agent.id, environment_id=world.environment, title="Secret"
    )
    vault = alice.beta.vaults.create(display_name="Secret")
    file = alice.beta.files.upload(file=("secret.txt", b"secret"))
    text = f"---\nname: secret-{uuid.uuid4().hex}\ndescription: Secret.\n---\nSecret."
    skill = alice.beta.skills.create(files=[("SKILL.md", text.encode())])
    deployment = alice.beta.deployments.create(
        name="Secret",
        agent=agent.id,
        environment_id=world.environment,
        initial_events=[{"type": "user.message", "content": [{"type": "text", "text": "Secret"}]}],
    )
    run = alice.beta.deployments.run(deployment.id)
    return {
        "deployments": deployment.id,
        "deployment_runs": run.id,
        "memory_stores": alice.beta.memory_stores.create(name="Secret").id,
        "skills": skill.id,
        "agents": agent.id,
        "sessions": session.id,
        "files": file.id,
        "vaults": vault.id,
        "environments": world.environment,
    }


@pytest.fixture(scope="module")
def schema(world) -> Any:
    headers = {"x-api-key": world.tokens["alice"]}
    answer = httpx.get(f"{world.address}/api/schema/?format=json", headers=headers, timeout=60)
    raw = answer.json()
    raw["paths"] = {
        path: {
            method: operation
            for method, operation in item.items()
            if operation.get("operationId") not in ENDLESS
        }
        for path, item in raw["paths"].items()
        if path.startswith("/v1/")
    }
    found = schemathesis.openapi.from_dict(raw)
    found.config.update(base_url=world.address)
    return found


@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_no_answer_is_a_fault_or_outside_the_schema(who, schema, world, belongings):
    """No 5xx, no answer that the document does not describe, and nothing of alice's for mallory."""
    headers = {"Authorization": f"Bearer {world.tokens[who]}"}
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 20
    for operation in operations[chosen_part("CONTRACT_PART", PARTS) :: PARTS]:
        _try(operation, headers, belongings, is_mallory=who == "mallory")


def _try(operation: Any, headers: Any, belongings: dict[str, str], *, is_mallory: bool) -> None:
    kind = operation.path.split("/")[2]

    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES < 50,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any) -> None:
        named = "uid" in (case.path_parameters or {})
        # The id of something real: else nearly all generated requests would end at 404.
        if named and case.method != "DELETE":
            case.path_parameters["uid"] = belongings[kind]
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS)
        if is_mallory and named:
            # The environment is the whole server's.
            shared = kind == "environments" and case.method == "GET"
            assert answer.status_code >= 400 or shared, f"{case.method} {case.path}"

    one()
