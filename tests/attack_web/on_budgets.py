"""Attacks on budgets: many organisations, robots and conversations at once, and limits raised by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db.models import F, Sum

from accounts.actions.organisations import create_organisation
from accounts.models import Organisation, Role, User
from conversations.models import Conversation
from harness.messages import Usage as Tokens
from providers.scripted import Hold, reply, say
from spending.actions.budgets import remove_budget, set_budget
from spending.models import Budget, BudgetPeriod
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.world import World

SUBJECT = "budgets"
ANSWER = "The answer of the model."
ROOM = 2
"""Calls that a budget has room for here."""


def _calls(conversations: Sequence[Conversation]) -> int:
    """Calls of the model that were made for them."""
    rows = Conversation.objects.filter(pk__in=[one.pk for one in conversations])
    return rows.filter(events__type="span.model_request_start").count()


def _need(world: World, agent: Any, owner: User, home: Organisation) -> int:
    """Tokens that a first call of this agent holds back."""
    probe = world.converse(owner, organisation=home, agent=agent)
    world.turn(world.token_of(owner, home), probe, reply(ANSWER))
    world.rested(probe)
    start = probe.events.get(type="span.model_request_start").payload
    return int(start["prompt_tokens_at_most"]) + int(start["output_tokens_at_most"])


@contextmanager
def _budget(world: World, need: int, **terms: Any) -> Iterator[Budget]:
    """Room for `ROOM` calls, beyond what was used before."""
    terms = {"actor": world.staff, "unit": "tokens", "period": "total", **terms}
    budget = set_budget(limit=1, **terms)
    used = BudgetPeriod.objects.filter(budget=budget).aggregate(most=Sum("spent"))["most"] or 0
    budget = set_budget(limit=used + need * ROOM + need // 2, **terms)
    try:
        yield budget
    finally:
        remove_budget(actor=world.staff, budget=budget)


def _spends(world: World, conversation: Conversation, token: str, need: int) -> None:
    """A turn that uses all it may."""
    told = reply(ANSWER, usage=Tokens(input_tokens=need - 1, output_tokens=1))
    idles = [one["type"] for one in world.log(conversation)].count("session.status_idle")
    world.turn(token, conversation, told)
    world.rested(conversation, idles + 1)


def _over(budget: Budget) -> Got:
    periods = BudgetPeriod.objects.filter(budget=budget, limit__lt=F("spent") + F("reserved"))
    if (row := periods.first()) is not None:
        return f"{row.spent} spent and {row.reserved} held back of {row.limit}"
    return ""


def _verdict(budget: Budget, conversations: Sequence[Conversation]) -> Got:
    made = _calls(conversations)
    tried(made, "not one call was made")
    return f"{made} calls where {ROOM} had room" if made > ROOM else _over(budget)


@control(SUBJECT, "a call with room", "a model is asked as long as the budget lasts")
def _room(world: World) -> Got:
    agent = world.agent_of(world.home, world.olga)
    need = _need(world, agent, world.olga, world.home)
    conversation = world.converse(world.olga, organisation=world.home, agent=agent)
    whose = {"scope": Budget.Scope.CONVERSATION, "conversation": conversation}
    with _budget(world, need, **whose) as budget:
        _spends(world, conversation, world.olgas, need)
        spent = BudgetPeriod.objects.get(budget=budget).spent
    answered = ANSWER in str(world.log(conversation))
    return "" if answered and spent == need else f"answered: {answered}, spent {spent} of {need}"


# --- what anybody may make ------------------------------------------------------------------------


@attack(SUBJECT, "many organisations", "one person spends in five organisations of her own")
def _organisations(world: World) -> Got:
    person = world.person()
    homes = [create_organisation(actor=person, name=f"O{number}") for number in range(5)]
    agents = [world.agent_of(home, person) for home in homes]
    need = _need(world, agents[0], person, homes[0])
    made = []
    with _budget(world, need, scope=Budget.Scope.PERSON, user=person) as budget:
        for home, agent in zip(homes, agents, strict=True):
            conversation = world.converse(person, organisation=home, agent=agent)
            made.append(conversation)
            _spends(world, conversation, world.token_of(person, home), need)
        return _verdict(budget, made)


@attack(SUBJECT, "many robots", "one person spends through five service accounts of her own")
def _robots(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    agent = world.agent_of(home, person)
    need = _need(world, agent, person, home)
    made = []
    whose = {"scope": Budget.Scope.USER, "organisation": home, "user": person}
    with _budget(world, need, **whose) as budget:
        for _ in range(5):
            robot = world.robot(person, home)
            token = world.token_of(
                robot, home, "conversations:read", "conversations:write", by=person
            )
            conversation = world.converse(robot, organisation=home, agent=agent)
            made.append(conversation)
            _spends(world, conversation, token, need)
        return _verdict(budget, made)


@attack(SUBJECT, "organisations and robots", "a robot in each of three organisations of one person")
def _both(world: World) -> Got:
    person = world.person()
    made, need = [], 0
    scenes = []
    for number in range(4):
        home = create_organisation(actor=person, name=f"B{number}")
        agent = world.agent_of(home, person)
        need = need or _need(world, agent, person, home)
        robot = world.robot(person, home)
        token = world.token_of(robot, home, "conversations:read", "conversations:write", by=person)
        scenes.append((world.converse(robot, organisation=home, agent=agent), token))
    with _budget(world, need, scope=Budget.Scope.PERSON, user=person) as budget:
        for conversation, token in scenes:
            made.append(conversation)
            _spends(world, conversation, token, need)
        return _verdict(budget, made)


@attack(SUBJECT, "many conversations", "one person begins a new conversation for every call")
def _conversations(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    agent = world.agent_of(home, person)
    need, token = _need(world, agent, person, home), world.token_of(person, home)
    made = []
    with _budget(world, need, scope=Budget.Scope.ORGANISATION, organisation=home) as budget:
        for _ in range(5):
            conversation = world.converse(person, organisation=home, agent=agent)
            made.append(conversation)
            _spends(world, conversation, token, need)
        return _verdict(budget, made)


# --- all at once ----------------------------------------------------------------------------------


def _parallel(world: World, scenes: Sequence[tuple[Conversation, str]], budget: Budget) -> Got:
    """All ask at the same moment, and no call ends before all have asked."""
    holds = []
    threads = []
    for conversation, token in scenes:
        hold = Hold()
        holds.append(hold)
        threads.append(
            threading.Thread(
                target=world.turn, args=(token, conversation, reply(say(hold, ANSWER)))
            )
        )
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    asked = [conversation for conversation, _token in scenes]
    try:
        world.until(
            lambda: (
                _calls(asked)
                + sum("session.status_idle" in {one["type"] for one in world.log(c)} for c in asked)
                >= len(asked)
            ),
            f"they did not all ask: {_calls(asked)}",
        )
        got = _verdict(budget, asked)
    finally:
        for hold in holds:
            hold.release.set()
    for conversation in asked:
        world.rested(conversation)
    return got or _over(budget)


def _at_once(scope: Budget.Scope, world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    agent = world.agent_of(home, person)
    need, token = _need(world, agent, person, home), world.token_of(person, home)
    scenes = [(world.converse(person, organisation=home, agent=agent), token) for _ in range(8)]
    whose: dict[str, Any] = {"scope": scope}
    if scope != Budget.Scope.PERSON:
        whose["organisation"] = home
    if scope != Budget.Scope.ORGANISATION:
        whose["user"] = person
    with _budget(world, need, **whose) as budget:
        return _parallel(world, scenes, budget)


for _scope in (Budget.Scope.ORGANISATION, Budget.Scope.USER, Budget.Scope.PERSON):
    attack(
        SUBJECT,
        f"eight calls at once under the budget of {_scope.label}",
        "calls that are all judged before one of them is counted",
        quick=_scope == Budget.Scope.ORGANISATION,
    )(partial(_at_once, _scope))


@attack(SUBJECT, "robots at once", "six robots of one person ask at the same moment", quick=False)
def _robots_at_once(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    agent = world.agent_of(home, person)
    need = _need(world, agent, person, home)
    scenes = []
    for _ in range(6):
        robot = world.robot(person, home)
        token = world.token_of(robot, home, "conversations:read", "conversations:write", by=person)
        scenes.append((world.converse(robot, organisation=home, agent=agent), token))
    with _budget(world, need, scope=Budget.Scope.PERSON, user=person) as budget:
        return _parallel(world, scenes, budget)


# --- forgetting and raising -----------------------------------------------------------------------


@attack(SUBJECT, "what was spent, deleted", "deletes each conversation once it has spent")
def _deleted(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    agent = world.agent_of(home, person)
    need, token = _need(world, agent, person, home), world.token_of(person, home)
    answered = 0
    with _budget(world, need, scope=Budget.Scope.ORGANISATION, organisation=home) as budget:
        for _ in range(5):
            conversation = world.converse(person, organisation=home, agent=agent)
            _spends(world, conversation, token, need)
            answered += _calls([conversation])
            _delete(world, token, conversation)
        return f"{answered} calls where {ROOM} had room" if answered > ROOM else _over(budget)


def _delete(world: World, token: str, conversation: Conversation) -> None:
    """Its run may still be giving the conversation back when its rest is in the log already."""

    def is_gone() -> bool:
        return world.program(token).delete(f"/v1/sessions/{conversation.uid}").status_code < 300

    world.until(is_gone, "it was not deleted")


@attack(
    SUBJECT, "a call that is cut off", "stops each call in its middle, so that it costs nothing"
)
def _cut(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    agent = world.agent_of(home, person)
    need, token = _need(world, agent, person, home), world.token_of(person, home)
    conversation = world.converse(person, organisation=home, agent=agent)
    with _budget(world, need, scope=Budget.Scope.ORGANISATION, organisation=home) as budget:
        hold = Hold()
        world.turn(token, conversation, reply(say("It begins ", hold, ANSWER)))
        world.until(hold.reached.is_set, "the call did not begin")
        before = BudgetPeriod.objects.get(budget=budget)
        tried(before.reserved, "nothing was held back")
        path = f"/v1/sessions/{conversation.uid}/events"
        world.program(token).post(path, json={"events": [{"type": "user.interrupt"}]})
        world.rested(conversation)
        hold.release.set()
        after = BudgetPeriod.objects.get(budget=budget)
        return "" if after.spent > before.spent else "it cost nothing"


def _raise(who: str, world: World) -> Got:
    """Somebody who may not raises, lifts and replaces every budget that holds her."""
    person = world.member(world.home) if who == "a member" else world.mallory
    conversation = world.converse(
        person if who == "a member" else world.olga,
        organisation=world.home,
        agent=world.agent_of(world.home, world.olga),
    )
    held: tuple[dict[str, Any], ...] = (
        {"scope": Budget.Scope.ORGANISATION, "organisation": world.home},
        {"scope": Budget.Scope.PERSON, "user": person},
        {"scope": Budget.Scope.CONVERSATION, "conversation": conversation},
    )
    budgets = [
        set_budget(actor=world.staff, unit="tokens", period="day", limit=10_000_000, **terms)
        for terms in held
    ]
    before = [(one.limit, one.ceiling) for one in budgets]
    with world.browser(person, world.home if who == "a member" else None) as visitor:
        for limit in ("999999999", "-1", "1e12", "NaN", "Infinity", "10000001"):
            amount = {"unit": "tokens", "period": "day", "limit": limit}
            for scope in (1, 2, 3, 4, 5):
                visitor.form(
                    "/usage/budgets/",
                    **world.shown(world.home, scope=scope, user=person.uid, **amount),
                )
            visitor.form(f"/c/{conversation.uid}/budget/", **amount)
        for one in budgets:
            visitor.form(f"/usage/budgets/{one.uid}/remove/", **world.shown(world.home))
    rows = {one.pk: one for one in Budget.objects.in_force()}
    after = [
        (rows[one.pk].limit, rows[one.pk].ceiling) if one.pk in rows else None for one in budgets
    ]
    for one in budgets:
        if one.pk in rows:
            remove_budget(actor=world.staff, budget=rows[one.pk])
    return "" if after == before else f"{before} became {after}"


for _who in ("a member", "mallory"):
    attack(SUBJECT, f"budgets raised by {_who}", "sets, raises and lifts budgets that hold her")(
        partial(_raise, _who)
    )


@attack(
    SUBJECT,
    "leaving what one made",
    "hands five organisations to a robot of hers and makes five more",
)
def _handed_on(world: World) -> Got:
    """How many one may make must count those one gave away."""
    person, other = world.person(), world.person()
    made = 0
    with world.browser(person) as visitor:
        for number in range(14):
            visitor.form("/organisation/create/", **{"new-name": f"H{number}"})
            home = Organisation.objects.filter(memberships__user=person, name=f"H{number}").first()
            if home is None:
                continue
            made += 1
            home.memberships.create(user=other, role=Role.OWNER)
            own = home.memberships.get(user=person)
            visitor.form(f"/organisation/members/{own.pk}/remove/", **world.shown(home))
    tried(made, "none was made")
    return f"{made} organisations" if made > 10 else ""
