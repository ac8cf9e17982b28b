"""What outlives a summary word for word: todos, plan, skills in use, the session's memory, pinned messages.

A pure function of the log, told in place of the part that was summarised away. Which result of a tool is
kept is said on the result (`Keepsake`); calls that wait for somebody stand behind every cut by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.content import Block, text_of
from harness.events import (
    AgentMessage,
    AgentToolResult,
    InputTaken,
    MessagePinned,
    SessionMemoryWritten,
    TodosUpdated,
)
from harness.history import Entry
from harness.redacted import REMOVED
from harness.texts import Texts

_NOTES = {"state": "session state", "buffer": "working buffer"}
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def kept(
    before: Sequence[Entry],
    since: Sequence[Entry],
    *,
    texts: Texts,
    room: int,
) -> str:
    """Everything that tools left in the part `before` a cut and that stays, within `room` characters; empty:
    there is nothing.

    `since` is what stands between the cut and its event: what is told anew there is not told twice. What does
    not fit is named, newest things first to stay.
    """
    return _told(_found(before, since), texts, room)


def pinned(
    entries: Sequence[Entry],
    before: Sequence[Entry],
    said: Mapping[str, tuple[Block, ...]],
    *,
    texts: Texts,
    room: int,
) -> str:
    """What a person pinned of the part `before` a cut, in its order, within `room` characters, so that the
    last that do not fit are named. `entries`: all that counts, since pins may be younger than the cut.
    `said` holds the words of each message to the agent."""
    wanted: dict[str, bool] = {}
    for entry in entries:
        if isinstance(entry.event, MessagePinned):
            wanted[entry.event.event_id] = entry.event.pinned
    if not any(wanted.values()):
        return ""
    words: dict[str, str] = {}
    for entry in before:
        match entry.event:
            case InputTaken(event_ids=uids):
                words |= {uid: text_of(said[uid]) for uid in uids if uid in said}
            case AgentMessage(content=content) as answer:
                first = answer.continues or entry.uid
                words[first] = words.get(first, "") + text_of(content)
            case _:
                pass
    kept_words = {
        uid: text for uid, text in words.items() if wanted.get(uid) and text not in {"", REMOVED}
    }
    return _told({f"message {uid}": text for uid, text in kept_words.items()}, texts, room)


def _told(found: Mapping[str, str], texts: Texts, room: int) -> str:
    if not found:
        return ""
    lines: list[str] = []
    missing: list[str] = []
    for name, text in found.items():
        piece = f"<kept name={name!r}>\n{text}\n</kept>"
        if len(piece) > room:
            missing.append(name)
            continue
        room -= len(piece)
        lines.append(piece)
    if missing:
        lines.append(texts.not_kept.format(names=", ".join(missing)))
    return "\n".join([texts.kept, *lines])


def _found(before: Sequence[Entry], since: Sequence[Entry]) -> dict[str, str]:
    """By name, the most needed first: short state of the work, then the rest."""
    state: dict[str, str] = {}
    results: dict[str, str] = {}
    for entry in before:
        match entry.event:
            case TodosUpdated(todos=todos):
                state["todos"] = "\n".join(
                    f"{_MARKS[each.status]} {each.content}" for each in todos
                )
            case SessionMemoryWritten(part=part, version=version, text=text):
                state.pop(_NOTES[part], None)
                state[_NOTES[part]] = f"(version {version})\n{text}" if text else ""
            case AgentToolResult(keeps=keeps, is_error=False) as result if keeps is not None:
                results.pop(keeps.name, None)
                results[keeps.name] = keeps.text or text_of(result.content)
            case _:
                pass
    for entry in since:
        match entry.event:
            case TodosUpdated():
                state.pop("todos", None)
            case SessionMemoryWritten(part=part):
                state.pop(_NOTES[part], None)
            case AgentToolResult(keeps=keeps, is_error=False) if keeps is not None:
                results.pop(keeps.name, None)
            case _:
                pass
    newest_first = dict(reversed(results.items()))
    return {name: text for name, text in {**state, **newest_first}.items() if text}
