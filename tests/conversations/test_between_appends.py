"""Whatever an outsider does between any two appends of a run, the conversation comes to its end: nothing
runs unallowed or twice, no accepted answer goes unheeded, and page, queue and doors ask the same.

A part of the moments is tried, another one with BETWEEN_SEED; `make between` tries them all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.actions.conversations import create_conversation
from conversations.models import Event
from harness.events import SpanModelRequestStart
from harness.ids import new_id
from providers.scripted import registered
from spending.actions.budgets import set_budget
from spending.models import Budget
from tests.approvals.asking import a_reviewer
from tests.conversations.conftest import MakeAgent, types
from workers.actions.keys import create_key

from .between import family
from .between.moments import WHEN, Moments, When
from .between.people import World, acts_in, process_dies
from .between.scenarios import SCENARIOS, Scenario, ran, requests, tools
from .between.trial import Point, play

pytestmark = pytest.mark.django_db(transaction=True)

TRIALS = os.environ.get("BETWEEN", "1")
"""Of each scenario: so many with one act and as many with two, or `all` with one."""
SEED = os.environ.get("BETWEEN_SEED", "1")

Begin = Callable[[], World]


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch, settings) -> Moments:
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 0
    monkeypatch.setattr("conversations.kits.all_tools", tools)
    watched = Moments()
    watched.watch(monkeypatch)
    return watched


@pytest.fixture
def begin(
    scenario: Scenario, alice: User, staff: User, acme: Organisation, make_agent: MakeAgent
) -> Iterator[Begin]:
    """Another conversation of the scenario, of which nothing has been said."""
    rita, otto, name = a_reviewer(acme), a_reviewer(acme, "otto"), new_id("script")
    agent = make_agent(name, provider="scripted", model=name, **scenario.config)

    def one() -> World:
        ran.clear()
        requests.clear()
        environment, key = Environment.objects.create(name=new_id("env")), None
        if scenario.on_workers:
            environment.backend = Environment.Backend.WORKER
            environment.save()
            key = create_key(actor=staff, environment=environment, name="one").key
        conversation = create_conversation(
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=environment,
            features=dict(scenario.features),
        )
        world = World(conversation, alice, rita, otto, staff, key)
        if scenario.capped:
            _cap(world)
        return world

    with registered(name, scenario.script):
        yield one


def _cap(world: World) -> None:
    """Room for what a first request reserves, and not for a second one beside what that cost."""
    begun = Event.objects.filter(type="span.model_request_start").order_by("pk").first()
    start = begun.value if begun is not None else None
    room = 10**6
    if isinstance(start, SpanModelRequestStart):
        room = start.prompt_tokens_at_most + (start.output_tokens_at_most or 0)
    set_budget(
        actor=world.staff,
        scope=Budget.Scope.CONVERSATION,
        conversation=world.conversation,
        unit="tokens",
        period="total",
        limit=room,
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name.replace(" ", "_"))
def test_whatever_outsiders_do_between_two_appends(
    scenario: Scenario, begin: Begin, moments: Moments
) -> None:
    for _ in range(1 + scenario.capped):  # the first tells the second how large a request is
        world = begin()
        assert not tried([], scenario, world, moments)
    assert scenario.reaches in types(world.conversation)
    points = [
        Point(append, when, act)
        for append in range(1, moments.appends + 1)
        for when in WHEN
        for act in acts_in(scenario)
    ]
    trials = [[point] for point in points]
    if TRIALS != "all":
        chance = random.Random(SEED)
        trials = chance.sample(trials, int(TRIALS))
        trials += [chance.sample(points, 2) for _ in range(int(TRIALS))]
    failed = [said for trial in trials if (said := tried(trial, scenario, begin(), moments))]
    assert not failed, "\n".join([f"{len(failed)} of {len(trials)}", *failed])


def tried(points: Sequence[Point], scenario: Scenario, world: World, moments: Moments) -> str:
    """What went wrong, with the log; empty: nothing did."""
    moments.arm(
        {(each.append, each.when): partial(attempted, each, world) for each in points},
        behind=scenario.dies_behind,
        then=partial(process_dies, world),
    )
    problems = play(scenario, world)
    if not problems:
        return ""
    log = " ".join(types(world.conversation))
    return f"{', '.join(map(str, points))}: {problems}\n  {log}"


def attempted(point: Point, world: World) -> None:
    world.attempt(point.act)


@pytest.mark.parametrize("background", [False, True], ids=["waited_for", "background"])
def test_whatever_outsiders_do_to_a_lead_and_its_subagent(
    background: bool,
    alice: User,
    staff: User,
    acme: Organisation,
    make_agent: MakeAgent,
    moments: Moments,
) -> None:
    rita, name = a_reviewer(acme), new_id("script")
    agent = make_agent(name, provider="scripted", model=name)
    environment = Environment.objects.create(name=name)

    def begun() -> World:
        ran.clear()
        conversation = create_conversation(
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=environment,
            features={"teams": True, "approval": True},
        )
        return World(conversation, alice, rita, rita, staff)

    def played(*deeds: tuple[tuple[int, When], family.Deed]) -> str:
        world = begun()
        moments.arm({place: partial(deed.do, world) for place, deed in deeds})
        if not (problems := family.play_family(world)):
            return ""
        said = ", ".join(f"{deed} {when} append {at}" for (at, when), deed in deeds)
        return f"{said}: {problems}\n  {' '.join(types(world.conversation))}"

    with registered(name, partial(family.script, background)):
        assert not played()
        places = [(at, when) for at in range(1, moments.appends + 1) for when in WHEN]
        points = [(place, deed) for place in places for deed in family.DEEDS]
        trials = [(point,) for point in points]
        if TRIALS != "all":
            chance = random.Random(SEED)
            trials = chance.sample(trials, (int(TRIALS) + 1) // 2)
        failed = [said for trial in trials if (said := played(*trial))]
    assert not failed, "\n".join([f"{len(failed)} of {len(trials)}", *failed])
