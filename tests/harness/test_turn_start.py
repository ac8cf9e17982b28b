"""How a turn begins: one commit with the start of its first request, and what may come in between."""

from __future__ import annotations

from harness.agentconfig import Limits
from harness.content import Text, text_of
from harness.errors import LimitReached
from harness.events import (
    AgentMessage,
    BudgetReached,
    EndTurn,
    InputTaken,
    MessageEdited,
    MessageWithdrawn,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SpanModelRequestStart,
    UserInterrupt,
)
from harness.history import Entry, History
from providers.scripted import reply
from tests.harness.bench import Bench, said, scripted
from tests.standins.journal import MemoryJournal

BEGINNING = ["session.status_running", "x.input_taken", "span.model_request_start"]


def commits_of(bench: Bench) -> list[list[str]]:
    """The types of what each append is to store, filled while `bench` runs."""
    commits: list[list[str]] = []

    def note(_journal, entries):
        commits.append([entry.event.type for entry in entries])

    bench.journal.hook = note
    return commits


def right_before(bench: Bench, point: int, *events) -> None:
    """Have somebody else append `events` right before the run's append number `point`."""

    def post(journal, _entries):
        if journal.appends == point:
            journal.post(*events)

    bench.journal.hook = post


def asked(bench: Bench, request: int = 0) -> str:
    return text_of(bench.requests[request].messages[-1].parts)


async def test_a_turn_and_its_first_request_begin_in_one_commit():
    bench = Bench(scripted(reply("Done.")))
    commits = commits_of(bench)
    await bench.run(said("Go."))
    assert commits[0] == BEGINNING
    assert bench.events(SpanModelRequestStart)[0].step == 1


async def test_a_request_that_is_tried_again_begins_in_one_commit_with_its_run():
    bench = Bench(scripted(reply("Done.")))
    message = Entry.of(said("Go."))
    taken = Entry.of(InputTaken(event_ids=(message.uid,)))
    for entry in (message, taken, Entry.of(SessionStatusRescheduled(delay_seconds=1.0))):
        bench.journal._store(entry)
    commits = commits_of(bench)
    await bench.run()
    assert commits[0] == ["session.status_running", "span.model_request_start"]


async def test_a_message_that_comes_right_before_a_turn_begins_waits_for_the_next_one():
    bench = Bench(scripted(reply("One."), reply("Two.")))
    right_before(bench, 1, said("And then?"))
    await bench.run(said("Go."))
    assert [asked(bench, request) for request in (0, 1)] == ["Go.", "And then?"]
    assert [text_of(event.content) for event in bench.events(AgentMessage)] == ["One.", "Two."]
    places = [entry.seq for entry in bench.journal.entries]
    assert places == list(range(1, len(places) + 1))
    assert len(bench.events(InputTaken)) == 2, "nothing was taken twice"


async def test_a_message_edited_right_before_it_is_taken_is_asked_as_edited():
    bench = Bench(scripted(reply("Done.")))
    (message,) = bench.journal.post(said("Go."))
    edit = MessageEdited(event_id=message.uid, content=(Text(text="Wait."),))
    right_before(bench, 1, edit)
    await bench.run()
    assert asked(bench) == "Wait."
    assert len(bench.requests) == 1


async def test_a_message_withdrawn_right_before_it_is_taken_is_not_asked():
    bench = Bench(scripted(reply("Never.")))
    (message,) = bench.journal.post(said("Go."))
    right_before(bench, 1, MessageWithdrawn(event_id=message.uid))
    await bench.run()
    assert bench.requests == []
    assert bench.events(InputTaken) == []


async def test_an_interrupt_right_before_a_turn_begins_ends_it_without_a_request():
    bench = Bench(scripted(reply("Never.")))
    right_before(bench, 1, UserInterrupt())
    await bench.run(said("Go."))
    assert bench.requests == []
    assert bench.events(SpanModelRequestStart) == []
    (idle,) = bench.events(SessionStatusIdle)
    assert idle.interrupted


async def test_a_refused_first_request_leaves_the_turn_begun_and_ended_at_the_limit():
    bench = Bench(scripted(reply("Never.")))

    def refuse(_journal, entries):
        if any(isinstance(entry.event, SpanModelRequestStart) for entry in entries):
            raise LimitReached("Nothing is left.")

    bench.journal.hook = refuse
    await bench.run(said("Go."))
    assert bench.requests == []
    assert bench.journal.types[1:] == [*BEGINNING[:2], "session.usage", "session.status_idle"]
    (idle,) = bench.events(SessionStatusIdle)
    assert idle.stop_reason == BudgetReached()


async def test_room_that_comes_right_after_a_refusal_is_used_by_the_same_turn():
    bench = Bench(scripted(reply("Done.")))
    refusals: list[object] = []

    def refuse_once(_journal, entries):
        if not refusals and isinstance(entries[-1].event, SpanModelRequestStart):
            refusals.append(entries)
            raise LimitReached("Nothing is left.")

    bench.journal.hook = refuse_once
    await bench.run(said("Go."))
    assert [asked(bench), len(bench.requests)] == ["Go.", 1]
    assert len(bench.events(InputTaken)) == 1
    assert bench.events(SessionStatusIdle)[-1].stop_reason == EndTurn()


async def test_the_limit_of_a_turn_that_is_over_does_not_hold_for_the_next():
    bench = Bench(scripted(reply("One."), reply("Two.")), limits=Limits(steps=1))
    await bench.run(said("Go."))
    commits = commits_of(bench)
    await bench.run(said("Again."))
    assert commits[0] == BEGINNING
    assert [text_of(event.content) for event in bench.events(AgentMessage)] == ["One.", "Two."]


async def test_what_would_follow_changes_nothing_of_the_history_itself():
    journal = MemoryJournal([Entry.of(said("Go."))])
    bench = Bench(scripted(reply("Done.")), journal=journal)
    await bench.run()
    history = History(bench.journal.entries)
    before = History(bench.journal.entries)
    ahead = history.followed_by([Entry.of(said("More.")), Entry.of(UserInterrupt())], at=5.0)
    assert ahead.interrupt is not None
    assert [entry.at for entry in ahead.entries[-2:]] == [5.0, 5.0]
    assert history.queued() == before.queued() == []
    assert len(history.entries) == len(before.entries)
    assert history.interrupt is None
