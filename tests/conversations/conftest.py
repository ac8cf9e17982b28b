"""What tests of conversations use: an agent that plays a script, conversations with it, an engine
that is still when a test ends."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from django.db import connection

from accounts.models import Organisation, User
from agents.models import Agent, AgentVersion, Environment
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.ids import new_id
from jobs.engine import engine, where
from providers.scripted import Script, Scripted, registered
from tests import patience
from tests.patience import PATIENCE

MakeAgent = Callable[..., Agent]
Converse = Callable[..., tuple[Conversation, Scripted]]


@pytest.fixture
def environment(db) -> Environment:
    return Environment.objects.create(name="Own workspace")


@pytest.fixture
def make_agent(db) -> MakeAgent:
    def make(name: str = "Scripted", *, organisation: Organisation | None = None, **config: Any):
        agent = Agent.objects.create(name=name, organisation=organisation)
        stored = AgentConfig(**config).model_dump(mode="json")
        agent.current = AgentVersion.objects.create(agent=agent, number=1, stored_config=stored)
        agent.save(update_fields=["current"])
        return agent

    return make


@pytest.fixture
def converse(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Iterator[Converse]:
    """Alice's conversation with an agent that plays the given script, and the script as it plays."""
    with ExitStack() as open_scripts:

        def begin(script: Script = (), *, features: dict[str, bool] | None = None, **config: Any):
            name = new_id("script")
            scripted = open_scripts.enter_context(registered(name, script))
            agent = make_agent(name, provider="scripted", model=name, **config)
            conversation = create_conversation(
                actor=alice,
                organisation=acme,
                agent=agent,
                environment=environment,
                features=features,
            )
            return conversation, scripted

        yield begin


def until(holds: Callable[[], Any]) -> Any:
    """Wait for something that another thread brings about; its value, or an assertion error that says
    where all of them stand."""
    return patience.until(holds, explain=_stacks)


def _stacks() -> str:
    """Where every thread stands, and every task of the engine: what a rare stall leaves to read."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    threads = [
        f"--- {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame, limit=8))}"
        for ident, frame in sys._current_frames().items()
    ]
    tasks: list[str] = []

    async def look() -> None:
        tasks.append(where(asyncio.all_tasks()))

    engine.submit(look).result(PATIENCE)
    return "\n".join([*threads, *tasks, f"draining: {engine.draining}"])


TYPES = f"SELECT type FROM {Event._meta.db_table} WHERE conversation_id = %s ORDER BY seq"


def types(conversation: Conversation) -> list[str]:
    """In plain SQL: whoever waits asks this a hundred times a second."""
    with connection.cursor() as cursor:
        cursor.execute(TYPES, [conversation.pk])
        return [kind for (kind,) in cursor.fetchall()]


def rested(conversation: Conversation, times: int = 1) -> Conversation:
    """Wait until the conversation came to rest so often, and nothing holds it."""
    until(
        lambda: (
            types(conversation).count("session.status_idle") >= times
            and not conversation.runs.filter(state="running").exists()
        )
    )
    conversation.refresh_from_db()
    return conversation


def still() -> None:
    """Wait until everything that was started in this process has ended."""
    engine.submit(partial(engine.settle, PATIENCE)).result()
