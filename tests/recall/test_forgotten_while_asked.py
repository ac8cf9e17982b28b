"""A memory that is forgotten at the very moment in which a question shows it is in no question afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import Organisation, User
from approvals.models import Approval
from memory.actions.remembering import forget_memory, own_store, remember
from memory.actions.stores import ORGANIZATION, create_store
from memory.models import Memory, MemoryStore
from tests.approvals.asking import asks
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "The office is in Lisbon."


@pytest.fixture
def mine(alice: User, acme: Organisation) -> Memory:
    store = own_store(actor=alice, organisation=acme)
    return remember(actor=alice, store=store, text=TEXT, key="office").memory


@pytest.fixture
def ours(alice: User, acme: Organisation) -> MemoryStore:
    store = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    remember(actor=alice, store=store, text="The office is in Porto.", key="office")
    return store


def meanwhile(first: Callable[[], object], second: Callable[[], object]) -> None:
    """The second begins once the first has done all but end its transaction, which it does when the second
    waits for it or is over."""

    def act() -> None:
        try:
            second()
        finally:
            connection.close()

    def waits() -> bool:
        if connection.vendor == "sqlite" or not other.is_alive():
            return True  # one writes at a time there, and what waits is not told
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return bool(cursor.fetchone()[0])

    other = threading.Thread(target=act)
    with transaction.atomic():
        first()
        other.start()
        late = time.monotonic() + PATIENCE
        while not waits() and time.monotonic() < late:
            time.sleep(0.01)
    other.join(PATIENCE)
    assert not other.is_alive()


@pytest.mark.parametrize("shares", [False, True], ids=["forget_memory", "share_memory"])
@pytest.mark.parametrize("asks_first", [True, False], ids=["asked first", "forgotten first"])
def test_what_is_forgotten_while_it_is_asked_about_is_in_no_question(
    alice: User, converse: Any, mine: Memory, ours: MemoryStore, shares: bool, asks_first: bool
) -> None:
    conversation = converse()[0]
    given = {"id": mine.uid}
    if shares:
        given |= {"store": ours.uid, "sha256": mine.sha256}

    def ask() -> None:
        asks(conversation, given, tool="share_memory" if shares else "forget_memory")

    def forget() -> None:
        forget_memory(actor=alice, memory=mine)

    if asks_first:
        meanwhile(ask, forget)
    else:
        meanwhile(forget, ask)
    approval = Approval.objects.get()
    assert approval.touches["words"]
    assert "Lisbon" not in str(approval.touches)
