"""What tests of schedules begin with: an agent that answers from a script, and orders of alice's."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import LazySettings

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from harness.content import Text
from harness.events import UserMessage
from harness.ids import new_id
from providers.scripted import Script, registered
from schedules.actions.orders import create_order
from schedules.drafts import Draft
from schedules.models import StandingOrder
from tests.conversations.conftest import MakeAgent, environment, make_agent

__all__ = ["environment", "make_agent"]

MONDAY = datetime(2028, 5, 1, 6, 0, tzinfo=UTC)
"""When the tests' orders are made, unless a test says otherwise."""

MakeOrder = Callable[..., StandingOrder]


def said(text: str) -> UserMessage:
    return UserMessage(content=(Text(text=text),))


@pytest.fixture
def scripted(make_agent: MakeAgent) -> Iterator[Callable[..., Agent]]:
    with ExitStack() as scripts:

        def make(script: Script = (), **config: Any) -> Agent:
            name = new_id("script")
            scripts.enter_context(registered(name, script))
            return make_agent(name, provider="scripted", model=name, **config)

        yield make


@pytest.fixture
def agent(scripted: Callable[..., Agent]) -> Agent:
    return scripted()


@pytest.fixture
def draft(agent: Agent, environment: Environment) -> Draft:
    return Draft(
        name="Morning look",
        agent=agent,
        environment=environment,
        messages=(said("Look at the news."),),
        cron="0 9 * * *",
    )


@pytest.fixture
def make_order(alice: User, acme: Organisation, draft: Draft) -> MakeOrder:
    def make(*, now: datetime = MONDAY, **fields: Any) -> StandingOrder:
        return create_order(actor=alice, organisation=acme, draft=replace(draft, **fields), now=now)

    return make


@contextmanager
def smtp_refuses(settings: LazySettings) -> Iterator[None]:
    """A mail server that takes no connection."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = closed.getsockname()
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        yield
