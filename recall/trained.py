"""The memory tool that models were trained on (`memory_20250818`), over the stores a conversation was given.

Its commands, paths below `/memories` and answers are that contract's; what they do is done by the actions
that `recall.writing` uses. A store is a folder by its name. When it is told of is decided in `harness.kit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from conversations.models import Conversation
from harness.errors import AgentError, ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from memory.access import Author
from memory.actions.memories import change_memory, delete_memory
from memory.models import AuthorKind, Memory
from tools_app.touches import require_as_told

from .changes import change_in, create_in
from .models import Access, AttachedStore
from .mounted import attached_to, follow_changes, shown_in, writable
from .strangers import has_strangers_words, mark_as_strangers, require_asked
from .tools import EXTRA, bound_to
from .writing import WRITING

SCHEMA = "memory_20250818"
ROOT = "/memories"
TAKING_AWAY = ("delete", "rename")
"""Commands after which others do not find what they were told."""
DEPTH = 2
"""Levels that a folder is shown with."""
AROUND = 4
"""Lines that are shown around what was replaced."""
NUMBERED = 6
"""Width of a line's number."""


@dataclass(frozen=True, slots=True)
class Place:
    attached: AttachedStore
    path: str
    """In the store; empty: the store itself."""

    @property
    def shown(self) -> str:
        return f"{ROOT}/{self.attached.slug}{self.path}"


@dataclass(frozen=True, slots=True)
class Work:
    """One command: who works where."""

    context: ToolContext
    conversation: Conversation
    given: Sequence[AttachedStore]

    @property
    def author(self) -> Author:
        return Author(AuthorKind.SESSION, self.conversation.uid)

    def place(self, path: str) -> Place | None:
        """None: the folder of all stores. Raises ToolError."""
        whole = path.rstrip("/") or "/"
        if whole == ROOT:
            return None
        if not whole.startswith(f"{ROOT}/"):
            raise ToolError(f"Path must start with {ROOT}, got: {path[:200]}")
        slug, slash, rest = whole.removeprefix(f"{ROOT}/").partition("/")
        if {"", ".", ".."} & {slug, *(rest.split("/") if slash else ())}:
            raise ToolError(f"Path {path[:200]} would escape {ROOT} directory")
        for attached in self.given:
            if attached.slug == slug:
                return Place(attached, f"/{rest}" if slash else "")
        raise _missing(path)

    def to_write(self, path: str) -> Place:
        place = self.place(path)
        if place is None or not place.path:
            names = ", ".join(f"{ROOT}/{each.slug}" for each in self.given)
            raise ToolError(
                f"The path {path[:200]} is a memory store. Give a path below one of: {names}."
            )
        if not writable(place.attached):
            raise ToolError(f"{ROOT}/{place.attached.slug} is read only.")
        return place

    def below(self, place: Place) -> list[Memory]:
        """What is shown of it: the one at this path, or those in the folder."""
        return [
            each
            for each in shown_in(self.conversation, place.attached.store)
            if each.path == place.path or each.path.startswith(f"{place.path}/")
        ]

    def file(self, place: Place) -> Memory:
        found = self.below(place)
        if not found:
            raise _missing(place.shown)
        if found[0].path != place.path:
            raise ToolError(f"The path {place.shown} is not a file.")
        return found[0]

    def change(self, place: Place, memory: Memory, content: str) -> None:
        change_in(
            self.conversation,
            place.attached,
            memory,
            content,
            untrusted=has_strangers_words(self.conversation),
            expected_sha256=memory.sha256,
        )


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path[:200]} does not exist. Please provide a valid path.")


def _with_words_of(memory: Memory, text: str) -> ToolOutput:
    """What was written here where strangers' words were read is theirs until a person says yes."""
    source = memory.path if memory.waits else ""
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def work(context: ToolContext, arguments: dict[str, Any]) -> str | ToolOutput:
    command = arguments["command"]
    needed, perform = _COMMANDS[command]
    if lacking := [name for name in needed if name not in arguments]:
        raise ToolError(f"{command} needs {', '.join(lacking)}.")
    rows = Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
    conversation = rows.get(pk=context.extras[EXTRA])
    given = attached_to(conversation)
    try:
        _follow(conversation, given)
        with transaction.atomic():
            told = perform(Work(context, conversation, given), arguments)
        # Behind the transaction: what is rolled back must not have reached the folders.
        if command != "view":
            _follow(conversation, given)
        return told
    except ToolError:
        raise
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem


def _follow(conversation: Conversation, given: Sequence[AttachedStore]) -> None:
    for attached in given:
        follow_changes(conversation, attached)


# --- commands -------------------------------------------------------------------------------------


