"""What a client knows of a conversation, whichever way it came: from the log, a stream or a socket.

A transcript is made of what both doors tell: messages, replies, calls, results and rests, each with
its id, in order. Reading them from the line is `lines`'s part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.journeys.site import Logged


class Said(NamedTuple):
    kind: str
    uid: str
    words: str = ""


def of_log(log: Iterable[Logged]) -> list[Said]:
    """The truth: what lies in the database."""
    found = (of_event({**row.payload, "type": row.type, "id": row.uid}) for row in log)
    return [said for said in found if said is not None]


def of_event(event: Mapping[str, Any]) -> Said | None:
    """An event as `/v1` and the log have it; None for what the transcript leaves out."""
    match event["type"]:
        case "user.message" | "agent.message" as kind:
            words = "".join(block["text"] for block in event["content"])
            return Said("message" if kind == "user.message" else "reply", event["id"], words)
        case "agent.tool_use":
            return Said("call", event["id"], event.get("x_name", event["name"]))
        case "agent.tool_result":
            return Said("result", event["tool_use_id"])
        case "session.status_idle":
            return Said("rest", event["id"])
    return None


class Frames:
    """The same out of the frames of `/api/chat/{id}/ws`, of as many connections as it took."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.seq = 0
        self._arriving: dict[str, str] = {}

    def connected(self) -> None:
        """What was arriving is told from its beginning again."""
        self._arriving.clear()

    def take(self, frame: Mapping[str, Any]) -> None:
        found = self._of(frame)
        if found is not None:
            self.said.append(found)
        self.seq = max(self.seq, frame.get("event_seq") or frame.get("seq") or 0)

    def _of(self, frame: Mapping[str, Any]) -> Said | None:
        match frame["type"]:
            case "text_delta":
                sent = self._arriving.get(frame["id"], "")
                assert frame["offset"] == len(sent), "a piece of the text is missing"
                self._arriving[frame["id"]] = sent + frame["content"]
                if "seq" not in frame:
                    return None
                return Said("reply", frame["id"], self._arriving.pop(frame["id"]))
            case "user_message":
                return Said("message", frame["id"], frame["content"])
            case "tool_call":
                return Said("call", frame["tool_use_id"], frame["tool"])
            case "tool_result":
                return Said("result", frame["tool_use_id"])
            case "done" | "interrupted":
                return Said("rest", frame["id"])
            case "text_replaced" | "error" as kind:
                raise AssertionError(f"{kind}: {frame}")
        return None


class Events:
    """The same out of the server-sent events of `/v1`."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.seq = 0
        self._arriving: dict[str, str] = {}

    def connected(self) -> None:
        self._arriving.clear()

    def take(self, event: Mapping[str, Any], seq: int) -> None:
        if event["type"] == "event_delta":
            text = event["delta"]["content"]["text"]
            self._arriving[event["event_id"]] = self._arriving.get(event["event_id"], "") + text
        found = of_event(event)
        if found is not None:
            preview = self._arriving.pop(found.uid, "")
            assert found.words.startswith(preview), "what arrived is no beginning of what is stored"
            self.said.append(found)
        assert not seq or seq == self.seq + 1, f"event {seq} came behind event {self.seq}"
        self.seq = max(self.seq, seq)
