"""How a person, or a script in her place, talks with an agent from a terminal.

Follows a turn to its rest, asks what the agent may not decide alone, and heeds Ctrl+C: the first one
asks what to tell the agent, an empty line goes on, a second one stops the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from harness.errors import Declined
from harness.events import WAITS_ELSEWHERE
from tools_app.touches import as_text

from .door import Door, Row, Stored
from .screen import Screen, printable

Prompt = Callable[[str], str]
"""Asks for one line; raises EOFError at the end of input and KeyboardInterrupt at Ctrl+C."""


class Ending(IntEnum):
    """How a command ended: the process's exit code. 2 is a usage error, as everywhere."""

    DONE = 0
    REFUSED = 1
    """The server declined what was asked."""
    WAITS = 3
    """A call waits for a person's decision."""
    LIMIT = 4
    """A budget or a limit was reached."""
    FAILED = 5
    """The model could not be asked, or the last try failed."""
    MODEL_REFUSED = 6
    STOPPED = 130


_ENDINGS = {
    "end_turn": Ending.DONE,
    "requires_action": Ending.WAITS,
    "budget_reached": Ending.LIMIT,
    "retries_exhausted": Ending.FAILED,
    "refusal": Ending.MODEL_REFUSED,
}


def _waits_for_worker(event: Row) -> bool:
    """A rest that nobody at a terminal can end; what comes after it is the same turn."""
    # The second is its name on the wire of `/v1`.
    details = event.get("stop_details") or event.get("x_stop_details") or {}
    return event["type"] == "session.status_idle" and details.get("code") in WAITS_ELSEWHERE


class Talk:
    """One conversation at a terminal. Without `prompt` nobody is asked: what waits, waits."""

    def __init__(self, door: Door, screen: Screen, uid: str, prompt: Prompt | None) -> None:
        self._door = door
        self._screen = screen
        self._uid = uid
        self._prompt = prompt
        self._seen = ""
        self._calls: dict[str, Row] = {}
        self._hosts: dict[str, str] = {}
        """The machine that a call goes to, by its id, as it was asked about last."""
        self._earlier: set[str] = set()
        """The ids of calls that were made before this began to follow."""
        self._read: dict[str, str] = {}
        """Up to where a thread's log was read with the question about a call of it, by the call's id."""

    def say(self, text: str) -> Ending:
        """Post a message and follow until everything that was sent is answered."""
        self._seen = self._door.last_event(self._uid)
        self._door.post(self._uid, text)
        return self.follow()

    def finish(self) -> Ending:
        """Follow what is under way, if anything is, until it rests."""
        self._seen = self._door.last_event(self._uid)
        if not self._door.describe(self._uid).busy:
            return Ending.DONE
        return self.follow()

    def follow(self) -> Ending:
        while True:
            try:
                rest = self._until_rest()
                if rest is None:
                    return Ending.STOPPED
                ending = _ENDINGS.get(rest["stop_reason"]["type"], Ending.FAILED)
                if ending is not Ending.WAITS:
                    # The second is its name on the wire of `/v1`.
                    stopped = rest.get("interrupted") or rest.get("x_interrupted")
                    return Ending.STOPPED if stopped else ending
                if self._prompt is None:
                    self._say_what_waits(rest)
                    return ending
                self._ask(rest, self._prompt)
            except KeyboardInterrupt:
                if not self._take_feedback():
                    return Ending.STOPPED
            except EOFError:
                return Ending.WAITS

    def _until_rest(self) -> Row | None:
        """The event the turn rests with; None when the conversation ended."""
        for item in self._door.follow(self._uid, after=self._seen):
            if not isinstance(item, Stored):
                self._screen.text(item)
                continue
            event = item.event
            self._screen.event(event)
            self._seen = event["id"]
            self._note_call(event)
            if event["type"] == "session.status_terminated":
                return None
            if _waits_for_worker(event):
                continue
            if event["type"] == "session.status_idle" and (
                event["stop_reason"]["type"] != "end_turn"
                or not self._door.describe(self._uid).busy
            ):
                return event
        return None

    def _note_call(self, event: Row) -> None:
        """What there is to show of calls, where the event tells it."""
        if event["type"] in {"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"}:
            self._calls[event["id"]] = event
            # The second is its name on the wire of `/v1`.
            self._hosts[event["id"]] = event.get("host") or event.get("x_host") or ""
        if event["type"] == "x.approval_requested":
            self._hosts[event["tool_use_id"]] = event["terms"]["host"]
        if event["type"] == "session.thread_status_idle" and (read := event.get("x_read_to")):
            self._read |= dict.fromkeys(event["stop_reason"]["event_ids"], read)

    def _look_back(self, rest: Row) -> None:
        """Up to a rest that waits for calls of before this began to follow: nobody has seen those here."""
        unknown = set(rest["stop_reason"]["event_ids"]) - self._calls.keys()
        if not unknown:
            return
        self._earlier |= unknown
        for item in self._door.follow(self._uid):
            if isinstance(item, Stored):
                self._note_call(item.event)
                if item.event["id"] == rest["id"]:
                    return

    def _ask(self, rest: Row, prompt: Prompt) -> None:
        self._look_back(rest)
        for uid in rest["stop_reason"]["event_ids"]:
            called = self._shown(rest, uid)
            answer = ""
            while not answer:
                answer = prompt(f"Allow {called}? [y]es, [n]o, or the reason for a no: ").strip()
            allow = answer.lower() in {"y", "yes"}
            reason = "" if allow or answer.lower() in {"n", "no"} else answer
            try:
                read = self._read.get(uid, str(rest["id"]))
                self._door.decide(self._uid, uid, allow=allow, reason=reason, read_to=read)
            except Declined as declined:
                # Somebody else was quicker, say; the log tells what holds.
                self._screen.note(f"! {declined.message}")

    def _say_what_waits(self, rest: Row) -> None:
        self._look_back(rest)
        for uid in rest["stop_reason"]["event_ids"]:
            called = self._shown(rest, uid)
            read = self._read.get(uid, str(rest["id"]))
            how = f"agent approve {self._uid} {uid} --read-to {read}"
            self._screen.note(f"{called} waits for a decision: {how}")

    def _shown(self, rest: Row, uid: str) -> str:
        """What the call is called, once all is shown that a yes to it is for."""
        call = self._calls.get(uid, {})
        if call:
            self._screen.whole(call["input"], told=uid not in self._earlier)
        # With the rest, where it was asked about anew since the call was told.
        again = (rest.get("x_acts_on") or {}).get(uid)
        if told := as_text(again or call.get("x_acts_on") or {}):
            self._screen.note(told)
        name, host = str(call.get("name", uid)), self._hosts.get(uid)
        return f"{name} at {printable(host)}" if host else name

    def _take_feedback(self) -> bool:
        """What to tell the agent at once; false to stop it and leave."""
        words = ""
        if self._prompt is not None:
            try:
                words = self._prompt("\nfeedback> ").strip()
            except EOFError:
                pass
            except KeyboardInterrupt:
                self._door.stop(self._uid)
                return False
            if words:
                self._door.post(self._uid, words, interrupt=True)
            return True
        self._door.stop(self._uid)
        return False
