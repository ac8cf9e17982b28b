"""What hooks are asked before a request of the dialogue: read from the log, so that every run asks the same.

Pure. What they answer is `asking`'s part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from harness.content import text_of
from harness.events import (
    BackgroundFinished,
    ContentSetAside,
    InputTaken,
    MessageEdited,
    RetryRequested,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    UserDefineOutcome,
    UserMessage,
    WakeDue,
)
from harness.history import Entry, History
from harness.hooks import MODEL_BEFORE, TURN_BEFORE, About

from .events import HooksAnswered


def before_request(history: History, points: Set[str]) -> Iterator[About]:
    """What is to be asked before the next request of the dialogue: about the turn where words have come that
    no request has carried yet, or none was made in it so far; and about the request itself. Not what the log
    has an answer to behind these words."""
    taken, settled = _since_last_request(history.entries)
    turn = history.turn
    known = {"step": turn.steps + 1, **_words_of(history.entries, taken)}
    if TURN_BEFORE in points - settled and (taken or not turn.steps):
        more = {**known, "steered": bool(turn.steps)}
        yield About(TURN_BEFORE, turn.uid, more=more, tainted_by=history.tainted_by)
    if MODEL_BEFORE in points - settled:
        more = {**known, "context_tokens": history.context_tokens}
        yield About(MODEL_BEFORE, turn.uid, more=more, tainted_by=history.tainted_by)


def _since_last_request(entries: Sequence[Entry]) -> tuple[tuple[str, ...], Set[str]]:
    """The ids of what was taken in since a request of the dialogue last brought something, and at which
    points hooks were asked behind that."""
    taken: list[str] = []
    settled: set[str] = set()
    vain: set[str] = set()
    aside: set[str] = set()
    new = again = judged = False
    for entry in reversed(entries):
        match entry.event:
            case SpanModelRequestEnd(is_error=True) as end:
                vain.add(end.model_request_start_id)
            case SpanModelRequestStart(purpose="main") if entry.uid not in vain:
                break
            case InputTaken(event_ids=uids):
                taken[:0] = () if judged else uids
                new = True
            case RetryRequested():
                new = again = True
            case ContentSetAside(event_id=uid):
                aside.add(uid)
            case HooksAnswered(tool_use_id="") as told if not new:
                settled.add(told.point)
            case HooksAnswered(point=point, told=answers) if point == TURN_BEFORE and not again:
                # Words of a turn that failed later on; those that nobody could judge are asked about now.
                judged = all(answer.verdict == "pass" for answer in answers)
            case _:
                pass
    return tuple(uid for uid in taken if uid not in aside), settled


def _words_of(entries: Sequence[Entry], taken: Sequence[str]) -> dict[str, Any]:
    said: dict[str, str] = {}
    wanted = set(taken)
    for entry in entries if wanted else ():
        event = entry.event
        match event:
            case MessageEdited(event_id=uid) if uid in wanted:
                said[uid] = text_of(event.content)
            case UserMessage() if entry.uid in wanted:
                said[entry.uid] = text_of(event.content)
            case UserDefineOutcome() if entry.uid in wanted:
                said[entry.uid] = event.description
            case WakeDue() if entry.uid in wanted:
                said[entry.uid] = "\n".join(filter(None, (event.reason, event.note)))
            case BackgroundFinished() if entry.uid in wanted:
                said[entry.uid] = "\n".join(filter(None, (event.command, event.detail, event.tail)))
            case _:
                pass
    texts = [said[uid] for uid in taken if said.get(uid)]
    return {"message_ids": list(taken), "text": "\n\n".join(texts)}
