"""The tools by which an agent has subagents: ask one, look at them, stop one, take or refuse its changes.

A call of `subagent` is handed out and answered by the log (`starting`, `ending`); the others are carried
out here, in a database thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from harness.errors import AgentError, ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput

from .kinds import OWN
from .models import Subagent

CARRIER = "subagents"
"""What `x.call_handed_out` names."""
ASK, LOOK, STOP, MERGE = "subagent", "subagents", "stop_subagent", "merge_subagent"
assert {ASK, LOOK, STOP, MERGE} == OWN  # noqa: S101 - said twice so that types need not know tools
EXTRA = "subagents"
"""The name of the `SubagentAccess` among a context's extras."""
MOST_PROMPT = 50_000
INLINE_INSTRUCTIONS = 20_000


@dataclass(frozen=True, slots=True)
class Choice:
    """One that may be named in a call."""

    name: str
    purpose: str


@dataclass(frozen=True, slots=True)
class SubagentAccess:
    """What the tools of one conversation do, each in a database thread. Raise `AgentError`."""

    overview: Callable[[], Sequence[tuple[str, str]]]
    """The call that asked for each, and a line on it."""
    show: Callable[[str], tuple[str, ToolOutput]]
    """The same of one, with what it answered."""
    stop: Callable[[str], str]
    merge: Callable[[str, bool], ToolOutput]


def ask_tool(
    choices: Sequence[Choice],
    *,
    inline: bool,
    feature: str,
    asks_about: Callable[[Mapping[str, Any], int], str],
) -> Tool:
    """The tool as one conversation has it."""
    listed = "\n".join(f"- {choice.name}: {choice.purpose}" for choice in choices)
    properties: dict[str, Any] = {
        "description": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "A few words for the people who watch.",
        },
        "prompt": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_PROMPT,
            "description": "The whole task: the subagent knows nothing of this conversation.",
        },
        "resume": {
            "type": "string",
            "minLength": 1,
            "maxLength": 60,
            "description": "The id of one that has ended: it is asked again and remembers its work.",
        },
        "background": {
            "type": "boolean",
            "description": "Go on without waiting; you are told when it ends. Default: false.",
        },
        "files": {
            "type": "string",
            "enum": [each.value for each in Subagent.Files],
            "description": "Each works on a copy of the workspace. shared: what it changed comes back by "
            "itself, except where the same file changed here meanwhile. copy: it comes back with "
            "merge_subagent. read_only: it cannot change files.",
        },
        "max_steps": {"type": "integer", "minimum": 1, "maximum": 1_000},
    }
    if choices:
        properties["agent"] = {
            "type": "string",
            "enum": [choice.name for choice in choices],
            "description": f"Which one. Default: {choices[0].name}.",
        }
    if inline:
        properties["inline"] = {
            "type": "object",
            "description": "An agent for this task alone, in place of one that is named.",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 60},
                "instructions": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": INLINE_INSTRUCTIONS,
                },
                "tools": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 128},
                    "maxItems": 100,
                    "description": "Only these of your own tools. Default: all.",
                },
                "effort": {"type": "string", "enum": ["low", "medium", "high", "xhigh", "max"]},
            },
            "required": ["name", "instructions"],
            "additionalProperties": False,
        }
    return Tool(
        name=ASK,
        description=(
            "Have a subagent do a piece of work in a conversation of its own and answer with its result. "
            "Several calls in one step work side by side. What they use comes out of what you have left. "
            f"There are:\n{listed}"
        ),
        input_schema={
            "type": "object",
            "properties": properties,
            "required": ["description", "prompt"],
            "additionalProperties": False,
        },
        handler=_never,
        effect=Effect.READ,
        feature=feature,
        granted=True,
        intent=_intent,
        owner="subagents",
        handed_out=_as_it_is,
        carrier=CARRIER,
        asks_about=asks_about,
    )


def other_tools(feature: str) -> tuple[Tool, ...]:
    """Those with which an agent looks after the subagents it has asked."""
    one = {
        "type": "object",
        "properties": {"id": _ID},
        "required": ["id"],
        "additionalProperties": False,
    }
    return (
        Tool(
            name=LOOK,
            description=(
                "List this conversation's subagents with how they stand; with an id, show one of them with "
                "what it has said last and which files it changed."
            ),
            input_schema={
                "type": "object",
                "properties": {"id": _ID},
                "additionalProperties": False,
            },
            handler=_look,
            owner="subagents",
            effect=Effect.READ,
            feature=feature,
            granted=True,
            intent=_id_of,
        ),
        Tool(
            name=STOP,
            description="Stop a subagent, with everything below it. What it did until then stays.",
            input_schema=one,
            handler=_stop,
            owner="subagents",
            effect=Effect.READ,
            idempotent=True,
            feature=feature,
            granted=True,
            intent=_id_of,
            in_order=True,
        ),
        Tool(
            name=MERGE,
            description=(
                "Take what a subagent changed in its copy into this workspace, or refuse it. A file that "
                "changed here meanwhile stays as it is here, and is named."
            ),
            input_schema={
                "type": "object",
                "properties": {"id": _ID, "accept": {"type": "boolean"}},
                "required": ["id", "accept"],
                "additionalProperties": False,
            },
            handler=_merge,
            # No owner of its own: where a worker has the files there are no copies, and it is not offered.
            effect=Effect.WORKSPACE,
            feature=feature,
            granted=True,
            intent=_id_of,
        ),
    )


Said = TypeVar("Said", str, ToolOutput, tuple[str, ToolOutput])

_ID = {"type": "string", "minLength": 1, "maxLength": 60}


def _never(_context: ToolContext, _arguments: dict[str, Any]) -> str:
    raise ToolError("A subagent answers this call; it cannot be run here.")


def _as_it_is(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return ASK, dict(given)


def _look(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    wanted = arguments.get("id")
    access = _access(context)
    if wanted is None:
        listed = access.overview()
        text = "\n".join(line for _call, line in listed) or "No subagent was asked here."
        return _marked(ToolOutput(text), context.brought_by(call for call, _line in listed))
    call, shown = _told(access.show, str(wanted))
    return _marked(shown, context.brought_by([call]))


def _marked(output: ToolOutput, source: str) -> ToolOutput:
    if not source or output.untrusted:
        return output
    return replace(output, untrusted=True, untrusted_by=source)


def _stop(context: ToolContext, arguments: dict[str, Any]) -> str:
    return _told(_access(context).stop, str(arguments["id"]))


def _merge(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    return _told(_access(context).merge, str(arguments["id"]), bool(arguments["accept"]))


def _told(act: Callable[..., Said], *given: Any) -> Said:
    try:
        return act(*given)
    except ToolError:
        raise
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem


def _access(context: ToolContext) -> SubagentAccess:
    access: SubagentAccess | None = context.extras.get(EXTRA)
    if access is None:
        raise ToolError("This conversation has no subagents.")
    return access


def _intent(given: Mapping[str, Any]) -> str:
    inline = given.get("inline")
    who = inline.get("name") if isinstance(inline, Mapping) else given.get("agent")
    return f"{who or 'subagent'}: {given.get('description', '')}"


def _id_of(given: Mapping[str, Any]) -> str:
    return str(given.get("id", ""))
