"""Frames that are malformed, empty, plain or too long: an error, and the socket goes on."""

from __future__ import annotations

import json

import pytest

from tests.seed_protocol.fuzz import run

MOST = 100_000
"""Characters of a message (AGENTSITE_MESSAGE_CHARACTERS)."""
MOST_BYTES = 512 * 1024
"""Of a frame (AGENTSITE_SOCKET_FRAME_BYTES)."""


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("5", "bad_frame"),
        ("true", "bad_frame"),
        ("null", "bad_frame"),
        ('"text"', "bad_frame"),
        ("[]", "bad_frame"),
        ('[{"type":"message"}]', "bad_frame"),
        ("{", "bad_frame"),
        ('{"type":"message","content":"cut', "bad_frame"),
        ("", "bad_frame"),
        ("   ", "bad_frame"),
        (b"\x00\x01", "bad_frame"),
        ('{"type":"nothing"}', "unknown_frame"),
        ('{"type":5}', "unknown_frame"),
        ('{"type":null,"content":"x"}', "unknown_frame"),
        ('{"type":["message"],"content":"x"}', "unknown_frame"),
        ("{}", "invalid"),
        ('{"type":"message"}', "invalid"),
        ('{"content":""}', "invalid"),
        ('{"type":"message","content":"  \\n "}', "invalid"),
        ('{"type":"message","content":5}', "invalid"),
        ('{"type":"message","content":["a","b"]}', "invalid"),
        ('{"type":"message","content":null}', "invalid"),
        ('{"type":"message","content":"x","key":5}', "invalid"),
        ('{"type":"toggle_teams"}', "invalid"),
        ('{"type":"toggle_teams","enabled":"yes"}', "invalid"),
        ('{"type":"tool_approval_response","decision":"approve"}', "conflict"),
        ('{"type":"plan_approval","feedback":5}', "invalid"),
        ('{"type":"interrupt","content":[]}', "invalid"),
    ],
)
def test_a_malformed_frame_gets_an_error_and_the_socket_stays(alice, raw, code):
    """Neither a scalar ends the connection nor a list as content the turn."""
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.say_raw(raw)
        error = chat.hear()
        assert (error["type"], error["code"]) == ("error", code)
        assert error["message"]
        chat.say("ping")
        assert chat.hear()["type"] == "pong"
    read = alice.read(uid)
    assert read["messages"] == read["waiting_messages"] == []


@pytest.mark.parametrize("text", ["Hello there", "Grüße 💥", "two\nlines"])
def test_plain_text_starts_a_turn(alice, service, text):
    service.expect(text, "Heard.")
    with alice.chat(alice.begin()) as chat:
        chat.say_raw(text)
        assert chat.turn()["status"] == "completed"
        assert chat.text == "Heard."


def test_a_frame_without_a_type_is_a_message(alice, service):
    service.expect("No type", "Heard.")
    with alice.chat(alice.begin()) as chat:
        chat.say_raw('{"content": "No type"}')
        chat.turn()
        assert chat.text == "Heard."


def test_a_message_of_the_limit_is_taken_and_one_character_more_is_not(alice, service):
    service.expect("x" * MOST, "Long.")
    with alice.chat(alice.begin()) as chat:
        chat.say("message", content="x" * (MOST + 1), key="over")
        error = chat.hear()
        assert (error["code"], error["key"]) == ("too_large", "over")
        assert str(MOST) in error["message"]
        assert chat.ask("x" * MOST)["status"] == "completed"


def test_a_frame_longer_than_the_limit_is_refused_and_the_socket_stays(alice):
    with alice.chat(alice.begin()) as chat:
        chat.say_raw(json.dumps({"type": "message", "content": "x" * MOST_BYTES}))
        error = chat.hear()
        assert error["code"] == "too_large"
        assert str(MOST_BYTES) in error["message"]
        chat.say("ping", key="k")
        assert chat.hear() == {"type": "pong", "key": "k"}


def test_hundreds_of_malformed_frames_break_nothing_and_lose_no_turn(alice, service, site):
    """The short form of `make fuzz`, which sends 5,000."""
    before = site.errors.count("Traceback")
    codes = run(alice, service, frames=300, seed=1)
    assert sum(codes.values()) == 300
    assert site.errors.count("Traceback") == before
