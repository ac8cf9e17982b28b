"""What the schema says is what is answered: generated requests as alice and as mallory.

The short form runs with the tests and asks a quarter of the operations, others with each commit
(`tests.parts`); `make contract-api` (CONTRACT_EXAMPLES) asks all of them, and many times more.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.parts import chosen_part

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "5"))
"""Generated requests for each operation and person."""
PARTS = 1 if "CONTRACT_EXAMPLES" in os.environ else 4
"""One operation of so many is asked."""
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SECRET = "alice-only-0f3c"
ASKING = [{"id": "m1", "role": "user", "content": "What do you remember?"}]
"""What mallory says to a thread that she guessed at `/agui`."""


@pytest.fixture(scope="module")
def belongings(program, service) -> dict[str, str]:
    """What of alice's mallory may guess the address of."""
    alice = program("alice")
    service.expect(f"Remember {SECRET}", f"I remember {SECRET}.")
    uid = alice.begin(system_prompt=SECRET)
    alice.upload([("secret.txt", SECRET.encode())], conversation_id=uid)
    with alice.chat(uid) as chat:
        chat.ask(f"Remember {SECRET}")
    return {"uid": uid, "path": "secret.txt", "conversation_id": uid}


@pytest.fixture(scope="module")
def schema(site, program) -> Any:
    raw = json.loads(program("alice").get("/api/schema/", format="json").raw)
    raw["paths"] = {
        path: item
        for path, item in raw["paths"].items()
        if path.startswith("/api/") or path in {"/health", "/agui"}
    }
    found = schemathesis.openapi.from_dict(raw)
    found.config.update(base_url=site.address)
    return found


@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_no_answer_is_a_fault_or_outside_the_schema(who, schema, cast, belongings):
    """No 5xx, no response the schema does not describe, and nothing of alice's for mallory."""
    headers = {"Authorization": f"Bearer {cast[who]['secret']}"}
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 20
    for operation in operations[chosen_part("CONTRACT_PART", PARTS) :: PARTS]:

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
            if who == "mallory":
                # Half of her guesses are right: she knows the ids of everything.
                for part in (case.path_parameters, case.query):
                    for name, value in belongings.items():
                        if part and name in part:
                            part[name] = value
                if isinstance(case.body, dict) and "threadId" in case.body:
                    case.body |= {"threadId": belongings["uid"], "messages": ASKING}
            answer = case.call(headers=headers)
            case.validate_response(answer, checks=CHECKS)
            if who == "mallory":
                assert SECRET not in answer.text, f"{case.method} {case.path} shows it"
                assert belongings["uid"] not in answer.text.replace(answer.request.url, "")

        one()
