"""What one client is sent of a block's text: all of it, once, whatever became of the deltas."""

from __future__ import annotations

import random

import pytest

from api.stream import REMEMBERED, Ledger, Whole
from live.arriving import OpenBlock, Snapshot
from live.items import Delta


def joined(frames, ledger_text=""):
    for frame in frames:
        if frame["type"].endswith("_replaced"):
            ledger_text = frame["content"]
        else:
            ledger_text = ledger_text[: frame.get("offset", 0)] + frame["content"]
    return ledger_text


def test_pieces_and_the_stored_text_join_without_a_seam():
    ledger = Ledger()
    frames = ledger.piece(Delta("b", "text", 0, "One "))
    frames += ledger.piece(Delta("b", "text", 4, "two "))
    frames.append(ledger.whole(Whole("b", "text", "One two three", {"seq": 7})))
    assert [frame["content"] for frame in frames] == ["One ", "two ", "three"]
    assert frames[-1]["seq"] == 7


def test_the_last_frame_comes_even_if_nothing_is_left_to_say():
    ledger = Ledger()
    ledger.piece(Delta("b", "text", 0, "All"))
    assert ledger.whole(Whole("b", "text", "All", {"seq": 7}))["content"] == ""


def test_a_piece_behind_a_gap_waits_for_the_snapshot():
    ledger = Ledger()
    ledger.piece(Delta("b", "text", 0, "ab"))
    assert ledger.piece(Delta("b", "text", 4, "ef")) == []
    (frame,) = ledger.snapshot(Snapshot([OpenBlock("b", "text", None, "abcdef")]))
    assert (frame["offset"], frame["content"]) == (2, "cdef")


def test_what_comes_after_the_end_of_a_block_is_passed_over():
    ledger = Ledger()
    ledger.whole(Whole("b", "text", "whole", {}))
    assert ledger.piece(Delta("b", "text", 0, "who")) == []
    assert ledger.snapshot(Snapshot([OpenBlock("b", "text", None, "whole")])) == []


def test_a_stored_text_that_is_shorter_than_what_was_sent_replaces_it():
    ledger = Ledger()
    ledger.piece(Delta("b", "text", 0, "more than was kept"))
    frame = ledger.whole(Whole("b", "text", "more than", {"seq": 3}))
    assert (frame["type"], frame["content"], frame["seq"]) == ("text_replaced", "more than", 3)


def test_thinking_that_did_not_stream_is_said_as_a_whole():
    ledger = Ledger("max")
    frame = ledger.whole(Whole("t", "thinking", "Hm.", {}))
    assert (frame["type"], frame["content"], frame["effort"]) == ("thinking", "Hm.", "max")


@pytest.mark.parametrize("seed", range(50))
def test_whatever_is_lost_or_repeated_the_client_has_the_stored_text(seed):
    chance = random.Random(seed)
    text = "".join(chance.choices("abcdefgh ü💥", k=200))
    ledger, frames, at = Ledger(), [], 0
    while at < len(text):
        size = chance.randrange(1, 20)
        if chance.random() < 0.7:
            begin = max(0, at - chance.choice([0, 0, 3]))
            frames += ledger.piece(Delta("b", "text", begin, text[begin : at + size]))
        if chance.random() < 0.1:
            frames += ledger.snapshot(Snapshot([OpenBlock("b", "text", None, text[: at + size])]))
        at += size
    frames.append(ledger.whole(Whole("b", "text", text, {})))
    assert "".join(frame["content"] for frame in frames) == text
    assert joined(frames) == text


def test_ended_blocks_are_not_remembered_for_ever():
    ledger = Ledger()
    for number in range(REMEMBERED + 10):
        ledger.whole(Whole(str(number), "text", "x", {}))
    assert len(ledger._ended) == REMEMBERED
