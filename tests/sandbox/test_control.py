"""What comes over the control socket of a sandbox is believed only in the forms that its supervisor uses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.supervised import _message_of

ENDED = {"event": "ended", "number": 1, "status": 256, "directory": "/work", "left": False}


@pytest.mark.parametrize(
    "message",
    [
        {"event": "ready", "pid": 1},
        {"event": "failed", "number": 1, "problem": "nothing was prepared"},
        ENDED,
        {**ENDED, "status": 9},
    ],
)
def test_what_a_supervisor_says_is_heard(message: dict[str, Any]) -> None:
    assert _message_of(json.dumps(message).encode()) == message


def test_a_directory_of_any_name_can_be_told_of() -> None:
    found = _message_of(json.dumps({**ENDED, "directory": "/a\udcff"}).encode())
    assert found is not None
    assert found["directory"] == "/a\ufffd"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b"9" * 5_000,
        b"\xff",
        b"{}",
        json.dumps({**ENDED, "event": "over"}).encode(),
        json.dumps({**ENDED, "status": -1}).encode(),
        json.dumps({**ENDED, "status": 0x137F}).encode(),
        json.dumps({**ENDED, "status": 2**40}).encode(),
        json.dumps({**ENDED, "status": "0"}).encode(),
        json.dumps({**ENDED, "directory": None}).encode(),
        json.dumps({"event": "failed", "number": 1}).encode(),
    ],
    ids=range(14),
)
def test_what_no_supervisor_says_is_nothing(data: bytes) -> None:
    assert _message_of(data) is None
