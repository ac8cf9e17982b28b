"""What the socket makes of a frame, before anybody acts on it."""

from __future__ import annotations

import orjson
import pytest

from chat import protocol
from live.items import Delta
from wire.socketframes import Refused


def refused(text: str | None) -> protocol.Error:
    with pytest.raises(Refused) as caught:
        protocol.parse(text)
    return protocol.refusal(caught.value)


def frame(**fields: object) -> str:
    return orjson.dumps(fields).decode()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"type": "message", "content": "Hi", "key": "k"},
            protocol.PostMessage(content="Hi", key="k"),
        ),
        (
            {"type": "message", "content": "Now", "key": "k", "interrupt": True},
            protocol.PostMessage(content="Now", key="k", interrupt=True),
        ),
        (
            {"type": "message", "content": "", "files": ["file_1"]},
            protocol.PostMessage(content="", files=["file_1"]),
        ),
        ({"type": "stop"}, protocol.Stop()),
        ({"type": "withdraw", "message": "sevt_1"}, protocol.Withdraw(message="sevt_1")),
        (
            {"type": "edit", "message": "sevt_1", "content": "Better", "key": "k"},
            protocol.Edit(message="sevt_1", content="Better", key="k"),
        ),
        ({"type": "steer", "message": "sevt_1"}, protocol.Steer(message="sevt_1")),
        ({"type": "retry"}, protocol.Retry()),
        (
            {"type": "decide", "call": "sevt_1", "allow": False, "reason": "no"},
            protocol.Decide(call="sevt_1", allow=False, reason="no"),
        ),
        (
            {"type": "answer", "call": "sevt_1", "answers": [{"chosen": ["A"], "text": "b"}]},
            protocol.AnswerQuestions(
                call="sevt_1", answers=[protocol.GivenAnswer(chosen=["A"], text="b")]
            ),
        ),
        (
            {"type": "result", "call": "sevt_1", "content": "14"},
            protocol.GiveResult(call="sevt_1", content="14"),
        ),
        (
            {"type": "feature", "feature": "plan_mode", "enabled": True},
            protocol.SwitchFeature(feature="plan_mode", enabled=True),
        ),
        ({"type": "seen", "seq": 7}, protocol.Seen(seq=7)),
        ({"type": "resync"}, protocol.Resync()),
        ({"type": "ping"}, protocol.Ping()),
    ],
)
def test_every_kind_of_frame_is_understood(given, expected):
    assert protocol.parse(orjson.dumps(given).decode()) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "bad_frame"),
        ("", "bad_frame"),
        ("   ", "bad_frame"),
        ("hello", "bad_frame"),
        ("{", "bad_frame"),
        ("null", "bad_frame"),
        ("7", "bad_frame"),
        ("true", "bad_frame"),
        ('"stop"', "bad_frame"),
        ("[]", "bad_frame"),
        ('[{"type": "stop"}]', "bad_frame"),
        ('{"type": "stop"} {"type": "stop"}', "bad_frame"),
        ('{"type": "message", "content": "\ud800"}', "bad_frame"),
        ("[" * 5_000, "bad_frame"),
        ("{}", "unknown_frame"),
        ('{"type": null}', "unknown_frame"),
        ('{"type": 1}', "unknown_frame"),
        ('{"type": ["stop"]}', "unknown_frame"),
        ('{"type": {"type": "stop"}}', "unknown_frame"),
        ('{"type": "STOP"}', "unknown_frame"),
        ('{"type": "cancel"}', "unknown_frame"),
        ('{"type": "message"}', "invalid"),
        ('{"type": "message", "content": null}', "invalid"),
        ('{"type": "message", "content": 7}', "invalid"),
        ('{"type": "message", "content": ["a"]}', "invalid"),
        ('{"type": "message", "content": ""}', "invalid"),
        ('{"type": "message", "content": " \\n "}', "invalid"),
        ('{"type": "message", "content": "a", "key": 7}', "invalid"),
        ('{"type": "message", "content": "a", "key": ""}', "invalid"),
        ('{"type": "message", "content": "a", "interrupt": "yes"}', "invalid"),
        ('{"type": "message", "content": "a", "extra": 1}', "invalid"),
        ('{"type": "decide", "call": "c"}', "invalid"),
        ('{"type": "decide", "call": "c", "allow": 1}', "invalid"),
        ('{"type": "decide", "call": "", "allow": true}', "invalid"),
        ('{"type": "decide", "call": "c", "allow": true}', "invalid"),
        ('{"type": "decide", "call": "c", "allow": true, "shown": "0"}', "invalid"),
        ('{"type": "decide", "call": "c", "allow": true, "round": 1}', "invalid"),
        ('{"type": "feature", "feature": "teams", "enabled": "true"}', "invalid"),
        ('{"type": "withdraw"}', "invalid"),
        ('{"type": "edit", "message": "m"}', "invalid"),
        ('{"type": "edit", "content": "a"}', "invalid"),
        ('{"type": "edit", "message": "m", "content": " \\n "}', "invalid"),
        ('{"type": "edit", "message": "m", "content": 7}', "invalid"),
        ('{"type": "steer"}', "invalid"),
        ('{"type": "steer", "message": ""}', "invalid"),
        ('{"type": "steer", "message": "m", "content": "a"}', "invalid"),
    ],
)
def test_a_wrong_frame_gets_an_error_with_a_code_and_a_remedy(text, code):
    """A scalar does not close the connection, and no frame is left without an answer."""
    error = refused(text)
    assert error.code == code
    assert error.message
    assert error.hint


def test_an_error_names_the_field_the_rule_and_the_key():
    error = refused(frame(type="message", content=5, key="mine"))
    assert error.message == "content: A number was sent where a string is needed."
    assert error.hint == "Send a string."
    assert error.key == "mine"


def test_a_key_that_breaks_its_own_rule_is_not_echoed():
    assert refused(frame(type="message", content="a", key="k" * 101)).key is None
    assert refused(frame(type="message", content="a", key={"k": 1})).key is None


@pytest.mark.parametrize("kind", [{"type": "message"}, {"type": "edit", "message": "sevt_1"}])
def test_a_message_of_exactly_the_limit_is_taken_and_one_character_more_is_not(settings, kind):
    settings.AGENTSITE_MESSAGE_CHARACTERS = 10
    assert protocol.parse(frame(**kind, content="é" * 10)).content == "é" * 10
    error = refused(frame(**kind, content="é" * 11, key="k"))
    assert (error.code, error.key) == ("too_large", "k")
    assert "10" in error.message
    assert "11" in error.message


def test_a_frame_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(settings):
    text = frame(type="message", content="é" * 50)
    settings.AGENTSITE_SOCKET_FRAME_BYTES = len(text.encode())
    assert isinstance(protocol.parse(text), protocol.PostMessage)
    settings.AGENTSITE_SOCKET_FRAME_BYTES -= 1
    assert refused(text).code == "too_large"


def test_the_longest_message_fits_into_a_frame_in_any_script(settings):
    text = frame(type="message", content="😀" * settings.AGENTSITE_MESSAGE_CHARACTERS)
    assert isinstance(protocol.parse(text), protocol.PostMessage)


def test_what_is_sent_is_json_that_names_its_type():
    piece = Delta("sevt_1", "text", 3, "dé\n")
    assert orjson.loads(protocol.encode(piece)) == {
        "type": "delta",
        "block": "sevt_1",
        "kind": "text",
        "offset": 3,
        "text": "dé\n",
        "continues": None,
    }
