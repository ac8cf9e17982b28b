"""Conversations come into being, are named, pinned, put away and deleted."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import Membership, Organisation, User
from agents.models import Agent, Environment
from conversations.actions.conversations import (
    TITLE_LIMIT,
    archive_conversation,
    create_conversation,
    delete_conversation,
    find_agent,
    rename_conversation,
)
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event, Run
from harness.errors import Conflict, Invalid, NotFound
from spending.models import Usage
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, talk
from tools_app.workspace import Workspace, workspace_for


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Coding")


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> Conversation:
    return begin(alice, acme, agent, environment)


def test_a_new_conversation_has_the_agents_current_version_and_every_switch_as_given(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
):
    agent = make_agent("Careful", features={"approval": True, "tracing": True})
    made = create_conversation(
        actor=alice,
        organisation=acme,
        agent=agent,
        environment=environment,
        features={"tracing": False, "teams": True},
    )
    kept = Conversation.objects.get(uid=made.uid)
    assert kept.agent_version == agent.current
    assert kept.features.model_dump() == {
        "approval": True,
        "tracing": False,
        "teams": True,
        "plan_mode": False,
        "memory": True,
    }
    assert (kept.owner, kept.organisation, kept.environment) == (alice, acme, environment)


def test_an_agent_that_is_not_on_offer_is_refused_with_what_is(
    alice: User, acme: Organisation, agent: Agent, make_agent: MakeAgent
):
    with pytest.raises(Invalid) as refused:
        find_agent(actor=alice, organisation=acme, wanted="Nobody")
    assert refused.value.field == "agent"
    assert "Nobody" in refused.value.message
    assert "Coding" in refused.value.hint

    agent.archived_at = timezone.now()
    agent.save(update_fields=["archived_at"])
    with pytest.raises(Invalid, match="Coding"):
        find_agent(actor=alice, organisation=acme, wanted=agent.uid, name=agent.name)


def test_another_organisations_agent_is_not_on_offer_even_to_a_member_of_both(
    alice: User,
    acme: Organisation,
    elsewhere: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
):
    theirs = make_agent("Theirs", organisation=elsewhere)
    Membership.objects.create(user=alice, organisation=elsewhere)
    with pytest.raises(Invalid):
        create_conversation(actor=alice, organisation=acme, agent=theirs, environment=environment)


def test_an_archived_environment_is_refused(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    environment.archived_at = timezone.now()
    environment.save(update_fields=["archived_at"])
    with pytest.raises(Invalid) as refused:
        begin(alice, acme, agent, environment)
    assert refused.value.field == "environment"


def test_an_unknown_switch_is_refused_with_the_known_ones(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    with pytest.raises(Invalid) as refused:
        create_conversation(
            actor=alice,
            organisation=acme,
            agent=agent,
            environment=environment,
            features={"turbo": True},
        )
    assert "turbo" in refused.value.message
    assert "plan_mode" in refused.value.hint
    assert not Conversation.objects.exists()


def test_mallory_begins_nothing_in_an_organisation_that_is_not_hers(
    mallory: User, acme: Organisation, agent: Agent, environment: Environment
):
    with pytest.raises(NotFound):
        begin(mallory, acme, agent, environment)


def test_mallory_begins_nothing_below_alices_conversation(
    mallory: User, elsewhere: Organisation, conversation: Conversation, environment: Environment
):
    with pytest.raises(NotFound):
        create_conversation(
            actor=mallory,
            organisation=elsewhere,
            agent=conversation.agent_version.agent,
            environment=environment,
            parent=conversation,
        )


@pytest.mark.parametrize("name", ["mallory", "bob"])
def test_nobody_changes_anothers_conversation(
    name: str, request: pytest.FixtureRequest, conversation: Conversation
):
    actor = request.getfixturevalue(name)
    for change in (
        lambda: rename_conversation(actor=actor, conversation=conversation, title="Mine"),
        lambda: archive_conversation(actor=actor, conversation=conversation, archived=True),
        lambda: delete_conversation(actor=actor, conversation=conversation),
    ):
        with pytest.raises(NotFound):
            change()
    conversation.refresh_from_db()
    assert (conversation.title, conversation.archived_at) == ("", None)


def test_who_left_the_organisation_changes_her_former_conversations_no_more(
    alice: User, acme: Organisation, conversation: Conversation
):
    Membership.objects.filter(user=alice, organisation=acme).delete()
    with pytest.raises(NotFound):
        rename_conversation(actor=alice, conversation=conversation, title="Still mine")


def test_a_new_title_is_an_event_that_no_first_message_overwrites(
    alice: User, conversation: Conversation
):
    rename_conversation(actor=alice, conversation=conversation, title="  Quarterly \n numbers ")
    post_message(actor=alice, conversation=conversation, text="Something else entirely")
    conversation.refresh_from_db()
    assert conversation.title == "Quarterly numbers"
    event = Event.objects.get(conversation=conversation, type="session.updated")
    assert event.payload["title"] == "Quarterly numbers"
    assert event.actor == alice


def test_the_same_title_again_adds_no_event(alice: User, conversation: Conversation):
    rename_conversation(actor=alice, conversation=conversation, title="Same")
    rename_conversation(actor=alice, conversation=conversation, title="Same")
    assert Event.objects.filter(conversation=conversation).count() == 1


def test_a_title_is_refused_when_empty_or_one_character_too_long(
    alice: User, conversation: Conversation
):
    rename_conversation(actor=alice, conversation=conversation, title="x" * TITLE_LIMIT)
    for title in (" \n", "x" * (TITLE_LIMIT + 1)):
        with pytest.raises(Invalid) as refused:
            rename_conversation(actor=alice, conversation=conversation, title=title)
        assert refused.value.field == "title"
        assert refused.value.hint


def test_archiving_keeps_everything_and_can_be_undone(alice: User, conversation: Conversation):
    talk(conversation, "hello", "good morning")
    events = Event.objects.filter(conversation=conversation).count()
    assert archive_conversation(actor=alice, conversation=conversation, archived=True).archived_at
    back = archive_conversation(actor=alice, conversation=conversation, archived=False)
    assert back.archived_at is None
    assert Event.objects.filter(conversation=conversation).count() == events


def test_deleting_removes_the_log_and_keeps_what_was_spent(
    alice: User, acme: Organisation, conversation: Conversation
):
    talk(conversation, "hello", "good morning")
    Usage.objects.create(
        organisation=acme,
        user=alice,
        conversation=conversation,
        model_request_id="sevt_1",
        purpose="main",
        provider="scripted",
        model="m",
        cost=Decimal("0.5"),
    )
    delete_conversation(actor=alice, conversation=conversation)
    assert not Event.objects.exists()
    assert Usage.objects.get().conversation is None
    with pytest.raises(NotFound):
        delete_conversation(actor=alice, conversation=conversation)


def test_a_conversation_at_work_is_not_deleted(alice: User, conversation: Conversation):
    run = Run.objects.create(conversation=conversation, worker="w", lease_until=timezone.now())
    with pytest.raises(Conflict) as refused:
        delete_conversation(actor=alice, conversation=conversation)
    assert "Stop" in refused.value.hint
    Run.objects.filter(pk=run.pk).update(state=Run.State.RESTED)
    delete_conversation(actor=alice, conversation=conversation)
    assert not Conversation.objects.exists()


def test_nor_is_one_whose_child_is_at_work(
    alice: User, acme: Organisation, conversation: Conversation, environment: Environment
):
    child = create_conversation(
        actor=alice,
        organisation=acme,
        agent=conversation.agent_version.agent,
        environment=environment,
        parent=conversation,
    )
    Run.objects.create(conversation=child, worker="w", lease_until=timezone.now())
    with pytest.raises(Conflict):
        delete_conversation(actor=alice, conversation=conversation)


@pytest.mark.django_db(transaction=True)
def test_deleting_one_conversation_removes_its_files_and_its_childrens_and_nobody_elses(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    own = begin(alice, acme, agent, environment)
    child = create_conversation(
        actor=alice, organisation=acme, agent=agent, environment=environment, parent=own
    )
    other = begin(alice, acme, agent, environment)
    for each in (own, child, other):
        Workspace(workspace_for(each.uid)).write_bytes("kept.txt", each.uid.encode())
    roots = {each.uid: workspace_for(each.uid) for each in (own, child, other)}
    delete_conversation(actor=alice, conversation=own)
    assert not roots[own.uid].exists()
    assert not roots[child.uid].exists()
    assert (roots[other.uid] / "kept.txt").read_text() == other.uid


@pytest.mark.django_db(transaction=True)
def test_files_stay_when_the_deletion_is_rolled_back(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
):
    conversation = begin(alice, acme, agent, environment)
    Workspace(workspace_for(conversation.uid)).write_bytes("kept.txt", b"1")

    class Undone(Exception):
        pass

    with pytest.raises(Undone), transaction.atomic():
        delete_conversation(actor=alice, conversation=conversation)
        raise Undone
    assert Conversation.objects.filter(pk=conversation.pk).exists()
    assert (workspace_for(conversation.uid) / "kept.txt").exists()
