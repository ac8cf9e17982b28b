"""What the command line prints: the agent's words on stdout, everything else on stderr.

So `agent ask … > answer.md` keeps the answer alone. With `as_json` stdout carries one event a line
and nothing else, for scripts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from harness.events import WAITS_ELSEWHERE
from reading.unseen import visible_json

from .door import Row, Streaming, Summary

INPUT_WIDTH = 160
"""Characters of a call's arguments on its line."""

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Screen:
    def __init__(
        self, *, as_json: bool = False, out: TextIO | None = None, notes: TextIO | None = None
    ) -> None:
        self.as_json = as_json
        self._out = out or sys.stdout
        self._notes = notes or sys.stderr
        self._coloured = self._notes.isatty()
        self._said: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._in_line = False

    def event(self, event: Row) -> None:
        if self.as_json:
            self._line(json.dumps(event, ensure_ascii=False))
            return
        match event["type"]:
            case "agent.message":
                text = "".join(block.get("text", "") for block in event["content"])
                self._say(text[self._said.pop(event["id"], 0) :])
                self._end_line()
            case "agent.tool_use" | "agent.mcp_tool_use" | "agent.custom_tool_use":
                self._names[event["id"]] = event["name"]
                self.note(f"→ {event['name']} {_short(event['input'])}")
            case "agent.tool_result" | "agent.mcp_tool_result" | "user.tool_result":
                if event.get("is_error"):
                    call = event.get("tool_use_id") or event.get("mcp_tool_use_id") or ""
                    words = "".join(part.get("text", "") for part in event.get("content") or ())
                    self.note(f"✗ {self._names.get(call, 'tool')}: {_one_line(words)}")
            case "session.error":
                error = event["error"]
                self.note(f"! {error.get('message', '')} {error.get('hint') or ''}".rstrip())
            case "session.status_rescheduled":
                self.note("… it is tried again soon")
            case "session.status_idle":
                details = event.get("stop_details") or {}
                if details.get("message") and details.get("code") not in WAITS_ELSEWHERE:
                    self.note(f"! {details['message']} {details.get('hint') or ''}".rstrip())
            case _:
                pass

    def text(self, streaming: Streaming) -> None:
        if self.as_json:
            return
        said = self._said.get(streaming.block, 0)
        new = streaming.text[max(0, said - streaming.offset) :]
        if new and streaming.offset <= said:
            self._said[streaming.block] = said + len(new)
            self._say(new)

    def note(self, words: str) -> None:
        """A line for the person, not part of any answer."""
        self._end_line()
        words = printable(words)
        print(f"{_DIM}{words}{_PLAIN}" if self._coloured else words, file=self._notes, flush=True)

    def whole(self, given: Row, *, told: bool = True) -> None:
        """The arguments of a call to their end, where the line about it shows less, or was not `told`."""
        if _short(given) != (whole := visible_json(given, indent=None)) or not told:
            self.note(whole)

    def summaries(self, found: Iterable[Summary]) -> None:
        for one in found:
            if self.as_json:
                self._line(json.dumps(_as_dict(one), ensure_ascii=False))
            else:
                state = "working" if one.busy else one.stop_reason or one.status
                title = _one_line(one.title) or "(no title)"
                self._line(f"{one.uid}  {one.active_at[:16]}  {state:<17} {title}")

    def pieces(self, pieces: Iterable[str]) -> None:
        for piece in pieces:
            self._out.write(piece)
        self._out.flush()

    def _say(self, text: str) -> None:
        if text:
            self._out.write(printable(text))
            self._out.flush()
            self._in_line = not text.endswith("\n")

    def _line(self, text: str) -> None:
        self._out.write(f"{text}\n")
        self._out.flush()

    def _end_line(self) -> None:
        if self._in_line:
            self._line("")
            self._in_line = False


def _as_dict(one: Summary) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Summary.__slots__}


def _short(value: Any) -> str:
    text = _one_line(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= INPUT_WIDTH else text[: INPUT_WIDTH - 1] + "…"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def printable(text: str) -> str:
    """Without control characters: what an agent read somewhere must not steer a person's terminal."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )
