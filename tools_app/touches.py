"""What a call would touch, told before it runs: diffs, a command with its directory, a host.

For people's eyes; no rule judges by it, and what cannot be told is left out. It is told while the log is
locked: what would take long is not told. An app that offers a tool whose arguments only name what it acts on
tells here what that is (`tell_with`), for every place that shows the question. Who asks keeps what was told
(`keep_with`), and the tool refuses to act on anything else (`require_as_told`): so a yes holds for what was
seen, and for nothing that took its place meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import User
from harness.errors import AgentError, TooLarge, ToolError
from harness.events import DiffDisplay
from reading.hostnames import LONGEST_ADDRESS, split_address
from reading.unseen import visible
from tools_app.diffs import diff_of
from tools_app.textfiles import decode, find_first, replace_at
from tools_app.workspace import Workspace, workspace_for

logger = logging.getLogger(__name__)

LARGEST = 200_000
"""Bytes of a file up to which a change of it is shown beforehand; a longer one is not read."""
STEPS = 50_000
"""For matching lines: some milliseconds."""
MOST_LINES = 2_000
"""Lines of a change that people are shown, as `rendering.diff` has them in one table."""
COMMANDS = ("bash", "background_run")

_TAKEN_OUT = gettext_noop("What it showed is forgotten.")
_FAILS = gettext_noop("What this call names is not there; it would fail.")
_FOR_DECIDERS = gettext_noop("What this call acts on is shown to those alone who may decide on it.")

Teller = Callable[[str, str, Mapping[str, Any]], dict[str, Any]]
"""From the conversation's id, the tool's name and the input to what `told_of` makes."""
Kept = Callable[[int, str], Mapping[str, Any]]
"""From the key of a conversation and the id of a call to what was told when it was asked about; empty: it was
not asked about."""

Seen = Callable[[User, int, Collection[str]], Mapping[str, Mapping[str, Any]]]
"""From a reader, the key of a conversation and ids of its calls to what was told of those that were asked
about, by their ids: `for_others` where the reader may not see the question."""

Forget = Callable[[int, str], None]
"""Called with the key of an organisation and the id of what is forgotten, in the transaction that does it."""

Hold = Callable[[Sequence[str]], None]
"""Called with `about` of what was told, in the transaction that keeps it: until that ends, none of these is
forgotten."""

_NAMING = ("changes", "unknown")
_tellers: dict[str, Teller] = {}
_holding: dict[str, Hold] = {}
_kept: list[tuple[Kept, Seen, Forget]] = []


def tell_with(teller: Teller, *tools: str, hold: Hold | None = None) -> None:
    """Have `teller` tell of calls of these tools from now on; with `hold`, of what may be forgotten."""
    _tellers.update(dict.fromkeys(tools, teller))
    if hold is not None:
        _holding.update(dict.fromkeys(tools, hold))


def keep_with(kept: Kept, seen: Seen, forget: Forget) -> None:
    """Have `require_as_told`, `shown_before` and `forget_told` ask these; one for all."""
    _kept[:] = [(kept, seen, forget)]


def is_told_of(tool: str) -> bool:
    return tool in _tellers


def shown_before(
    reader: User, conversation: int, calls: Mapping[str, str]
) -> Mapping[str, Mapping[str, Any]]:
    """By their ids, what people were shown beside the arguments of those of `calls` (ids with the names of
    their tools) that were asked about, as far as this reader may see it. With one look for all, and none
    where the arguments say all."""
    told = [uid for uid, tool in calls.items() if is_told_of(tool)]
    return _kept[0][1](reader, conversation, told) if told and _kept else {}


def forget_told(organisation: int, uid: str) -> None:
    """Take out of questions, answered or not, what they show of a thing that is forgotten; none of them lets
    its call act any more."""
    for _told, _seen, forget in _kept:
        forget(organisation, uid)


def names_more(conversation_uid: str, tool: str, given: Mapping[str, Any]) -> bool:
    """Whether a person who reads the arguments alone does not see what they name."""
    return is_told_of(tool) and touched_by(conversation_uid, tool, given).get("kind") in _NAMING


def changed_text(path: str, before: str | None, after: str | None) -> DiffDisplay:
    """One text that takes the place of another; None: there is none."""
    old, new = before or "", after or ""
    if not (old.endswith("\n") or new.endswith("\n")):
        # Neither has one at its end, so that is no change.
        old, new = f"{old}\n" if old else "", f"{new}\n" if new else ""
    return diff_of(path, old, new, created=before is None, steps=STEPS)


def told_of(
    changes: Sequence[DiffDisplay],
    *words: tuple[str, Mapping[str, Any]],
    bound: Sequence[str] = (),
    about: Sequence[str] = (),
    whole: bool = True,
) -> dict[str, Any]:
    """What a teller tells: in sentences that are translated when they are read (`gettext_noop`) with what is
    filled in, as changes of texts, and by what these are bound (`require_as_told`). `about`: the ids of what
    may be forgotten (`forget_told`). `whole`: there is no more to see than these."""
    return {
        "kind": "changes",
        "words": [[sentence, dict(names)] for sentence, names in words],
        "changes": [change.model_dump(exclude={"type"}) for change in changes],
        "whole": whole and all(map(_is_whole, changes)),
        "bound": _digest(bound),
        "about": list(about),
    }


def taken_out() -> dict[str, Any]:
    """In the place of what was told of something that is forgotten."""
    return {
        "kind": "changes",
        "words": [[_TAKEN_OUT, {}]],
        "changes": [],
        "whole": True,
        "bound": "",
    }


def for_others(touches: Mapping[str, Any]) -> Mapping[str, Any]:
    """In the place of what was told, for who may not see the question: what it names may be another's own."""
    if not as_data(touches):
        return {}
    return {"kind": "unknown", "words": [[_FOR_DECIDERS, {}]], "whole": False}


