"""What outlives a summary word for word: todos, plan, skills in use, pinned messages, the session's memory.

A pure function of the log, told in place of the part that was summarised away. Which result of a tool is
kept is said on the result (`Keepsake`); calls that wait for somebody stand behind every cut by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.content import Block, text_of
from harness.events import AgentToolResult, SessionMemoryWritten, TodosUpdated
from harness.history import Entry
from harness.texts import Texts

_NOTES = {"state": "session state", "buffer": "working buffer"}
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def kept(
    before: Sequence[Entry],
    since: Sequence[Entry],
    said: Mapping[str, Sequence[Block]],
    *,
    texts: Texts,
    room: int,
) -> str:
    """Everything of the part `before` a cut that stays, within `room` characters; empty: there is nothing.

    `since` is what stands between the cut and its event: what is told anew there is not told twice. `said`
    holds the words of each message to the agent. What does not fit is named, newest things first to stay.
    """
    found = _found(before, since, said)
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


def _found(
    before: Sequence[Entry], since: Sequence[Entry], said: Mapping[str, Sequence[Block]]
) -> dict[str, str]:
    """By name, the most needed first: short state of the work, then what was pinned, then the rest."""
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
