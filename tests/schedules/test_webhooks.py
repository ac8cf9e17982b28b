"""What happens to a schedule and to work on an outcome reaches endpoints, and the official
SDK unwraps it under the public names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Agent
from harness.events import UserDefineOutcome
from providers.scripted import reply
from schedules.actions.orders import (
    archive_order,
    change_order,
    delete_order,
    pause_order,
    resume_order,
)
from schedules.actions.runs import run_now
from schedules.drafts import draft_of
from tests.conversations.conftest import rested, still
from tests.webhooks.receiver import Receiver
from tests.webhooks.test_webhooks_delivery import loopback_may_be_reached, subscribe

from .conftest import MakeOrder

__all__ = ["loopback_may_be_reached", "subscribe"]

pytestmark = pytest.mark.django_db(transaction=True)


def unwrapped(receiver: Receiver, secret: str, count: int) -> list[tuple[str, str, str]]:
    """Type, class and subject of what came, as the SDK reads it."""
    still()
    webhooks = anthropic.Anthropic(api_key="unused").beta.webhooks
    found = []
    for request in receiver.wait_for(count):
        data = webhooks.unwrap(request.body, headers=request.headers, key=secret).data
        assert data.model_extra == {}
        found.append((data.type, type(data).__name__, data.id))
    return sorted(found)


def test_each_event_of_a_deployment_and_of_its_runs_is_unwrapped_by_the_sdk(
    alice: User, acme: Organisation, subscribe: Callable[..., Any], make_order: MakeOrder
) -> None:
    with Receiver() as receiver:
        names = ("created", "updated", "paused", "unpaused", "archived", "deleted")
        wanted = [f"deployment.{name}" for name in names]
        wanted += [f"deployment_run.{name}" for name in ("started", "succeeded", "failed")]
        issued = subscribe(receiver, *wanted)
        order = make_order()
        change_order(actor=alice, order=order, draft=replace(draft_of(order), name="Later look"))
        pause_order(actor=alice, order=order)
        resume_order(actor=alice, order=order)
        began = run_now(actor=alice, order=order)
        assert began.conversation is not None
        rested(began.conversation)
        Agent.objects.update(archived_at=timezone.now())
        failed = run_now(actor=alice, order=order)
        archive_order(actor=alice, order=order)
        order.runs.update(state="succeeded")
        delete_order(actor=alice, order=order)

        came = unwrapped(receiver, issued.secret, 10)

    assert sorted({name for name, _kind, _id in came}) == sorted(wanted)
    for name, kind, subject in came:
        words = "".join(part.title() for part in name.replace(".", "_").split("_"))
        assert kind == f"BetaWebhook{words}EventData"
        if name.startswith("deployment."):
            assert subject == order.uid
        else:
            assert subject in {began.uid, failed.uid}


def test_a_judgement_of_a_runs_outcome_is_unwrapped_by_the_sdk(
    alice: User,
    subscribe: Callable[..., Any],
    make_order: MakeOrder,
    scripted: Callable[..., Agent],
) -> None:
    verdict = {"criteria": [{"number": 1, "met": True, "reason": "Seen."}], "summary": "Seen."}
    agent = scripted([reply("Done."), reply(json.dumps(verdict))])
    wanted = UserDefineOutcome(outcome_id="", description="Do it.", rubric="- It is done")
    with Receiver() as receiver:
        issued = subscribe(receiver, "session.outcome_evaluation_ended")
        run = run_now(actor=alice, order=make_order(agent=agent, messages=(), outcome=wanted))
        assert run.conversation is not None
        rested(run.conversation)
        came = unwrapped(receiver, issued.secret, 1)
    assert came == [
        (
            "session.outcome_evaluation_ended",
            "BetaWebhookSessionOutcomeEvaluationEndedEventData",
            run.conversation.uid,
        )
    ]
