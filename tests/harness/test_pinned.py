"""Pinned messages stand beside every summary word for word, and nowhere twice."""

from __future__ import annotations

from harness.content import Text
from harness.estimates import sizes_at_most
from harness.events import (
    AgentThreadContextCompacted,
    MessagePinned,
    RetryRequested,
    Rewound,
    UserMessage,
)
from harness.history import Entry
from harness.messages import ModelRequest, PinnedText
from harness.redacted import redacted
from harness.transcript import Dialogue, Window, build_messages
from tests.harness.test_transcript import TEXTS, Log, assert_acceptable

WORDS = "Never touch   the table “ledger”.\n\nNot even once."


def told(log: Log, tokens: int = 200_000) -> list[str]:
    messages = build_messages(log.entries, texts=TEXTS, window=Window(tokens))
    assert_acceptable(messages)
    return [
        part.text for message in messages for part in message.parts if isinstance(part, PinnedText)
    ]


def turn(log: Log, question: str, answer: str) -> tuple[str, str]:
    """The ids of both."""
    log.user(question)
    asked = log.entries[-2].uid
    log.begin()
    log.say(answer)
    said = log.entries[-1].uid
    log.end()
    return asked, said


def compact(log: Log) -> None:
    log.add(AgentThreadContextCompacted(summary="In short.", through=log.entries[-1].uid))


def test_a_message_and_an_answer_outlive_summaries_word_for_word():
    log = Log()
    asked, said = turn(log, WORDS, "I will not.")
    turn(log, "Go on.", "Done.")
    log.add(MessagePinned(event_id=asked))
    log.add(MessagePinned(event_id=said))
    assert told(log) == []
    for _ in range(3):
        compact(log)
        turn(log, "And on.", "Done.")
        (words,) = told(log)
        assert f"<kept name='message {asked}'>\n{WORDS}\n</kept>" in words
        assert words.index(WORDS) < words.index("I will not.")
        assert "Go on." not in words


def test_what_still_stands_in_the_dialogue_is_not_told_twice():
    log = Log()
    turn(log, "Before.", "Yes.")
    compact(log)
    asked, _said = turn(log, WORDS, "Yes.")
    log.add(MessagePinned(event_id=asked))
    assert told(log) == []
    assert str(log.messages()).count("Not even once.") == 1


def test_a_pin_of_what_was_summarised_already_changes_the_prompt_once_and_letting_go_again():
    log = Log()
    dialogue = Dialogue(TEXTS, Window())
    asked, _said = turn(log, WORDS, "Yes.")
    compact(log)
    turn(log, "Go on.", "Done.")
    before = dialogue.messages(log.entries)
    log.add(MessagePinned(event_id=asked))
    pinned = dialogue.messages(log.entries)
    assert pinned != before
    assert pinned == log.messages()
    log.add(MessagePinned(event_id=asked, pinned=False))
    assert dialogue.messages(log.entries) == before == log.messages()


def test_a_message_of_another_branch_is_not_told_and_a_pin_made_there_holds():
    log = Log()
    first, _said = turn(log, WORDS, "Yes.")
    place = len(log.entries)
    left, _said = turn(log, "Only here.", "Yes.")
    log.add(MessagePinned(event_id=first))
    log.add(MessagePinned(event_id=left))
    log.add(Rewound(behind=place, why="rewind"))
    turn(log, "Another way.", "Yes.")
    compact(log)
    (words,) = told(log)
    assert WORDS in words
    assert "Only here." not in words


def test_what_was_taken_out_never_taken_or_is_unknown_is_not_told():
    log = Log()
    asked, _said = turn(log, WORDS, "Yes.")
    waits = log.add(UserMessage(content=(Text(text="Still waiting."),)))
    compact(log)
    for uid in (asked, waits, "sevt_none"):
        log.add(MessagePinned(event_id=uid))
    log.entries = [
        Entry(entry.uid, redacted(entry.event) if entry.uid == asked else entry.event, entry.seq)
        for entry in log.entries
    ]
    assert told(log) == []


def test_a_turn_that_is_done_anew_keeps_the_pins_of_it():
    log = Log()
    asked, _said = turn(log, WORDS, "Yes.")
    log.add(MessagePinned(event_id=asked))
    log.add(RetryRequested(from_start=True))
    compact(log)
    (words,) = told(log)
    assert WORDS in words


def test_what_finds_no_room_in_its_share_is_named():
    log = Log()
    short, _said = turn(log, WORDS, "Yes.")
    long, _said = turn(log, "x" * 5_000, "Yes.")
    log.add(MessagePinned(event_id=long))
    log.add(MessagePinned(event_id=short))
    compact(log)
    (words,) = told(log, tokens=10_000)
    assert WORDS in words
    assert "x" * 100 not in words
    assert f"No room was left for: message {long}." in words
    (words,) = told(log, tokens=40_000)
    assert "x" * 5_000 in words


def test_in_the_plan_they_are_a_source_of_their_own():
    log = Log()
    asked, _said = turn(log, "word " * 1_000, "Yes.")
    turn(log, "Go on.", "Done.")
    compact(log)
    turn(log, "And on.", "Done.")
    before = sizes_at_most(ModelRequest("", "", log.messages()))
    log.add(MessagePinned(event_id=asked))
    after = sizes_at_most(ModelRequest("", "", log.messages()))
    assert before["pinned"] == 0
    assert after["pinned"] >= 2_500
    assert {**after, "pinned": 0} == before
