"""A key that was revoked opens nothing any more, to a worker that waits or is at work either."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils import timezone

from conversations.actions.messages import post_message, stop
from conversations.models import Conversation
from harness.errors import Conflict, WorkLost
from providers.scripted import reply
from tests.chat.drawing import before_query
from tests.conversations.conftest import rested
from tests.workers.working import RECLAIM, RUN, WRITE, answer, lapse, only_call, taken
from v1.worksessions import _news
from workers import items as work
from workers.actions.items import acknowledge_work, heartbeat_work, poll_work
from workers.actions.keys import create_key, revoke_key
from workers.models import EnvironmentKey, WorkItem

pytestmark = pytest.mark.django_db(transaction=True)


def only_revoked(key: EnvironmentKey) -> None:
    """The process was killed before it took away the work of who holds the key."""
    EnvironmentKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())


def only_deleted(key: EnvironmentKey) -> None:
    EnvironmentKey.objects.filter(pk=key.pk).delete()


ended = pytest.mark.parametrize("end", [only_revoked, only_deleted])


def test_a_worker_that_waits_while_its_key_is_revoked_gets_no_work(staff, begin, key, environment):
    revoke_key(actor=staff, key=EnvironmentKey.objects.get(pk=key.pk))
    begin(WRITE, reply("Written."))

    assert poll_work(key=key, worker="late", reclaim_after=RECLAIM) is None

    other = create_key(actor=staff, environment=environment, name="worker two").key
    assert poll_work(key=other, worker="two", reclaim_after=RECLAIM) is not None


@pytest.mark.parametrize("query", range(12))
def test_work_that_is_offered_right_when_the_key_is_revoked_is_nobodys(staff, begin, key, query):
    begin(WRITE, reply("Written."))

    def end() -> None:
        if not connection.in_atomic_block:  # nobody else writes meanwhile
            revoke_key(actor=staff, key=EnvironmentKey.objects.get(pk=key.pk))

    with before_query(query, end):
        offered = poll_work(key=key, worker="one", reclaim_after=RECLAIM)
    end()
    if offered is not None:
        offered.item.refresh_from_db()
        assert offered.item.state == "stopped"
    assert WorkItem.objects.alive().get().offered_at is None


@ended
def test_what_was_offered_by_a_revoked_key_is_not_taken(begin, key, end):
    begin(RUN, reply("Never."))
    offered = poll_work(key=key, worker="one", reclaim_after=RECLAIM)
    assert offered is not None
    end(key)

    with pytest.raises(Conflict):
        acknowledge_work(holder=offered.item, item=offered.item)


@ended
def test_a_lease_ends_with_its_key(begin, key, end):
    conversation = begin(RUN, reply("Never."))
    item = taken(key)
    end(key)

    assert not work.holds(item)
    assert work.send_calls(item) == {}
    assert not heartbeat_work(holder=item, item=item, compare=False).kept
    with pytest.raises(WorkLost):
        answer(item, only_call(conversation))


# --- streams --------------------------------------------------------------------------------------


def leave(conversation: Conversation, item: WorkItem) -> None:
    Conversation.objects.get(pk=conversation.pk).owner.memberships.all().delete()


def revoke(conversation: Conversation, item: WorkItem) -> None:
    assert item.key is not None
    only_revoked(item.key)


def run_out(conversation: Conversation, item: WorkItem) -> None:
    lapse(item)


@pytest.mark.parametrize("lose", [leave, revoke, run_out])
def test_a_workers_stream_ends_with_its_right_to_the_work(alice, begin, key, lose):
    conversation = begin(WRITE, reply("Stopped."))
    item = taken(key)
    after = conversation.last_seq
    assert _news(item, after).over is None
    stop(actor=alice, conversation=conversation)
    rested(conversation, 2)
    assert _news(item, after).events
    lose(conversation, item)

    news = _news(item, after)

    assert news.events == ()
    assert news.over is not None
    assert (news.over["type"], news.over["error"]["type"]) == ("error", "permission_error")
    assert news.over["error"]["details"]["error_code"] == "work_lost"


def test_a_stream_is_told_nothing_of_what_comes_after_its_key_was_revoked(alice, staff, begin, key):
    conversation = begin(WRITE, reply("Stopped."), reply("Again."))
    item = taken(key)
    after = conversation.last_seq
    revoke_key(actor=staff, key=key)
    stop(actor=alice, conversation=conversation)
    rested(conversation, 2)
    post_message(actor=alice, conversation=conversation, text="Something later")
    rested(conversation, 3)

    assert _news(item, after).events == ()
