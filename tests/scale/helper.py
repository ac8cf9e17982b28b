"""A process of the deployment that does what it is told: one JSON call a line in, one answer a line out.

Only so do tests reach the deployment's database, with its settings, beside their own.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.scale.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import Count  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts.actions.organisations import create_organisation  # noqa: E402
from accounts.models import User  # noqa: E402
from agents.models import Agent, AgentVersion, Environment  # noqa: E402
from agentsite import startup  # noqa: E402
from conversations.actions import messages  # noqa: E402
from conversations.actions.conversations import create_conversation  # noqa: E402
from conversations.models import Conversation, Event, Run  # noqa: E402
from conversations.wakes import wake  # noqa: E402
from harness.agentconfig import AgentConfig, McpUse, ToolRule  # noqa: E402
from harness.content import Text, text_of  # noqa: E402
from harness.events import UserMessage  # noqa: E402
from mcpservers.actions.servers import add_server  # noqa: E402
from mcpservers.models import McpServer  # noqa: E402
from schedules.actions.orders import create_order  # noqa: E402
from schedules.drafts import Draft  # noqa: E402
from schedules.models import OrderRun, StandingOrder  # noqa: E402
from workers.actions.keys import create_key  # noqa: E402


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


def traced_world(mcp: str) -> dict[str, Any]:
    """A conversation of alice's, with subagents and the MCP server at this address, in an environment whose
    tools workers carry out."""
    world(0)
    alice = User.objects.get(username="alice")
    acme = alice.memberships.get().organisation
    staff = User.objects.create_superuser("traced", "traced@example.org", "secret")
    environment = Environment.objects.create(name="Traced", backend=Environment.Backend.WORKER)
    add_server(
        actor=alice,
        organisation=acme,
        scope=McpServer.Scope.ORGANISATION,
        name="stand-in",
        url=mcp,
    )
    config = AgentConfig(
        provider="anthropic",
        model="m",
        tools=(ToolRule(tool="*"), ToolRule(tool="mcp:stand-in:*")),
        mcp_servers=(McpUse(name="stand-in"),),
    )
    agent = Agent.objects.create(name="Traced")
    stored = config.model_dump(mode="json")
    agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config=stored)
    agent.save(update_fields=["current"])
    made = create_conversation(
        actor=alice,
        organisation=acme,
        agent=agent,
        environment=environment,
        features={"teams": True},
    )
    key = create_key(actor=staff, environment=environment, name="traced").secret
    return {"uid": made.uid, "environment": environment.uid, "key": key}


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


def schedules(count: int, seconds: int, seed: int) -> dict[str, Any]:
    """So many schedules of alice's: each with five dates within so many seconds from now, half of them with
    each minute beside."""
    world(0)
    alice = User.objects.get(username="alice")
    chance, now = random.Random(seed), timezone.now().replace(microsecond=0)
    until = now + timedelta(seconds=seconds)
    minutes = {(now + timedelta(seconds=each)).minute for each in range(60, seconds, 60)}
    each_minute = f"{','.join(str(minute) for minute in sorted(minutes))} * * * *"
    agent, environment = Agent.objects.latest("pk"), Environment.objects.get(name="Own workspace")
    for number in range(count):
        places = sorted(chance.sample(range(30, seconds), 5))
        draft = Draft(
            name=f"Order {number}",
            agent=agent,
            environment=environment,
            messages=(UserMessage(content=(Text(text="Hello"),)),),
            dates=tuple(now + timedelta(seconds=place) for place in places),
            cron=each_minute if number % 2 else "",
            missed=StandingOrder.Missed.ALL,
            most_missed=100,
            overlap=StandingOrder.Overlap.QUEUE,
            failures_to_pause=0,
        )
        organisation = alice.memberships.get().organisation
        create_order(actor=alice, organisation=organisation, draft=draft, now=now)
    return {"now": now.isoformat(), "until": until.isoformat()}


def schedule_facts(until: str) -> dict[str, Any]:
    """What was due up to then, by the timetables themselves, against what became of it."""
    end = datetime.fromisoformat(until)
    due: set[tuple[int, datetime]] = set()
    for order in StandingOrder.objects.all():
        made = order.created_at.replace(microsecond=0)
        expected = itertools.takewhile(lambda at: at <= end, order.timing.after(made))
        due |= {(order.pk, at) for at in expected if at > order.created_at}
    runs = OrderRun.objects.filter(due_at__lte=end)
    rows = list(runs.exclude(state="skipped").values_list("order", "due_at"))
    begun = runs.exclude(started_at=None)
    late = [run.started_at - run.due_at for run in begun if run.due_at and run.started_at]
    said = Event.objects.filter(conversation__in=begun.values("conversation"), type="user.message")
    settled = runs.filter(is_settled=True).exclude(ended_at=None)
    twice = said.values("conversation").annotate(count=Count("id")).filter(count__gt=1)
    # Begun, and then begun again under another conversation.
    begun_as = OrderRun.objects.exclude(conversation=None).values("conversation")
    of_no_run = Conversation.objects.exclude(pk__in=begun_as).count()
    return {
        "due": len(due),
        "lost": len(due - set(rows)),
        "doubled": len(rows) - len(set(rows)) + of_no_run,
        # What fell due while its order was being stored may have begun as well.
        "open": len(due - set(settled.values_list("order", "due_at"))),
        "states": dict(Counter(runs.values_list("state", flat=True))),
        "said_twice": twice.count(),
        "latest": max(late, default=timedelta()).total_seconds(),
    }


CALLS: dict[str, Callable[..., Any]] = {
    call.__name__: call
    for call in (
        migrate,
        world,
        traced_world,
        post,
        stop,
        wake_often,
        running,
        facts,
        schedules,
        schedule_facts,
    )
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