def require_as_told(conversation: int, call_uid: str, bound: Sequence[str]) -> None:
    """Raises ToolError where people were asked about this call and what it would act on is another by now.
    Called in the transaction of the act, which that undoes."""
    told = _kept[0][0](conversation, call_uid) if _kept else {}
    if told and told.get("bound") != _digest(bound):
        raise ToolError(
            "What this would act on has changed since a person was asked, so nothing was done.",
            hint="Look at it as it is now, and call again: then the person is shown that.",
        )


def is_shown_whole(touches: Mapping[str, Any]) -> bool:
    """Whether people see all that it tells of."""
    return touches.get("whole") is not False


def words_of(touches: Mapping[str, Any]) -> list[str]:
    """In the reader's language, with every sign to be seen."""
    told = [visible(_(sentence) % names) for sentence, names in touches.get("words", [])]
    if not is_shown_whole(touches) and not (told and touches.get("kind") == "unknown"):
        told.append(_("Not all that this call would change can be shown here."))
    return told


def as_data(touches: Mapping[str, Any]) -> dict[str, Any]:
    """For programs: `words`, `changes` as unified diffs, and `whole`; empty where the arguments say all."""
    words, changes = words_of(touches), changes_in(touches)
    if not words and not changes:
        return {}
    return {
        "words": words,
        "changes": [change.model_dump(exclude={"type"}) for change in changes],
        "whole": is_shown_whole(touches),
    }


def data_before(
    reader: User, conversation: int, calls: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """`as_data` of each of `shown_before` that has any."""
    told = shown_before(reader, conversation, calls)
    return {uid: data for uid, touches in told.items() if (data := as_data(touches))}


def as_text(data: Mapping[str, Any]) -> str:
    """Of `as_data`, for forms that have nothing but text: the words, then each change with every sign to be
    seen."""
    parts = [visible(words) for words in data.get("words", [])]
    shown = ((visible(one["path"]), visible(one["diff"])) for one in data.get("changes", []))
    parts += [f"{path}\n{diff}" for path, diff in shown]
    return "\n\n".join(parts)


def changes_in(touches: Mapping[str, Any]) -> list[DiffDisplay]:
    return [DiffDisplay.model_validate(change) for change in touches.get("changes", [])]


def _is_whole(change: DiffDisplay) -> bool:
    lines = change.diff.split("\n")
    shown = sum(line[:1] in {"+", "-"} for line in lines)
    return shown == change.added + change.removed and len(lines) <= MOST_LINES


def _digest(bound: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(bound)).encode()).hexdigest()


def touched_by(conversation_uid: str, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"kind": "changes" | "diff" | "command" | "address" | "path" | "unknown", …}`, or `{}`. Raises
    nothing."""
    told = is_told_of(tool)
    words: list[list[Any]] = []
    try:
        if told:
            return _tellers[tool](conversation_uid, tool, given)
        if tool in COMMANDS:
            return {
                "kind": "command",
                "command": str(given.get("command", "")),
                "directory": str(given.get("directory") or "workspace"),
            }
        if tool in {"write_file", "edit_file"}:
            return _change(workspace_for(conversation_uid), tool, given)
        if isinstance(url := given.get("url"), str):
            known = split_address(url).hostname if len(url) <= LONGEST_ADDRESS else None
            return {"kind": "address", "url": url, "host": known or ""}
        if isinstance(path := given.get("path"), str) and path:
            return {"kind": "path", "path": path}
        return {}
    except AgentError:
        # Its own words are for the model, which reads them when the call has failed.
        words = [[_FAILS, {}]]
    except (OSError, ValueError):
        pass
    except Exception:  # a preview must never keep a question from being asked
        logger.exception("what a call of %s would touch could not be told", tool)
    return {"kind": "unknown", "words": words, "whole": False} if told else {"kind": "unknown"}


def told_to_keep(conversation_uid: str, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """`touched_by` for who keeps it in the same transaction: what it shows is not forgotten before others can
    take it out again (`forget_told`)."""
    touches = touched_by(conversation_uid, tool, given)
    hold, about = _holding.get(tool), touches.get("about")
    if hold is None or not about:
        return touches
    hold(about)
    # Anew: some of it may have been forgotten right before it was held.
    return touched_by(conversation_uid, tool, given)


def _change(root: Path, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    path = str(given.get("path", ""))
    unshown = {"kind": "path", "path": path}
    if sum(len(value) for value in given.values() if isinstance(value, str)) > 2 * LARGEST:
        return unshown
    try:
        before = _text(Workspace(root), path)
    except TooLarge:
        return unshown
    if tool == "write_file":
        after = str(given.get("content", ""))
    else:
        old, new = str(given.get("old_text", "")), str(given.get("new_text", ""))
        places = find_first(before, old) if before is not None and old else []
        if before is None or len(places) != 1:
            return unshown
        after = replace_at(before, places[0], old, new)
    if len(after) > LARGEST:
        return unshown
    shown = diff_of(path, before or "", after, created=before is None, steps=STEPS)
    return {"kind": "diff", **shown.model_dump(exclude={"type"})}


def _text(workspace: Workspace, path: str) -> str | None:
    """None: there is no such file. Bytes that are no text count as an empty one. Raises `TooLarge`."""
    try:
        found = decode(workspace.read_bytes(path, LARGEST))
    except TooLarge:
        raise
    except AgentError:
        return None
    return found.text if found else ""
