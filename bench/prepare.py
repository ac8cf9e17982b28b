"""Fills an installation for the bench, in its own environment; a helper process (`bench.commands`).

Writes rows where the product's own doors would take minutes: what is measured is reading them.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import timedelta
from statistics import median
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from asgiref.sync import sync_to_async  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.db.models import Max  # noqa: E402
from django.utils import timezone  # noqa: E402
from rest_framework.renderers import JSONRenderer  # noqa: E402
from rest_framework.serializers import ModelSerializer  # noqa: E402

from accounts.actions.organisations import create_organisation  # noqa: E402
from accounts.actions.tokens import create_token  # noqa: E402
from accounts.models import Organisation, TokenScope, User  # noqa: E402
from agents.models import Agent, AgentVersion, Environment  # noqa: E402
from agentsite.seeding import seed  # noqa: E402
from bench.commands import answer_tasks  # noqa: E402
from conversations.models import Conversation, Event, SearchEntry  # noqa: E402
from harness.agentconfig import AgentConfig, Limits, McpUse  # noqa: E402
from harness.content import Text, as_blocks  # noqa: E402
from harness.events import (  # noqa: E402
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    EndTurn,
    InputTaken,
    ModelUsage,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolEnd,
    SpanToolStart,
    UserMessage,
    dump,
    subject_of,
)
from harness.events import Event as EventValue  # noqa: E402
from harness.ids import new_conversation_id, new_event_id  # noqa: E402
from mcpservers.listing import Described, local_name  # noqa: E402
from mcpservers.models import McpServer, McpTool  # noqa: E402
from schedules.models import OrderRun, StandingOrder  # noqa: E402
from skills_app.folder import read_folder  # noqa: E402
from skills_app.models import Skill, SkillVersion  # noqa: E402
from skills_app.storing import store_version  # noqa: E402
from skillsets.models import SkillSet, UsedSkill  # noqa: E402

MODEL = "claude-bench"
BATCH = 2_000


class Installation:
    def __init__(self) -> None:
        self._user: User | None = None
        self._cookie = ""

    async def perform(self, task: dict[str, Any]) -> dict[str, Any]:
        what = task.pop("what")
        answer: dict[str, Any] = await sync_to_async(getattr(self, what))(**task)
        return answer

    def prepare(self) -> dict[str, Any]:
        """Tables, seeds, a person who is signed in, an agent that asks the stand-in."""
        call_command("migrate", interactive=False, verbosity=0)
        seed()
        self._user = User.objects.create_superuser("bench", "bench@example.org", None)
        self._organisation = create_organisation(actor=self._user, name="Bench")
        limits = Limits(steps=1_000, token_budget=2_000_000_000, context_window=10_000_000)
        config = AgentConfig(provider="anthropic", model=MODEL, limits=limits)
        self._agent = Agent.objects.create(name="Bench")
        self._version = AgentVersion.objects.create(
            agent=self._agent, number=1, stored_config=config.model_dump(mode="json")
        )
        self._agent.current = self._version
        self._agent.save(update_fields=["current"])
        self._environment = Environment.objects.get(seed_name="default")
        self._cookie = self._sign_in(self._user)
        return {"cookie": self._cookie}

    def conversations(self, count: int) -> dict[str, Any]:
        """Empty ones, each as `[uid, cookie]`."""
        rows = [self._conversation(self._user, self._organisation) for _ in range(count)]
        Conversation.objects.bulk_create(rows, batch_size=BATCH)
        return {"conversations": [[row.uid, self._cookie] for row in rows]}

    def with_tools(self, servers: int, tools: int) -> dict[str, Any]:
        """A conversation whose agent uses `tools` tools of so many MCP servers, which nobody connects to."""
        names = [f"bench-{number}" for number in range(servers)]
        if not McpServer.objects.exists():
            for name in names:
                server = McpServer.objects.create(
                    organisation=self._organisation, name=name, url=f"https://{name}.example.org/"
                )
                McpTool.objects.bulk_create(
                    _tool(server, number) for number in range(tools // servers)
                )
        uses = tuple(McpUse(name=name) for name in names)
        config = self._version.config.model_copy(update={"mcp_servers": uses})
        version = AgentVersion.objects.create(
            agent=Agent.objects.create(name="With tools"),
            number=1,
            stored_config=config.model_dump(mode="json"),
        )
        row = self._conversation(self._user, self._organisation)
        row.agent_version = version
        row.save()
        return {"conversations": [[row.uid, self._cookie]]}

    def with_skills(self, count: int) -> dict[str, Any]:
        """A conversation that has so many skills, more than any agent names, and the characters that
        they may take of its prompt."""
        versions = []
        for number in range(count):
            name = f"skill-{number}"
            head = f"---\nname: {name}\ndescription: What is done where work is of kind {number}.\n---\n"
            versions.append(self._skill(name, {"SKILL.md": f"{head}\nDo it.\n".encode()}))
        row = self._taught(versions)
        return {
            "conversations": [[row.uid, self._cookie]],
            "share": settings.AGENTSITE_SKILLS_PROMPT,
        }

    def with_composed_skill(self, count: int) -> dict[str, Any]:
        """Conversations with a skill whose tool calls `think` as often as it is told to."""
        tool = {
            "name": "many",
            "description": "Thinks.",
            "entry": "scripts/many.py:many",
            "input": {"type": "object", "properties": {"times": {"type": "integer"}}},
        }
        source = (
            "from agentsite_skill import call_tool\n\n\ndef many(times):\n"
            "    for _time in range(times):\n        call_tool('think', thought='thinking')\n"
        )
        files = {
            "SKILL.md": b"---\nname: bench\ndescription: Thinks.\n---\n\nThink.\n",
            "agentsite.yaml": json.dumps({"tools": [tool], "calls": ["think"]}).encode(),
            "scripts/many.py": source.encode(),
        }
        version = self._skill("bench", files)
        rows = [self._taught([version]) for _ in range(count)]
        return {"conversations": [[row.uid, self._cookie] for row in rows]}

    def _skill(self, name: str, files: dict[str, bytes]) -> SkillVersion:
        """Of everybody's, once."""
        skill, made = Skill.objects.get_or_create(organisation=None, owner=None, name=name)
        if not made:
            return SkillVersion.objects.get(skill=skill)
        version = store_version(None, skill, read_folder(files))
        SkillVersion.objects.filter(pk=version.pk).update(state=SkillVersion.State.RELEASED)
        skill.stable = skill.latest = version
        skill.save(update_fields=["stable", "latest"])
        return version

    def _taught(self, versions: list[SkillVersion]) -> Conversation:
        row = self._conversation(self._user, self._organisation)
        row.save()
        SkillSet.objects.create(conversation=row, agent_version=self._version)
        UsedSkill.objects.bulk_create(
            UsedSkill(conversation=row, skill_id=each.skill_id, version=each, by=UsedSkill.By.AGENT)
            for each in versions
        )
        return row

    def token(self) -> dict[str, Any]:
        """The secret of a token of that person's, and what she begins sessions with."""
        if self._user is None:
            raise RuntimeError("nothing is prepared")
        issued = create_token(
            actor=self._user,
            organisation=self._organisation,
            name="bench",
            scopes=[TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE],
        )
        return {
            "secret": issued.secret,
            "agent": self._agent.uid,
            "environment": self._environment.uid,
        }

    def no_orders(self) -> dict[str, Any]:
        """None is there any more."""
        StandingOrder.objects.all().delete()
        return {}

    def orders(self, count: int, ahead: float) -> dict[str, Any]:
        """So many schedules, each due once and at the same moment, in `ahead` seconds. What they say has the
        model service answer with five deltas."""
        now = timezone.now()
        due = (now + timedelta(seconds=ahead)).replace(microsecond=0)
        usual: dict[str, Any] = {
            "organisation": self._organisation,
            "owner": self._user,
            "agent_version": self._version,
            "provider": "anthropic",
            "model": MODEL,
            "environment": self._environment,
            "messages": [[{"type": "text", "text": "bench stream 5 50"}]],
            "dates": [due.isoformat()],
            "handled_at": now,
            "next_due_at": due,
            "next_start_at": due,
        }
        rows = [StandingOrder(name=f"Schedule {number}", **usual) for number in range(count)]
        StandingOrder.objects.bulk_create(rows, batch_size=BATCH)
        self._due = due
        return {}

    def orders_begun(self, count: int, patience: float) -> dict[str, Any]:
        """How many of those made last have begun, and how many seconds after their time the last of them
        did."""
        end = time.monotonic() + patience
        runs = OrderRun.objects.filter(due_at=self._due).exclude(started_at=None)
        while runs.count() < count and time.monotonic() < end:
            time.sleep(0.5)
        latest = runs.aggregate(latest=Max("started_at"))["latest"] or self._due
        return {"begun": runs.count(), "latest": (latest - self._due).total_seconds()}

    def history(self, events: int) -> dict[str, Any]:
        """One conversation with a log of `events` events: turns with tools, as the loop writes them."""
        conversation = self._conversation(self._user, self._organisation)
        conversation.title = f"{events} events"
        conversation.save()
        now = timezone.now()
        rows: list[Event] = []
        while len(rows) < events:
            for uid, value in _turn(len(rows)):
                rows.append(
                    Event(
                        conversation=conversation,
                        seq=len(rows) + 1,
                        uid=uid,
                        type=value.type,
                        subject=subject_of(uid, value),
                        payload=dump(value),
                        processed_at=now,
                        created_at=now,
                    )
                )
        Event.objects.bulk_create(rows, batch_size=BATCH)
        conversation.last_seq = len(rows)
        conversation.message_count = len(rows) // 6
        conversation.save(update_fields=["last_seq", "message_count"])
        return {"uid": conversation.uid, "pk": conversation.pk}

    def serialize(self, pk: int) -> dict[str, Any]:
        """Processor seconds of the obvious way: all rows of a log through a DRF serializer."""

        class EventSerializer(ModelSerializer[Event]):
            class Meta:
                model = Event
                fields = ("uid", "seq", "type", "payload", "processed_at", "created_at")

        def whole() -> float:
            before = time.process_time()
            rows = Event.objects.filter(conversation_id=pk).order_by("seq")
            JSONRenderer().render(EventSerializer(rows, many=True).data)
            return time.process_time() - before

        whole()
        return {"seconds": median(whole() for _ in range(3))}

    def crowd(self, count: int) -> dict[str, Any]:
        """A person with `count` conversations, each with a message that can be found."""
        user = User.objects.create_user(f"crowd{count}", f"crowd{count}@example.org", None)
        organisation = create_organisation(actor=user, name=f"Crowd {count}")
        now = timezone.now()
        with transaction.atomic():
            for start in range(0, count, BATCH):
                rows = []
                for number in range(start, min(start + BATCH, count)):
                    row = self._conversation(user, organisation)
                    row.title = f"Conversation {number}"
                    row.active_at = now - timedelta(seconds=number)
                    rows.append(row)
                Conversation.objects.bulk_create(rows)
                SearchEntry.objects.bulk_create(
                    SearchEntry(
                        conversation=row, seq=1, text=f"words about subject{number} of {count}"
                    )
                    for number, row in enumerate(rows, start)
                )
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        return {"cookie": self._sign_in(user), "word": f"subject{count // 2}"}

    def _conversation(self, user: User | None, organisation: Organisation) -> Conversation:
        return Conversation(
            uid=new_conversation_id(),
            organisation=organisation,
            owner=user,
            agent_version=self._version,
            environment=self._environment,
            stored_features=self._version.config.features.model_dump(),
        )

    def _sign_in(self, user: User) -> str:
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        return f"agentsite_session={session.session_key}"


