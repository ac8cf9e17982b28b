"""A newer version is given to a share of new conversations, compared, and promoted or rolled back."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import Membership, Role, TokenScope
from agents.actions.agents import archive_agent, change_agent, create_agent, delete_agent
from agents.models import Agent, AgentVersion
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation, delete_conversation
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from deadletters.models import DeadLetter
from evals.actions.canaries import promote_canary, roll_back_canary, set_canary
from evals.actions.releases import need_no_more, release_version, require_suite
from evals.actions.suites import create_suite
from evals.canaries import canary_of, figures
from evals.models import Canary
from harness.agentconfig import AgentConfig
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from keeping.actions.feedback import give_feedback
from spending.models import Usage
from tests.conversations.conftest import rested

from .conftest import spec

pytestmark = pytest.mark.django_db(transaction=True)


def config(instructions: str) -> AgentConfig:
    return AgentConfig(provider="demo", instructions=instructions)


@pytest.fixture
def agent(alice, acme, suite) -> Agent:
    """Its releases need a suite, which nothing was tried by."""
    made: Agent = create_agent(
        actor=alice, organisation=acme, name="Clerk", description="", config=config("Help.")
    )
    require_suite(actor=alice, agent=made, suite=suite, by_script=True)
    return made


@pytest.fixture
def newer(alice, agent) -> AgentVersion:
    return changed(alice, agent, "Help kindly.")


def changed(alice: Any, agent: Agent, instructions: str) -> AgentVersion:
    change_agent(
        actor=alice, agent=agent, name="Clerk", description="", config=config(instructions)
    )
    newest = agent.newest
    assert newest is not None
    return newest


@pytest.fixture
def begin(alice, acme, agent, environment):
    def make(uid: str | None = None, **given: Any) -> Conversation:
        defaults = {"actor": alice, "organisation": acme, "agent": agent, "uid": uid}
        return create_conversation(environment=environment, **{**defaults, **given})

    return make


def fresh(agent: Agent) -> Agent:
    return Agent.objects.select_related("current", "canary").get(pk=agent.pk)


def drawn(agent: Agent, times: int = 1_000) -> list[int]:
    agent = fresh(agent)
    return [agent.drawn_for(f"sesn_{number}").number for number in range(times)]


def uid_of(agent: Agent, number: int) -> str:
    """An id whose conversation begins with the version of that number."""
    ids = (f"sesn_{each}" for each in range(1_000))
    agent = fresh(agent)
    return next(uid for uid in ids if agent.drawn_for(uid).number == number)


def test_a_share_of_new_conversations_begins_with_it_and_keeps_it(
    alice, bob, acme, agent, newer, begin
):
    set_canary(actor=alice, agent=agent, version=newer, share=30, reason="A try.")

    numbers = drawn(agent)
    assert 240 < numbers.count(2) < 360
    assert drawn(agent) == numbers

    # bob makes no versions of it, and is given the canary and its fork all the same.
    with_canary = begin(uid_of(agent, 2), actor=bob)
    without = begin(uid_of(agent, 1), actor=bob)
    post_message(actor=bob, conversation=with_canary, text="Hello")
    rested(with_canary)
    roll_back_canary(actor=alice, agent=agent)

    assert set(drawn(agent)) == {1}
    assert Conversation.objects.get(pk=with_canary.pk).agent_version == newer
    assert Conversation.objects.get(pk=without.pk).agent_version.number == 1
    answer = Event.objects.get(conversation=with_canary, type="agent.message")
    fork = fork_conversation(actor=bob, conversation=with_canary, event_uid=answer.uid)
    assert fork.agent_version == newer


def test_what_names_a_version_or_differs_from_the_agent_keeps_to_the_one_in_use(
    alice, agent, newer, begin
):
    set_canary(actor=alice, agent=agent, version=newer, share=50, reason="A try.")
    uids = [uid for number in range(40) if fresh(agent).drawn_for(uid := f"a{number}") == newer]
    assert len(uids) > 5

    parent = begin(uids[0])
    others = [
        begin(uids[1], version=1),
        begin(uids[2], overrides={"instructions": "Otherwise."}),
        begin(uids[3], unlisted=True),
        begin(uids[4], parent=parent),
    ]

    assert parent.agent_version == newer
    assert [each.agent_version.number for each in others] == [1, 1, 1, 1]


def test_the_gate_lets_one_pass_by_green_suites_or_by_a_person_with_a_reason(
    alice, acme, agent, newer, add_cases, try_it
):
    with pytest.raises(Conflict, match="was not tried"):
        set_canary(actor=alice, agent=agent, version=newer, share=10)
    service = create_service_account(actor=alice, organisation=acme, name="CI")
    Membership.objects.filter(user=service).update(role=Role.ADMIN)
    with pytest.raises(Forbidden):
        set_canary(actor=service, agent=agent, version=newer, share=10, reason="Because.")
    assert not Canary.objects.exists()
    assert AgentVersion.objects.get(pk=newer.pk).draft

    set_canary(actor=alice, agent=agent, version=newer, share=10, reason="A try.")
    with pytest.raises(Conflict, match="was not tried"):
        promote_canary(actor=alice, agent=agent)

    add_cases(spec())
    try_it(version=agent.current)
    try_it(version=newer)
    set_canary(actor=service, agent=agent, version=newer, share=20)
    promote_canary(actor=service, agent=agent)

    assert set(drawn(agent)) == {2}
    told = AuditEntry.objects.filter(action__in=["canary_set", "version_released"]).order_by("id")
    assert [entry.details["not_green"] for entry in told] == [["Manners"], [], []]
    assert told[0].details["reason"] == "A try."
    assert told[2].details["was_canary"]
    assert Canary.objects.get().ended_as == "promoted"


def test_a_reason_counts_for_the_suites_it_was_given_for(alice, acme, agent, newer):
    set_canary(actor=alice, agent=agent, version=newer, share=1, reason="A try.")
    set_canary(actor=alice, agent=agent, version=newer, share=2)
    other = create_suite(actor=alice, organisation=acme, name="Safety")
    require_suite(actor=alice, agent=agent, suite=other)

    with pytest.raises(Conflict, match="Safety"):
        set_canary(actor=alice, agent=agent, version=newer, share=50)

    assert fresh(agent).canary_share == 2


def test_the_one_is_promoted_whose_figures_were_looked_at(alice, agent, newer, client_of, program):
    newest = changed(alice, agent, "Help more.")
    set_canary(actor=alice, agent=agent, version=newest, share=1, reason="A try.")

    page = f"/evals/agents/{agent.uid}/"
    assert f'name="number" value="{newest.number}"' in client_of(alice).get(page).content.decode()
    stale = {"number": newer.number, "reason": "It does well."}
    answer = client_of(alice).post(f"{page}canary/promote/", stale)
    assert answer.status_code == 409
    body = {"version": newer.number, "reason": "It does well."}
    assert program(alice, "POST", body, "/promote").status_code == 409

    assert fresh(agent).current.number == 1
    promote_canary(actor=alice, agent=agent, number=newest.number, reason="It does well.")
    assert fresh(agent).current == newest


@pytest.mark.parametrize("share", [0, 51, -1])
def test_a_share_is_1_to_50_percent(share, alice, agent, newer):
    with pytest.raises(Invalid) as refused:
        set_canary(actor=alice, agent=agent, version=newer, share=share, reason="A try.")
    assert refused.value.field == "share"


def test_one_at_a_time_newer_than_the_one_in_use(alice, agent, newer):
    with pytest.raises(Conflict, match="in use"):
        set_canary(actor=alice, agent=agent, version=agent.current, share=1, reason="A try.")
    set_canary(actor=alice, agent=agent, version=newer, share=50, reason="A try.")
    newest = changed(alice, agent, "Help more.")
    with pytest.raises(Conflict, match="Another version"):
        set_canary(actor=alice, agent=agent, version=newest, share=1, reason="A try.")

    release_version(actor=alice, agent=agent, version=newest, reason="Now.")

    assert Canary.objects.get().ended_as == "replaced"
    assert set(drawn(agent)) == {3}
    with pytest.raises(Conflict, match="older"):
        set_canary(actor=alice, agent=agent, version=newer, share=1, reason="A try.")
    with pytest.raises(Conflict, match="no canary"):
        roll_back_canary(actor=alice, agent=agent)


def test_changes_of_the_agent_wait_while_it_has_one(alice, agent, newer):
    set_canary(actor=alice, agent=agent, version=newer, share=5, reason="A try.")
    need_no_more(actor=alice, requirement=agent.requirements.get())

    changed(alice, fresh(agent), "Help more.")

    assert fresh(agent).current.number == 1
    assert 2 in drawn(agent)


def test_an_agent_with_a_canary_is_put_away_and_deleted_as_any(alice, agent, newer, begin):
    set_canary(actor=alice, agent=agent, version=newer, share=50, reason="A try.")
    conversation = begin(uid_of(agent, 2))
    archive_agent(actor=alice, agent=agent)
    with pytest.raises(Conflict):
        delete_agent(actor=alice, agent=agent)
    delete_conversation(actor=alice, conversation=conversation)
    delete_agent(actor=alice, agent=agent)
    assert not Canary.objects.exists()


def test_what_came_of_both_stands_side_by_side(alice, bob, acme, agent, newer, begin):
    before = begin()
    set_canary(actor=alice, agent=agent, version=newer, share=50, reason="A try.")
    kept, given = begin(uid_of(agent, 1) + "x", version=1), begin(uid_of(agent, 2))
    post_message(actor=alice, conversation=given, text="Hello")
    rested(given)
    answer = Event.objects.get(conversation=given, type="agent.message")
    for rating in ("up", "down"):
        give_feedback(actor=alice, conversation=given, event_uid=answer.uid, rating=rating)
    DeadLetter.objects.create(
        conversation=kept, organisation=acme, code="x", cause="internal", error_seq=1,
        failed_at=kept.created_at,
    )  # fmt: skip
    below = begin(parent=given, actor=alice)
    Usage.objects.all().delete()
    for number, (conversation, cost) in enumerate([(before, "9"), (given, "1"), (below, "0.5")]):
        Usage.objects.create(
            organisation=acme, conversation=conversation, model_request_id=f"r{number}",
            purpose="main", provider="demo", model="demo", cost=Decimal(cost),
        )  # fmt: skip

    canary = canary_of(agent.pk)
    assert canary is not None
    in_use, of_canary = figures(canary)

    assert (in_use.conversations, in_use.failed, in_use.cost) == (1, 1, Decimal(0))
    assert (of_canary.conversations, of_canary.failed, of_canary.cost) == (1, 0, Decimal("1.5"))
    assert (of_canary.good, of_canary.bad) == (0, 1)


def test_an_owner_does_it_on_the_page(alice, client_of, agent, newer):
    client, page = client_of(alice), f"/evals/agents/{agent.uid}/"
    refused = client.post(f"{page}canary/", {"version": 2, "share": 20})
    assert refused.status_code == 409
    assert "was not tried" in refused.content.decode()

    client.post(f"{page}canary/", {"version": 2, "share": 20, "reason": "A try."})
    shown = client.get(page).content.decode()
    assert "20% of new conversations begin with version 2." in shown
    assert "Promote all the same" in shown
    client.post(f"{page}canary/roll-back/")
    assert fresh(agent).canary is None
    assert "No new conversation" in client.get(page).content.decode()

    client.post(f"{page}canary/", {"version": 2, "share": 20, "reason": "Again."})
    assert client.post(f"{page}canary/promote/", {"reason": ""}).status_code == 409
    client.post(f"{page}canary/promote/", {"reason": "It does well."})
    assert fresh(agent).current.number == 2


@pytest.fixture
def program(client, agent):
    """Asks as a person's token does."""

    def ask(person, method, body=None, address=""):
        token = create_token(
            actor=person,
            organisation=person.memberships.get().organisation,
            name="t",
            scopes=[TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE],
        )
        return client.generic(
            method,
            f"/api/agents/{agent.uid}/canary{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"x-api-key": token.secret},
        )

    return ask


