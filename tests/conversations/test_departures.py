"""Whoever is removed, leaves or is deactivated has no agent that goes on working."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from accounts.actions.members import remove_member
from accounts.models import Membership, Organisation, Role, User
from conversations.actions.messages import post_message
from harness.providers.scripted import Hold, reply, say
from tests.cast import ClientOf, join, make_user

from .conftest import Converse, rested, types, until

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
