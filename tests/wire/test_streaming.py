"""What is made while it is sent holds up nobody, and is whole however many pages it takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from django.utils.translation import get_language, override

from accounts.models import Organisation, User
from audit import listing
from audit.models import AuditEntry
from conversations.models import Conversation
from harness.ids import new_event_id
from spending import reports
from spending.models import Usage
from tests.chat.drawing import make_conversation
from tests.patience import PATIENCE
from wire.streaming import EACH, GATHERED, in_threads

pytestmark = pytest.mark.django_db  # the threads look after their connections


async def taken(pieces: Iterator[str], who: str = "alice") -> list[str]:
    return [piece async for piece in in_threads(pieces, who)]


async def test_many_small_pieces_go_over_in_few_hand_overs_and_none_is_lost():
    lines = [f"{number}\n" for number in range(100_000)]
    given = await taken(iter(lines))
    assert "".join(given) == "".join(lines)
    assert len(given) <= len("".join(lines)) // GATHERED + 1


async def test_a_piece_that_is_no_text_yet_ends_nothing():
    assert "".join(await taken(iter(["", "", "a", "", "b", ""]))) == "ab"
    assert await taken(iter(())) == []


async def test_pieces_are_made_in_the_language_in_which_they_were_asked_for():
    def spoken() -> Iterator[str]:
        yield get_language() or ""

    with override("de"):
        pieces = in_threads(spoken(), "alice")
    assert [piece async for piece in pieces] == ["de"]


async def test_who_asks_for_many_at_once_leaves_others_theirs_and_plain_threads_free():
    begun, go_on = threading.Semaphore(0), threading.Event()

    def long() -> Iterator[str]:
        begun.release()
        go_on.wait(PATIENCE)
        yield "at last"

    hers = [asyncio.ensure_future(taken(long(), "alice")) for _ in range(EACH * 4)]
    try:
        for _ in range(EACH):
            assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            assert await taken(iter(["soon"]), "bob") == ["soon"]
            assert await sync_to_async(lambda: "elsewhere")() == "elsewhere"
        assert not begun.acquire(blocking=False)
        assert not any(task.done() for task in hers)
    finally:
        go_on.set()
    assert await asyncio.gather(*hers) == [["at last"]] * len(hers)


async def test_what_fails_in_the_midst_is_told_to_whoever_sends():
    def broken() -> Iterator[str]:
        yield "x" * GATHERED
        raise ValueError("no more")

    pieces = in_threads(broken(), "alice")
    assert len(await anext(pieces)) == GATHERED
    with pytest.raises(ValueError, match="no more"):
        await anext(pieces)


def test_the_audit_file_has_every_entry_once_over_many_pages(alice: User, acme: Organisation):
    made = listing.EXPORT_PAGE * 2 + 1
    AuditEntry.objects.bulk_create(
        AuditEntry(
            action=AuditEntry.Action.VAULT_MADE,
            actor=alice,
            actor_name=alice.username,
            organisation=acme,
            reason=str(number),
        )
        for number in range(made)
    )
    lines = list(listing.as_csv(alice, {"action": "vault_made"}))
    assert [line.split(",")[10] for line in lines[1:]] == [str(n) for n in reversed(range(made))]


def test_the_usage_file_has_every_call_once_though_many_ended_at_one_moment(
    alice: User, acme: Organisation
):
    hers: Conversation = make_conversation(alice, acme)
    made = reports.EXPORT_PAGE * 2 + 1
    Usage.objects.bulk_create(
        Usage(
            organisation=acme,
            user=alice,
            conversation=hers,
            model_request_id=new_event_id(),
            purpose="main",
            provider="scripted",
            model=str(number),
        )
        for number in range(made)
    )
    Usage.objects.update(created_at=timezone.now())
    span = reports.Span.latest()
    lines = list(reports.export_lines(reports.rows_of_person(alice, acme, span)))
    assert [line[5] for line in lines[1:]] == [str(number) for number in range(made)]