def test_a_program_does_it_at_the_api(alice, agent, newer, program):
    assert program(alice, "GET").status_code == 404
    begun = program(alice, "PUT", {"share": 25, "reason": "A try."})
    assert begun.status_code == 200, begun.content
    assert begun.json() == program(alice, "GET").json()
    assert (begun.json()["version"], begun.json()["canary"]["conversations"]) == (2, 0)
    assert program(alice, "PUT", {"share": 60}).status_code == 422
    assert program(alice, "DELETE").status_code == 200
    assert program(alice, "DELETE").status_code == 409
    program(alice, "PUT", {"version": 2, "share": 25, "reason": "A try."})
    promoted = program(alice, "POST", {"reason": "It does well."}, "/promote")
    assert promoted.json() == {"version": 2}


def test_strangers_find_nothing_and_members_may_not(
    alice, bob, mallory, elsewhere, client_of, agent, newer, program
):
    set_canary(actor=alice, agent=agent, version=newer, share=5, reason="A try.")
    for person, error, status in ((mallory, NotFound, 404), (bob, Forbidden, 403)):
        with pytest.raises(error):
            set_canary(actor=person, agent=agent, version=newer, share=50, reason="Mine.")
        with pytest.raises(error):
            promote_canary(actor=person, agent=agent, reason="Mine.")
        with pytest.raises(error):
            roll_back_canary(actor=person, agent=agent)
        client = client_of(person)
        for end in ("canary/", "canary/promote/", "canary/roll-back/"):
            answer = client.post(f"/evals/agents/{agent.uid}/{end}", {"version": 2, "share": 50})
            assert answer.status_code == status
        assert program(person, "GET").status_code == status
        assert program(person, "PUT", {"share": 50}).status_code == status
        assert program(person, "DELETE").status_code == status
        assert program(person, "POST", {}, "/promote").status_code == status
    assert fresh(agent).canary_share == 5