def _tool(server: McpServer, number: int) -> McpTool:
    """One as servers have them: a paragraph, and three arguments."""
    fields = {
        name: {"type": "string", "description": f"The {name} of what is looked for. " * 2}
        for name in ("query", "project", "state")
    }
    said = Described(
        name=f"tool_{number}",
        description=f"Looks for the things of kind {number} by their words. " * 4,
        input_schema={"type": "object", "properties": fields, "required": ["query"]},
    )
    return McpTool(
        server=server,
        remote_name=said.name,
        name=local_name(server.name, said.name),
        state=McpTool.State.RELEASED,
        pinned=said.model_dump(mode="json"),
        digest=said.digest,
    )


def _turn(number: int) -> list[tuple[str, EventValue]]:
    """Twenty events: a message, three calls with their spans, an answer."""
    message, final = new_event_id(), new_event_id()
    made: list[tuple[str, EventValue]] = [
        (message, UserMessage(content=(Text(text=f"Question {number}: what is in the file?"),))),
        (new_event_id(), SessionStatusRunning()),
        (new_event_id(), InputTaken(event_ids=(message,))),
    ]
    for step in range(2):
        request, call = new_event_id(), new_event_id()
        made += [
            (request, SpanModelRequestStart(provider="anthropic", model=MODEL, step=step + 1)),
            (
                call,
                AgentToolUse(name="think", input={"thought": "x" * 100}, model_request_id=request),
            ),
            (new_event_id(), _end(request, "tool_use")),
            (new_event_id(), SpanToolStart(tool_use_id=call, effect="read", idempotent=True)),
            (new_event_id(), SpanToolEnd(tool_use_id=call, milliseconds=1)),
            (new_event_id(), AgentToolResult(tool_use_id=call, content=as_blocks("Noted. " * 20))),
        ]
    made += [
        (final, SpanModelRequestStart(provider="anthropic", model=MODEL, step=4)),
        (
            new_event_id(),
            AgentMessage(content=(Text(text="An answer. " * 30),), model_request_id=final),
        ),
        (new_event_id(), _end(final, "end_turn")),
        (new_event_id(), SessionStatusIdle(stop_reason=EndTurn())),
    ]
    return made


def _end(request: str, end: str) -> SpanModelRequestEnd:
    usage = ModelUsage(input_tokens=100, output_tokens=20)
    return SpanModelRequestEnd(model_request_start_id=request, model_usage=usage, end=end)


if __name__ == "__main__":
    asyncio.run(answer_tasks(Installation().perform))
