"""Whoever is removed, leaves or is deactivated has no agent that goes on working."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.actions.members import remove_member
from accounts.models import Membership, Organisation, Role, User
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.background import ConversationsBackground
from conversations.departures import stop_of_member
from conversations.models import BackgroundCommand
from conversations.sandboxing import close_ended_shells, plan_sandbox, shell_access
from harness.errors import Forbidden
from jobs.engine import engine
from providers.scripted import Hold, call, reply, say
from tests.cast import ClientOf, join, make_user
from tests.conversations.conftest import Converse, rested, still, types, until
from tests.conversations.test_commands import processes_with
from tests.patience import PATIENCE
from tools_app import sandboxes
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db(transaction=True)

Leave = Callable[[Membership, ClientOf], None]


def is_removed(membership: Membership, client_of: ClientOf) -> None:
    remove_member(actor=User.objects.get(username="carol"), membership=membership)


def leaves(membership: Membership, client_of: ClientOf) -> None:
    remove_member(actor=membership.user, membership=membership)


def is_deactivated(membership: Membership, client_of: ClientOf) -> None:
    client: Client = client_of(make_user("staff", is_staff=True, is_superuser=True))
    user = membership.user
    address = reverse("admin:accounts_user_change", args=[user.pk])
    saved = client.post(address, {"username": user.username, "email": user.email})
    assert saved.status_code == 302
    user.refresh_from_db()
    assert not user.is_active


@pytest.mark.parametrize("go", [is_removed, leaves, is_deactivated])
def test_the_agents_of_whoever_goes_stop(
    alice: User, acme: Organisation, converse: Converse, client_of: ClientOf, go: Leave
):
    join(make_user("carol"), acme, Role.OWNER)
    hold = Hold()
    conversation, _scripted = converse([reply(say("So far", hold))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)

    go(Membership.objects.get(user=alice, organisation=acme), client_of)

    rested(conversation)
    assert conversation.events.get(type="session.status_idle").value.interrupted


def test_a_run_at_work_stops_also_where_nobody_told_it_that_its_person_is_gone(
    alice: User, acme: Organisation, converse: Converse, settings
):
    settings.AGENTSITE_LEASE_SECONDS = 1.5
    hold = Hold()
    conversation, _scripted = converse([reply(say("So far", hold))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)

    Membership.objects.get(user=alice, organisation=acme).delete()

    rested(conversation)
    assert conversation.events.get(type="session.status_idle").value.interrupted
    assert types(conversation).count("user.interrupt") == 1


def test_the_agents_of_those_who_stay_go_on(alice: User, acme: Organisation, converse: Converse):
    carol = make_user("carol")
    hold = Hold()
    conversation, _scripted = converse([reply(say("So far", hold))])
    post_message(actor=alice, conversation=conversation, text="Go.")
    until(hold.reached.is_set)

    remove_member(actor=alice, membership=join(carol, acme))

    hold.release.set()
    rested(conversation)
    assert "user.interrupt" not in types(conversation)


def running_of(conversation) -> BackgroundCommand:
    now = timezone.now()
    return BackgroundCommand.objects.create(
        conversation=conversation,
        call_uid=f"sevt_{conversation.pk}",
        command="while :; do act; done",
        timeout_seconds=3600,
        host="h",
        boot="b",
        pid=1,
        process_started="1",
        seen_at=now,
        started_at=now,
        output_path="background/x.log",
    )


def test_background_commands_of_a_removed_member_are_ended_and_no_others(
    alice, bob, acme, make_agent, environment
):
    rows = {
        person: running_of(
            create_conversation(
                actor=person, organisation=acme, agent=make_agent(), environment=environment
            )
        )
        for person in (alice, bob)
    }
    remove_member(actor=alice, membership=Membership.objects.get(user=bob, organisation=acme))
    stop_of_member(bob.pk, acme.pk)
    for row in rows.values():
        row.refresh_from_db()
    assert rows[bob].cancel_asked_at is not None
    assert rows[alice].cancel_asked_at is None


# --- what nobody was told to end ------------------------------------------------------------------


def is_gone(user: User, organisation: Organisation) -> None:
    Membership.objects.filter(user=user, organisation=organisation).delete()


def is_shut_out(user: User, organisation: Organisation) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


# The job that would tell was lost with its process.
unheard = pytest.mark.parametrize("vanish", [is_gone, is_shut_out])
Vanish = Callable[[User, Organisation], None]


def test_programs_that_a_removed_member_left_in_a_shell_end(
    alice: User, acme: Organisation, converse: Converse
):
    carol = make_user("carol")
    join(carol, acme, Role.OWNER)
    program = f"sleep 600.{os.getpid()}4"
    conversation, _ = converse([reply(call("bash", command=f"{program} &")), reply("Left.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    until(lambda: processes_with(program))

    remove_member(actor=carol, membership=Membership.objects.get(user=alice, organisation=acme))

    until(lambda: not processes_with(program))


@unheard
def test_the_next_look_closes_the_shells_of_who_left(
    alice: User, acme: Organisation, converse: Converse, vanish: Vanish
):
    conversation, _ = converse([reply(call("bash", command="true")), reply("Done.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    still()
    held = sandboxes.opened()
    assert held is not None
    engine.submit(close_ended_shells).result(PATIENCE)
    assert held.shells.open_keys() == (conversation.uid,)

    vanish(alice, acme)

    engine.submit(close_ended_shells).result(PATIENCE)
    assert held.shells.open_keys() == ()


@unheard
def test_a_background_command_of_who_left_ends_with_its_next_sign_of_life(
    alice: User, acme: Organisation, converse: Converse, vanish: Vanish
):
    program = f"sleep 600.{os.getpid()}5"
    conversation, _ = converse([reply(call("background_run", command=program)), reply("Started.")])
    post_message(actor=alice, conversation=conversation, text="Go.")
    rested(conversation)
    until(lambda: processes_with(program))

    vanish(alice, acme)

    until(lambda: not processes_with(program))
    until(lambda: BackgroundCommand.objects.get().state == "cancelled")


@unheard
def test_no_background_command_begins_for_who_left(
    alice: User, acme: Organisation, converse: Converse, vanish: Vanish
):
    """Its call was under way when she was removed, and all that ran then has been ended."""
    conversation, _ = converse([])
    plan = plan_sandbox(conversation, conversation.config, workspace_for(conversation.uid))
    vanish(alice, acme)

    async def begin() -> None:
        access = ConversationsBackground(conversation.pk, shell_access(plan))
        await access.start("sevt_x", "touch ran", 60, "")

    with pytest.raises(Forbidden):
        engine.submit(begin).result(PATIENCE)
    assert not BackgroundCommand.objects.exists()
