"""The demo provider: a rule-driven offline agent for people who have no key yet.

It is no language model and says so. What it answers is a pure function of the request, so it goes on
after a restart like any other provider. What it writes into files is in `demo_files`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.content import Text, text_of
from harness.messages import Message, ModelRequest, Piece, ToolAnswer, ToolCall, Usage
from harness.schemachecks import INLINE, Checker, TooCostly
from harness.schemas import Unsound
from providers import demo_texts as texts
from providers.demo_files import DemoFile, files_for, summary_of
from providers.scripted import Call, Reply, Say, Think, play, reply, say, think
from providers.table import ProviderConfig

PAUSE = 0.015
"""Seconds before each delta, so that one sees the text stream."""
CHUNK = 12
"""Characters per delta."""

_CHARACTERS_PER_TOKEN = 4
_SHOWN_CHARACTERS = 2_000
_MOST_NUMBERS = 2_000


def build(config: ProviderConfig) -> Demo:
    return Demo()


class Demo:
    name = "demo"

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        async for piece in play(replace(answer(request), chunk=CHUNK, delay=self._pause)):
            yield piece

    async def aclose(self) -> None:
        """There is nothing to release."""


def answer(request: ModelRequest) -> Reply:
    """The reply to `request`, whole and at once, with its usage estimated at four characters a token."""
    given = _compaction(request) if request.purpose == "compaction" else _by_rules(_turn(request))
    said = sum(_size(part) for part in given.parts)
    usage = Usage(
        input_tokens=_size_of_prompt(request) // _CHARACTERS_PER_TOKEN,
        output_tokens=max(1, said // _CHARACTERS_PER_TOKEN),
    )
    return replace(given, usage=usage)


# --- reading the request --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Done:
    """A call of this turn and its answer in words."""

    call: ToolCall
    said: str
    failed: bool


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a person asked last, and what was done about it since."""

    words: str
    done: tuple[_Done, ...]
    tools: Mapping[str, Mapping[str, Any]]
    """Schemas of the tools that may be called now, by name."""

    def made(self, name: str) -> tuple[_Done, ...]:
        return tuple(done for done in self.done if done.call.name == name)

    def call(self, name: str, /, **arguments: Any) -> tuple[Call, ...]:
        """One call, or none when the request does not offer it with such arguments."""
        schema = self.tools.get(name)
        if schema is None or not _fits(schema, arguments):
            return ()
        return (Call(name, arguments),)


def _fits(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    try:
        return not Checker(schema).faults(arguments, steps=INLINE)
    except (TooCostly, Unsound):
        return False


def _turn(request: ModelRequest) -> _Turn:
    start = max(
        (number for number, message in enumerate(request.messages) if _asks(message)), default=0
    )
    asking = request.messages[start] if request.messages else Message("user", ())
    answers = {
        part.call_id: part
        for message in request.messages[start:]
        for part in message.parts
        if isinstance(part, ToolAnswer)
    }
    done = tuple(
        _Done(part, text_of(answers[part.id].content), answers[part.id].is_error)
        for message in request.messages[start + 1 :]
        for part in message.parts
        if isinstance(part, ToolCall) and part.id in answers
    )
    offered = request.tools if request.tool_choice == "auto" else ()
    return _Turn(_words(asking), done, {tool.name: tool.input_schema for tool in offered})


def _asks(message: Message) -> bool:
    """Whether a person asks something here. Beside answers only what matches a rule counts, since the
    harness puts its own hints there."""
    if message.role != "user" or not _words(message):
        return False
    answers = any(isinstance(part, ToolAnswer) for part in message.parts)
    return not answers or any(rule.search(_words(message)) for rule, _ in _RULES)


def _words(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text)).strip()


def _size_of_prompt(request: ModelRequest) -> int:
    size = len(request.system) + sum(len(str(dict(tool.input_schema))) for tool in request.tools)
    for message in request.messages:
        for part in message.parts:
            match part:
                case Text():
                    size += len(part.text)
                case ToolCall():
                    size += len(part.name) + len(str(dict(part.input)))
                case ToolAnswer():
                    size += len(text_of(part.content))
                case _:
                    pass
    return size


def _size(part: object) -> int:
    match part:
        case Say() | Think():
            return len(part.text)
        case Call():
            return len(part.name) + len(str(dict(part.input)))
        case _:
            return 0


# --- rules ----------------------------------------------------------------------------------------


def _by_rules(turn: _Turn) -> Reply:
    for pattern, handle in _RULES:
        found = pattern.search(turn.words)
        if found:
            return handle(turn, found)
    return reply(texts.UNKNOWN)


def _help(turn: _Turn, found: re.Match[str]) -> Reply:
    return reply(texts.WELCOME)


def _plan_and_write(turn: _Turn, found: re.Match[str]) -> Reply:
    """Plan, write, edit, tick off, sum up: the next of these that has not been done."""
    files = files_for(turn.words)
    main = files[0]
    failed = [done for done in turn.done if done.failed and done.call.name != "todo_write"]
    if failed:
        return reply(texts.failure(failed[0].call.name, failed[0].said))
    plans = turn.made("todo_write")
    written = {str(done.call.input.get("path")) for done in turn.made("write_file")}
    missing = [file for file in files if file.path not in written]
    if missing and not plans and (plan := _todo_call(turn, files, 0)):
        return reply(think(texts.thoughts(files)), say(texts.planning(files)), *plan)
    if missing:
        calls = [
            call
            for file in missing
            for call in turn.call("write_file", path=file.path, content=file.content)
        ]
        return reply(say(texts.WRITING), *calls) if calls else reply(texts.no_tool("write_file"))
    if not turn.made("edit_file"):
        edit = turn.call("edit_file", path=main.path, old_text=main.old, new_text=main.new)
        if edit:
            return reply(say(texts.editing(main)), *edit, *_todo_call(turn, files, 3))
    open_plan = bool(plans) and not plans[-1].failed and not _all_ticked(plans[-1])
    if open_plan and (ticked := _todo_call(turn, files, len(_steps(files)))):
        return reply(*ticked)
    return reply(summary_of(files, edited=bool(turn.made("edit_file"))))


