"""Workers do nothing for whoever was removed, or whose account was closed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.actions.members import remove_member
from accounts.models import Membership, Organisation, Role, User
from harness.errors import Conflict, WorkLost
from providers.scripted import reply
from tests.cast import join, make_user
from tests.conversations.conftest import rested
from tests.workers.working import ASKS, RECLAIM, RUN, answer, only_call, taken, unanswered
from workers import items as work
from workers.actions.items import acknowledge_work, heartbeat_work, poll_work
from workers.models import WorkItem

pytestmark = pytest.mark.django_db(transaction=True)

Leave = Callable[[User, Organisation], None]


def is_gone(user: User, organisation: Organisation) -> None:
    Membership.objects.filter(user=user, organisation=organisation).delete()


def is_shut_out(user: User, organisation: Organisation) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


# Nobody tells the agents: the process was killed before it could.
unheard = pytest.mark.parametrize("go", [is_gone, is_shut_out])


@pytest.mark.parametrize("script", [[RUN], [reply(*RUN.parts, *RUN.parts)]])
def test_calls_of_a_removed_member_are_taken_back(alice, acme, begin, key, script):
    carol = make_user("carol")
    join(carol, acme, Role.OWNER)
    conversation = begin(*script, reply("Never."))
    assert conversation.waits_for_worker

    remove_member(actor=carol, membership=Membership.objects.get(user=alice, organisation=acme))

    rested(conversation, 2)
    assert unanswered(conversation) == 0
    assert poll_work(key=key, worker="one", reclaim_after=RECLAIM) is None
    assert WorkItem.objects.get().ending == "needless"


def test_what_asks_for_a_removed_member_asks_no_more(alice, acme, begin):
    carol = make_user("carol")
    join(carol, acme, Role.OWNER)
    conversation = begin(RUN, reply("Never."), tools=ASKS)
    assert conversation.waits_for_person

    remove_member(actor=carol, membership=Membership.objects.get(user=alice, organisation=acme))

    rested(conversation, 2)
    assert not conversation.waits_for_person


@unheard
def test_work_of_who_left_is_offered_to_nobody_until_she_is_back(
    alice, acme, begin, key, go: Leave
):
    begin(RUN, reply("Done."))
    go(alice, acme)

    assert poll_work(key=key, worker="one", reclaim_after=RECLAIM) is None

    User.objects.filter(pk=alice.pk).update(is_active=True)
    Membership.objects.get_or_create(user=alice, organisation=acme)
    assert poll_work(key=key, worker="one", reclaim_after=RECLAIM) is not None


@unheard
def test_what_was_offered_of_who_left_is_not_taken(alice, acme, begin, key, go: Leave):
    begin(RUN, reply("Never."))
    offered = poll_work(key=key, worker="one", reclaim_after=RECLAIM)
    assert offered is not None
    go(alice, acme)

    with pytest.raises(Conflict):
        acknowledge_work(holder=key, item=offered.item)


@unheard
def test_a_worker_loses_the_work_of_who_left(alice, acme, begin, key, go: Leave):
    conversation = begin(RUN, reply("Never."))
    item = taken(key)
    assert work.holds(item)
    go(alice, acme)

    assert not work.holds(item)
    assert work.send_calls(item) == {}
    assert not heartbeat_work(holder=item, item=item, compare=False).kept
    with pytest.raises(WorkLost):
        answer(item, only_call(conversation))


def test_work_of_those_who_stay_goes_on(alice, bob, acme, begin, key):
    conversation = begin(RUN, reply("Done."))
    item = taken(key)
    is_gone(bob, acme)
    assert answer(item, only_call(conversation)).type == "user.tool_result"