def _view(work: Work, arguments: Mapping[str, Any]) -> str | ToolOutput:
    path = arguments["path"].rstrip("/")
    place = work.place(path)
    found = work.below(place) if place is not None and place.path else []
    if found and place is not None and found[0].path == place.path:
        memory = found[0]
        Memory.objects.filter(pk=memory.pk).count_use()
        lines = memory.content.split("\n")
        return _with_words_of(memory, _numbered(lines, path, arguments.get("view_range")))
    if place is None:
        there = {
            f"/{each.slug}{memory.path}": memory
            for each in work.given
            for memory in shown_in(work.conversation, each.store)
        }
        empty = [f"/{each.slug}" for each in work.given]
    else:
        if place.path and not found:
            raise _missing(path)
        there = {memory.path.removeprefix(place.path): memory for memory in work.below(place)}
        empty = []
    sizes = {name: memory.size for name, memory in there.items()}
    waiting = next((memory for memory in there.values() if memory.waits), None)
    told = _listed(path, sizes, empty)
    # Their names are of the same words.
    return told if waiting is None else _with_words_of(waiting, told)


def _listed(path: str, sizes: Mapping[str, int], folders: Sequence[str]) -> str:
    """`sizes` by path below; `folders` are there also where nothing is in them."""
    shown = dict.fromkeys((f"{name}/" for name in folders), 0)
    for name, size in sizes.items():
        parts = name.split("/")[1:]
        if any(part.startswith(".") for part in parts):
            continue
        for depth in range(1, min(len(parts), DEPTH + 1)):
            above = "/" + "/".join(parts[:depth]) + "/"
            shown[above] = shown.get(above, 0) + size
        if len(parts) <= DEPTH:
            shown[name] = size
    lines = [f"{_size(sum(sizes.values()))}\t{path}"]
    lines += [f"{_size(size)}\t{path}{name}" for name, size in sorted(shown.items())]
    head = f"Here're the files and directories up to {DEPTH} levels deep in {path}, excluding hidden items:"
    return "\n".join((head, *lines))


def _size(count: int) -> str:
    if count < 1_024:
        return f"{count}B"
    whole, rest = divmod(count, 1_024)
    return f"{whole}K" if not rest else f"{count / 1_024:.1f}K"


def _numbered(lines: Sequence[str], path: str, wanted: Sequence[int] | None) -> str:
    first, last = 1, len(lines)
    if wanted:
        if len(wanted) != 2:
            raise ToolError("Invalid `view_range` parameter: it has a first and a last line.")
        first, last = int(wanted[0]), len(lines) if wanted[1] == -1 else int(wanted[1])
        if not 1 <= first <= min(last, len(lines)):
            raise ToolError(
                f"Invalid `view_range` parameter: {[*wanted]}. "
                f"Its lines should be within the range [1, {len(lines)}]."
            )
    told = _lines(lines, first, min(last, len(lines)))
    return f"Here's the content of {path} with line numbers:\n{told}"


def _lines(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(
        f"{number:>{NUMBERED}}\t{lines[number - 1]}" for number in range(first, last + 1)
    )


def _create(work: Work, arguments: Mapping[str, Any]) -> str:
    place = work.to_write(arguments["path"])
    if work.below(place):
        raise ToolError(f"File {place.shown} already exists")
    create_in(
        work.conversation,
        place.attached,
        place.path,
        arguments["file_text"],
        untrusted=has_strangers_words(work.conversation),
        call=work.context.call_id,
    )
    return f"File created successfully at: {place.shown}"


def _str_replace(work: Work, arguments: Mapping[str, Any]) -> ToolOutput:
    place, old = work.to_write(arguments["path"]), arguments["old_str"]
    memory = work.file(place)
    before, found, behind = memory.content.partition(old)
    if not old or not found:
        raise ToolError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {place.shown}."
        )
    if old in behind:
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, _places(memory.content, old)))}. Please ensure it is unique"
        )
    content = f"{before}{arguments['new_str']}{behind}"
    work.change(place, memory, content)
    lines = content.split("\n")
    first = before.count("\n") + 1
    last = first + arguments["new_str"].count("\n")
    shown = _lines(lines, max(1, first - AROUND), min(len(lines), last + AROUND))
    edited = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return _with_words_of(memory, f"{edited}\n{shown}")


def _places(content: str, part: str) -> Iterator[int]:
    """The lines in which it begins."""
    line, end = 1, 0
    while (start := content.find(part, end)) >= 0:
        line += content.count("\n", end, start)
        yield line
        line += part.count("\n")
        end = start + len(part)


def _insert(work: Work, arguments: Mapping[str, Any]) -> str:
    place, line = work.to_write(arguments["path"]), int(arguments["insert_line"])
    memory = work.file(place)
    lines = memory.content.removesuffix("\n").split("\n") if memory.content else []
    if not 0 <= line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, arguments["insert_text"].removesuffix("\n"))
    content = "\n".join(lines) + "\n"
    work.change(place, memory, content)
    return f"The file {place.shown} has been edited."