def _steps(files: tuple[DemoFile, DemoFile]) -> tuple[tuple[str, str], ...]:
    main, second = files
    return (
        (f"Write {main.path}", f"Writing {main.path}"),
        (f"Write {second.path}", f"Writing {second.path}"),
        (f"Improve {main.path}", f"Improving {main.path}"),
        ("Sum up", "Summing up"),
    )


def _todo_call(turn: _Turn, files: tuple[DemoFile, DemoFile], done: int) -> tuple[Call, ...]:
    """The plan with its first `done` steps ticked off and the next one under way."""
    todos = [
        {
            "content": content,
            "active_form": active_form,
            "status": "completed"
            if number < done
            else "in_progress"
            if number == done
            else "pending",
        }
        for number, (content, active_form) in enumerate(_steps(files))
    ]
    return turn.call("todo_write", todos=todos)


def _all_ticked(plan: _Done) -> bool:
    return all(todo.get("status") == "completed" for todo in plan.call.input.get("todos", ()))


def _list_files(turn: _Turn, found: re.Match[str]) -> Reply:
    return _one_call(turn, "list_files", texts.LISTING, {})


def _read(turn: _Turn, found: re.Match[str]) -> Reply:
    path = found["path"].rstrip(".,;:!?")
    return _one_call(turn, "read_file", texts.reading(path), {"path": path})


def _search(turn: _Turn, found: re.Match[str]) -> Reply:
    wanted = found["wanted"].strip().strip("\"'`“”?.!")
    properties = turn.tools.get("grep", {}).get("properties", {})
    arguments: dict[str, Any] = {
        "pattern": wanted if "literal" in properties else re.escape(wanted)
    }
    if "literal" in properties:
        arguments["literal"] = True
    return _one_call(turn, "grep", texts.searching(wanted), arguments)


def _calculate(turn: _Turn, found: re.Match[str]) -> Reply:
    expression = found["expression"].strip().rstrip("?!.= ")
    return _one_call(turn, "calculator", texts.CALCULATING, {"expression": expression})


def _ask_back(turn: _Turn, found: re.Match[str]) -> Reply:
    intro = texts.ANSWERED if turn.made("ask_user") else texts.ASKING
    return _one_call(turn, "ask_user", intro, {"questions": texts.QUESTIONS})


def _one_call(turn: _Turn, name: str, intro: str, arguments: dict[str, Any]) -> Reply:
    """Make the call, then show what it said."""
    made = turn.made(name)
    if made and made[-1].failed:
        return reply(texts.failure(name, made[-1].said))
    if made:
        return reply(texts.shown(intro, made[-1].said[:_SHOWN_CHARACTERS]))
    calls = turn.call(name, **arguments)
    return reply(say(intro), *calls) if calls else reply(texts.no_tool(name))


def _count(turn: _Turn, found: re.Match[str]) -> Reply:
    number = min(int(found["number"][:9]), _MOST_NUMBERS)
    return reply("\n".join(f"{n}. {texts.number_line(n)}" for n in range(1, number + 1)) or "0")


def _long(turn: _Turn, found: re.Match[str]) -> Reply:
    return reply(texts.long_answer())


_Rule = tuple[re.Pattern[str], Callable[[_Turn, re.Match[str]], Reply]]

_RULES: tuple[_Rule, ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), handle)
    for pattern, handle in (
        (r"\b(write|create|make|add)\b.{0,60}\b(files?\b|\w+\.(py|md|txt))", _plan_and_write),
        (r"\bplan\b.{0,40}\bwrite\b", _plan_and_write),
        (
            r"\b(calculate|compute|work out|what is|what's|how much is)\s+(?P<expression>[-(\d.π].{0,200})",
            _calculate,
        ),
        (r"\bask me\b", _ask_back),
        (r"\b(list|show|which|what)\b.{0,30}\bfiles\b", _list_files),
        (r"\b(read|open|show)\s+(the\s+)?(file\s+)?[\"'`“]?(?P<path>[\w./-]*\w)", _read),
        (r"\b(search|grep|look)\s+(for\s+)?(?P<wanted>\S.{0,200})", _search),
        (r"\bcount\s+(up\s+)?to\s+(?P<number>\d+)", _count),
        (r"\blong\b.{0,20}\b(answer|reply|text)\b", _long),
        (r"\b(help|hello|hi|hey|who are you|what can you)\b", _help),
    )
)


def _compaction(request: ModelRequest) -> Reply:
    """A stand-in for a summary: the first line of each thing a person said."""
    asked = [_words(message) for message in request.messages if message.role == "user"]
    lines = [f"- {words.splitlines()[0][:200]}" for words in asked if words]
    return reply("\n".join([texts.COMPACTED, *lines]))
