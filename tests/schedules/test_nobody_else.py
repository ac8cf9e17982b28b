"""Every door and every action of schedules, queues, runs, results, timers, briefs and browsers is its owner's
alone: to a colleague and to a stranger nothing of hers is there, and nothing of it changes.

Doors are found by their addresses and actions by their module, so that a new one is tried as well.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.core import serializers
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from brief.compiling import compile_brief
from brief.models import Brief
from conversations.actions import wakes
from conversations.actions.outcomes import define_outcome
from conversations.log import append
from conversations.models import Conversation, Wake
from harness.errors import NotFound
from harness.events import WakeRequested
from harness.history import Entry
from notices.models import Device
from schedules.actions import items, orders, results, runs
from schedules.drafts import draft_of
from schedules.models import Delivery, OrderRun, QueueItem, StandingOrder
from tests.architecture.routes import page_routes
from tests.cast import ClientOf

from .conftest import MakeOrder

pytestmark = pytest.mark.django_db

SCOPES = (TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE)
OURS = (
    "schedules/<",
    "timers/<",
    "brief/<",
    "settings/notifications/browsers/<",
    "api/schedules/<",
    "api/briefs/<",
    "v1/deployments/<",
    "v1/deployment_runs/<",
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
KEPT = (StandingOrder, OrderRun, QueueItem, Delivery, Wake, Brief, Device, Conversation)


@pytest.fixture
def order(make_order: MakeOrder, alice: User, acme: Organisation) -> StandingOrder:
    """A schedule of alice's with all that one can have, a sleeping conversation, a brief and a browser."""
    made = make_order(works_queue=True)
    items.add_item(actor=alice, order=made, text="My secret")
    run = OrderRun.objects.create(
        order=made, agent_version=made.agent_version, trigger="manual", state="failed"
    )
    Delivery.objects.create(run=run, way="mail", user=alice, state="failed", why="refused")
    conversation = Conversation.objects.create(
        organisation=acme,
        owner=alice,
        agent_version=made.agent_version,
        environment=made.environment,
        title="My secret",
    )
    append(conversation.pk, [Entry.of(WakeRequested(delay_seconds=600, reason="My secret"))])
    now = timezone.now()
    Brief.objects.create(
        user=alice,
        organisation=acme,
        due_at=now,
        since=now - timedelta(days=1),
        until=now,
        stored_contents=compile_brief(alice, acme, since=now, until=now).model_dump(mode="json"),
    )
    Device.objects.create(user=alice, endpoint="https://push.example/1", name="Her browser")
    return made


def addresses(order: StandingOrder) -> Iterator[str]:
    """Of each door of ours that names something: filled in with what is alice's."""
    run, wake = order.runs.get(), Wake.objects.get()
    named = {
        "v1/deployment_runs/": run.uid,
        "api/briefs/": Brief.objects.get().uid,
        "brief/": Brief.objects.get().uid,
        "settings/": Device.objects.get().uid,
    }
    parts = {"delivery_uid": run.deliveries.get().uid, "item_uid": order.items.get().uid}
    for route in page_routes():
        if not route.pattern.startswith(OURS):
            continue
        if route.name == "timers:change":
            yield route.address({"kind": "wake", "key": wake.pk})
            yield route.address({"kind": "schedule", "key": order.uid})
            continue
        uid = next((uid for start, uid in named.items() if route.pattern.startswith(start)), "")
        yield route.address({"uid": uid or order.uid, **parts})


def kept() -> str:
    return "".join(serializers.serialize("json", model.objects.order_by("pk")) for model in KEPT)


def test_whatever_door_a_colleague_or_a_stranger_tries_nothing_of_hers_is_there(
    client_of: ClientOf,
    alice: User,
    bob: User,
    mallory: User,
    acme: Organisation,
    elsewhere: Organisation,
    order: StandingOrder,
) -> None:
    before, tried = kept(), 0
    for person, place in ((bob, acme), (mallory, elsewhere)):
        token = create_token(actor=person, organisation=place, name="Tests", scopes=SCOPES)
        program = Client(headers={"x-api-key": token.secret, "anthropic-version": "2023-06-01"})
        browser = client_of(person)
        for address in addresses(order):
            is_door = address.startswith(("/api/", "/v1/"))
            client = program if is_door else browser
            body = {} if "/v1/" in address else {"act": "cancel", "text": "Mine", "name": "Mine"}
            for method in METHODS:
                if not is_door and method == "POST":
                    answer = client.post(address, body)
                else:
                    answer = client.generic(
                        method, address, json.dumps(body), content_type="application/json"
                    )
                assert answer.status_code in {404, 405}, (method, address, answer.content[:300])
                assert b"My secret" not in answer.content
                tried += answer.status_code == 404
    assert tried > 80
    assert kept() == before


def test_the_same_doors_are_open_to_her(
    client_of: ClientOf, alice: User, acme: Organisation, order: StandingOrder
) -> None:
    """Or the test above would pass with addresses that lead nowhere."""
    token = create_token(actor=alice, organisation=acme, name="Tests", scopes=SCOPES)
    program = Client(headers={"x-api-key": token.secret, "anthropic-version": "2023-06-01"})
    browser = client_of(alice)
    shut = []
    for address in addresses(order):
        client = program if address.startswith(("/api/", "/v1/")) else browser
        answer = client.get(address)
        if answer.status_code == 404:
            shut.append(address)
    # The file of a result that was mailed.
    assert shut == [
        reverse(
            "schedules:result",
            kwargs={"uid": order.uid, "delivery_uid": order.runs.get().deliveries.get().uid},
        )
    ]


def actions_of(*modules: ModuleType) -> dict[str, Any]:
    return {
        f"{module.__name__}.{name}": act
        for module in modules
        for name, act in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and act.__module__ == module.__name__
    }


def test_no_action_finds_what_is_anothers(
    alice: User, bob: User, mallory: User, acme: Organisation, order: StandingOrder
) -> None:
    draft = draft_of(order)
    given: dict[str, Any] = {
        "order": order,
        "item": order.items.get(),
        "delivery": order.runs.get().deliveries.get(),
        "draft": draft,
        "text": "Mine",
        "by": timedelta(hours=1),
        "wake": Wake.objects.get(),
        "conversation": Conversation.objects.get(),
        "description": "Mine",
        "rubric": "- mine",
        "organisation": acme,
    }
    before = kept()
    acts = actions_of(orders, items, results, runs, wakes)
    del acts["schedules.actions.items.add_follow_up"]  # a run's own, by its conversation
    del acts["conversations.actions.wakes.cancel_wake"]  # staff's
    acts["define_outcome"] = define_outcome
    # What is nobody's yet is refused to a stranger alone.
    making = {"schedules.actions.orders.create_order"}
    assert making < acts.keys()
    for name, act in acts.items():
        wanted = {
            key: given[key]
            for key, parameter in inspect.signature(act).parameters.items()
            if key in given and parameter.default is inspect.Parameter.empty
        }
        for other in (mallory,) if name in making else (bob, mallory):
            with pytest.raises(NotFound):
                act(actor=other, **wanted)
    assert kept() == before