def taken_away(
    work: Work, arguments: Mapping[str, Any]
) -> tuple[Place, Place | None, list[Memory]]:
    """From where (and, of those that are moved, to where) a command of `TAKING_AWAY` takes which memories.
    Raises ToolError."""
    if arguments["command"] == "rename":
        old, new = work.to_write(arguments["old_path"]), work.to_write(arguments["new_path"])
    else:
        old, new = work.to_write(arguments["path"]), None
    found = work.below(old)
    if not found:
        raise ToolError(f"The path {old.shown} does not exist")
    return old, new, _with_what_they_change(found)


def bound_by(new: Place | None, memories: Sequence[Memory]) -> list[str]:
    """What a yes to taking these away holds for."""
    return [*bound_to(*memories), "" if new is None else new.shown]


def _require_told(work: Work, arguments: Mapping[str, Any]) -> list[Memory]:
    """What is taken away, where people who were asked were shown just that. Raises ToolError."""
    _old, new, memories = taken_away(work, arguments)
    require_asked(work.context, work.conversation)
    require_as_told(work.conversation.pk, work.context.call_id, bound_by(new, memories))
    return memories


def _delete(work: Work, arguments: Mapping[str, Any]) -> str:
    place = work.to_write(arguments["path"])
    for memory in _require_told(work, arguments):
        delete_memory(
            actor=work.conversation.owner,
            memory=memory,
            expected_sha256=memory.sha256,
            author=work.author,
        )
    return f"Successfully deleted {place.shown}"


def _with_what_they_change(memories: Sequence[Memory]) -> list[Memory]:
    """Each with that behind it, in whose place it is shown."""
    found = [(each, each.supersedes if each.is_suggestion else None) for each in memories]
    return [each for pair in found for each in pair if each is not None]


def _rename(work: Work, arguments: Mapping[str, Any]) -> str:
    old, new = work.to_write(arguments["old_path"]), work.to_write(arguments["new_path"])
    if old.attached != new.attached:
        raise ToolError(f"{old.shown} and {new.shown} are in different memory stores.")
    found = work.below(old)
    if not found:
        raise ToolError(f"The path {old.shown} does not exist")
    if work.below(new):
        raise ToolError(f"The destination {new.shown} already exists")
    _require_told(work, arguments)
    for memory in found:
        path = new.path + memory.path.removeprefix(old.path)
        moved = _with_what_they_change([memory])[-1]
        change_memory(
            actor=work.conversation.owner,
            memory=moved,
            path=path,
            expected_sha256=moved.sha256,
            author=work.author,
        )
        if memory.waits:
            mark_as_strangers(work.conversation, new.attached, path)
    return f"Successfully renamed {old.shown} to {new.shown}"


_Command = Callable[[Work, Mapping[str, Any]], str | ToolOutput]
_COMMANDS: Mapping[str, tuple[tuple[str, ...], _Command]] = {
    "view": (("path",), _view),
    "create": (("path", "file_text"), _create),
    "str_replace": (("path", "old_str", "new_str"), _str_replace),
    "insert": (("path", "insert_line", "insert_text"), _insert),
    "delete": (("path",), _delete),
    "rename": (("old_path", "new_path"), _rename),
}


# --- the tool -------------------------------------------------------------------------------------


def memory_tool(given: Sequence[AttachedStore]) -> Tool:
    """For these stores; it reads only where none of them may be written."""
    writes = any(each.access == Access.READ_WRITE for each in given)
    return Tool(
        name="memory",
        description=(
            "View, create, change, rename and delete the texts in this conversation's memory stores. Each "
            f"store is a folder in {ROOT}; view {ROOT} to see them."
        ),
        input_schema=_INPUT,
        handler=work,
        effect=Effect.WORKSPACE if writes else Effect.READ,
        apart=True,
        asks_once_tainted=lambda arguments: arguments.get("command") in TAKING_AWAY,
        granted=True,
        in_order=True,
        intent=_intent,
        owner="recall",
        trained=SCHEMA,
        stands_for=tuple(tool.name for tool in WRITING) if writes else (),
    )


def _intent(arguments: Mapping[str, Any]) -> str:
    path = arguments.get("path") or arguments.get("old_path") or ""
    return f"{arguments.get('command', '')} {path}".strip()


_PATH = {"type": "string", "minLength": 1, "maxLength": 1_200}
_TEXT = {"type": "string", "maxLength": 102_400}
_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "enum": list(_COMMANDS)},
        "path": _PATH,
        "view_range": {"type": ["array", "null"], "items": {"type": "integer"}},
        "file_text": _TEXT,
        "old_str": _TEXT,
        "new_str": _TEXT,
        "insert_line": {"type": "integer"},
        "insert_text": _TEXT,
        "old_path": _PATH,
        "new_path": _PATH,
    },
    "required": ["command"],
}
