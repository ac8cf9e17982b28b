"""What tests of notifications begin with: a conversation of alice's that waits or ends, and her browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from approvals.models import Approval
from conversations.log import append
from conversations.models import Conversation
from harness.events import AgentToolUse, EndTurn, RequiresAction, SessionStatusIdle
from harness.history import Entry
from harness.rules import AskTerms
from notices.models import Device
from tests.conversations.conftest import converse, environment, make_agent
from tests.notices.pushservice import PushService

__all__ = ["converse", "environment", "make_agent"]

SITE = "https://agents.example.org"

SignUp = Callable[..., Device]


@pytest.fixture
def conversation(converse, alice) -> Conversation:
    made: Conversation = converse()[0]
    made.title = "Quarterly report"
    made.save(update_fields=["title"])
    return made


@pytest.fixture
def service(settings: LazySettings) -> Iterator[PushService]:
    """A push service on loopback, which the operator lists."""
    settings.AGENTSITE_BASE_URL = SITE
    settings.AGENTSITE_PUSH_SECONDS = 30
    with PushService() as running:
        settings.AGENTSITE_PUSH_PRIVATE_HOSTS = [f"127.0.0.1:{running.port}"]
        yield running


@pytest.fixture
def sign_up(service: PushService) -> SignUp:
    """A browser in which somebody is signed in (`client`) is signed up, as the page's script does it."""

    def subscribe(client: Client, browser: str = "first") -> Device:
        address = "/settings/notifications/browsers/"
        answer = client.post(address, service.browser(browser).subscription)
        assert answer.status_code == 204, answer.content
        return Device.objects.get(endpoint=service.browser(browser).endpoint)

    return subscribe


def ask(conversation: Conversation, *, minutes: float = 6, **terms: bool) -> Approval:
    """A call that has waited for so long."""
    call = Entry.of(
        AgentToolUse(
            name="write_file",
            input={"path": "/secret/place", "content": "secret"},
            evaluated_permission="ask",
            terms=AskTerms(**terms),
            reason="the secret rule",
        )
    )
    rest = SessionStatusIdle(stop_reason=RequiresAction(event_ids=(call.uid,)))
    append(conversation.pk, [call, Entry.of(rest)])
    Approval.objects.filter(call_uid=call.uid).update(
        asked_at=timezone.now() - timedelta(minutes=minutes)
    )
    return Approval.objects.get(call_uid=call.uid)


def end(conversation: Conversation, *, minutes: float = 6) -> None:
    """The agent came to rest so long ago."""
    append(conversation.pk, [Entry.of(SessionStatusIdle(stop_reason=EndTurn()))])
    Conversation.objects.filter(pk=conversation.pk).update(
        active_at=timezone.now() - timedelta(minutes=minutes)
    )
