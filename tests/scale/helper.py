"""A process of the deployment that does what it is told: one JSON call a line in, one answer a line out.

Only so do tests reach the deployment's database, with its settings, beside their own.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.scale.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from accounts.actions.organisations import create_organisation  # noqa: E402
from accounts.models import User  # noqa: E402
from agents.models import Agent, AgentVersion, Environment  # noqa: E402
from agentsite import startup  # noqa: E402
from conversations.actions import messages  # noqa: E402
from conversations.actions.conversations import create_conversation  # noqa: E402
from conversations.models import Conversation, Run  # noqa: E402
from conversations.wakes import wake  # noqa: E402
from harness.agentconfig import AgentConfig  # noqa: E402
from harness.content import text_of  # noqa: E402


def migrate() -> int:
    return startup.migrate()


def world(conversations: int) -> dict[str, Any]:
    """Alice, signed in, with an agent that asks the loopback service, and conversations."""
    alice = User.objects.filter(username="alice").first()
    if alice is None:
        alice = User.objects.create_user("alice", "alice@example.org", "secret")
        create_organisation(actor=alice, name="Acme")
    agent = Agent.objects.create(name=f"Counter {Agent.objects.count()}")
    config = AgentConfig(provider="anthropic", model="m").model_dump(mode="json")
    agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config=config)
    agent.save(update_fields=["current"])
    environment, _ = Environment.objects.get_or_create(name="Own workspace")
    made = [
        create_conversation(
            actor=alice,
            organisation=alice.memberships.get().organisation,
            agent=agent,
            environment=environment,
        )
        for _ in range(conversations)
    ]
    client = Client()
    client.force_login(alice)
    return {
        "cookie": f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}",
        "conversations": [conversation.uid for conversation in made],
    }


def post(uid: str, text: str) -> str:
    conversation = Conversation.objects.get(uid=uid)
    return messages.post_message(actor=conversation.owner, conversation=conversation, text=text).uid


def stop(uid: str) -> bool:
    conversation = Conversation.objects.get(uid=uid)
    return messages.stop(actor=conversation.owner, conversation=conversation) is not None


def wake_often(uid: str, times: int) -> None:
    pk = Conversation.objects.get(uid=uid).pk

    def one(_number: int) -> None:
        wake(pk)
        connection.close()

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(one, range(times)))


def running() -> dict[str, int]:
    """How many runs each process holds, by the `name` of its `Member`."""
    held = Counter(Run.objects.filter(state="running").values_list("worker", flat=True))
    return {f":{worker.split(':')[1]}:": number for worker, number in held.items()}


def facts(uid: str) -> dict[str, Any]:
    conversation = Conversation.objects.get(uid=uid)
    rows = list(conversation.events.order_by("seq"))
    return {
        "status": conversation.status,
        "stop_reason": conversation.stop_reason,
        "queued": conversation.queued_count,
        "seqs": [row.seq for row in rows],
        "types": [row.type for row in rows],
        "times": [row.created_at.timestamp() for row in rows],
        "by_run": [row.run_id for row in rows],
        "posted": [row.uid for row in rows if row.type == "user.message"],
        "taken": [
            uid for row in rows if row.type == "x.input_taken" for uid in row.value.event_ids
        ],
        "texts": [text_of(row.value.content) for row in rows if row.type == "agent.message"],
        "runs": [
            {"id": run.pk, "state": run.state, "worker": run.worker, "error": run.error}
            for run in conversation.runs.order_by("id")
        ],
    }


CALLS: dict[str, Callable[..., Any]] = {
    call.__name__: call for call in (migrate, world, post, stop, wake_often, running, facts)
}

if __name__ == "__main__":
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"value": CALLS[name](*arguments)}
        except Exception as problem:
            answer = {"problem": f"{type(problem).__name__}: {problem}"}
        finally:
            connection.close()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
