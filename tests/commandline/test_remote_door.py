"""What the command line makes of another machine that breaks off, against one that plays a script."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harness.errors import Declined
from terminal.door import Stored, Streaming
from terminal.remote import RemoteDoor
from terminal.screen import Screen
from terminal.talk import Ending, Talk

Wire = dict[str, Any]
Play = Callable[[list[Wire], list[list[Wire]]], RemoteDoor]


SESSION: Wire = {
    "id": "sesn_1",
    "type": "session",
    "title": "Plans",
    "status": "idle",
    "agent": {"type": "agent", "name": "Coding"},
    "updated_at": "2026-01-31T09:30:00Z",
}


def event(uid: str, kind: str, **more: Any) -> Wire:
    return {"id": uid, "type": kind, "processed_at": "2026-01-31T09:30:00Z", **more}


def said(uid: str, text: str) -> Wire:
    return event(uid, "agent.message", content=[{"type": "text", "text": text}])


def idle(uid: str, **more: Any) -> Wire:
    return event(uid, "session.status_idle", stop_reason={"type": "end_turn"}, **more)


@pytest.fixture
def play() -> Iterator[Play]:
    """A server with a log and streams: each connection gets the next of them, which then breaks off.
    What a stream brings is in the log from then on."""
    servers: list[ThreadingHTTPServer] = []
    doors: list[RemoteDoor] = []

    def begin(log: list[Wire], streams: list[list[Wire]]) -> RemoteDoor:
        left = list(streams)

        class Server(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0].endswith("/stream"):
                    self._stream(left.pop(0) if left else [])
                else:
                    listed = {"data": log, "next_page": None}
                    told = listed if "/events" in self.path else SESSION
                    body = json.dumps(told).encode()
                    self._begin("application/json", len(body))
                    self.wfile.write(body)

            def _stream(self, events: list[Wire]) -> None:
                self._begin("text/event-stream", None)
                for each in events:
                    kind = "error" if each["type"] == "error" else "message"
                    self.wfile.write(f"event: {kind}\ndata: {json.dumps(each)}\n\n".encode())
                    if "id" in each:
                        log.append(each)
                self.close_connection = True

            def _begin(self, kind: str, length: int | None) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                if length is not None:
                    self.send_header("Content-Length", str(length))
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        doors.append(RemoteDoor(f"http://127.0.0.1:{server.server_port}", "token"))
        return doors[-1]

    yield begin
    for door in doors:
        door.close()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_person_is_asked_about_a_call_with_the_machine_that_it_goes_to(play: Play):
    use = event(
        "u",
        "agent.mcp_tool_use",
        name="send",
        mcp_server_name="crm",
        input={},
        x_host="crm.example",
    )
    rest = event(
        "r", "session.status_idle", stop_reason={"type": "requires_action", "event_ids": ["u"]}
    )
    asked: list[str] = []

    def prompt(words: str) -> str:
        asked.append(words)
        raise EOFError

    talk = Talk(play([], [[use, rest]]), Screen(as_json=True), "sesn_1", prompt)

    assert talk.follow() is Ending.WAITS
    assert asked == ["Allow send at crm.example? [y]es, [n]o, or the reason for a no: "]


def thread_asks(call: str, acts_on: str, when: str, read_to: str) -> list[Wire]:
    """As a session tells of a thread's call that asks."""
    words = {"words": [acts_on], "changes": [], "whole": True}
    here = {"session_thread_id": "sthr_1", "processed_at": when}
    waits = {"stop_reason": {"type": "requires_action", "event_ids": [call]}}
    row = f"sevt_{read_to}"
    return [
        event(call, "agent.tool_use", name="forget", input={}, x_acts_on=words) | here,
        event(f"{row}_1", "session.thread_status_idle", x_read_to=read_to, **waits) | here,
        event(f"{row}_2", "session.status_idle", **waits),
    ]


def test_a_threads_call_that_is_asked_anew_is_shown_as_it_is_now_and_answered_as_that(play: Play):
    first = thread_asks("u", "The old words.", "2026-01-31T09:30:00Z", "r1")
    again = thread_asks("u", "The new words.", "2026-01-31T09:31:00Z", "r2")
    door = play([*first], [again, again])
    notes = io.StringIO()

    def prompt(_words: str) -> str:
        raise EOFError

    for asks in (prompt, None):
        talk = Talk(door, Screen(out=io.StringIO(), notes=notes), "sesn_1", asks)
        talk._seen = first[-1]["id"]
        assert talk.follow() is Ending.WAITS
    assert "The new words." in notes.getvalue()
    assert "The old words." not in notes.getvalue()
    assert "agent approve sesn_1 u --read-to r2" in notes.getvalue()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terminal.remote.PAUSES", (0.0,) * 3)


def test_a_stream_that_breaks_off_is_taken_up_again_and_each_event_told_once(play: Play):
    delta = {
        "type": "event_delta",
        "event_id": "b",
        "delta": {"type": "content_delta", "index": 0, "content": {"type": "text", "text": "Go"}},
    }
    again = {"type": "error", "error": {"type": "api_error", "message": "Connect again."}}
    log = [said("a", "Before.")]
    door = play(log, [[delta], [said("b", "Good."), again], [], [idle("c")]])
    told = []
    for item in door.follow("sesn_1", after="a"):
        told.append(item.event["id"] if isinstance(item, Stored) else item)
        if told[-1] == "c":
            break
    assert told == [Streaming("b", 0, "Go"), "b", "c"]


def test_a_stream_that_breaks_off_again_and_again_is_declined(play: Play):
    with pytest.raises(Declined) as caught:
        list(play([], []).follow("sesn_1"))
    assert "broke the stream off" in str(caught.value.message)


def test_a_token_that_is_revoked_meanwhile_is_said_so(play: Play):
    over = {
        "type": "error",
        "error": {"type": "authentication_error", "message": "This token is not valid any more."},
    }
    with pytest.raises(Declined) as caught:
        list(play([], [[over]]).follow("sesn_1"))
    assert "not valid any more" in str(caught.value.message)


def test_what_follows_a_deleted_session_ends(play: Play):
    followed = play([said("a", "Hello.")], [[event("z", "session.deleted")]]).follow("sesn_1")
    assert [item.event["id"] for item in followed if isinstance(item, Stored)] == ["a", "z"]


def test_a_turn_that_was_stopped_elsewhere_ends_as_stopped(play: Play):
    talk = Talk(play([], [[idle("c", x_interrupted=True)]]), Screen(as_json=True), "sesn_1", None)
    assert talk.follow() is Ending.STOPPED
