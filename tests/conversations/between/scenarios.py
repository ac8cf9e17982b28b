"""The conversations in which outsiders act, each told by what its agent asks for first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from harness.agentconfig import CustomTool
from harness.errors import Overloaded
from harness.messages import ModelRequest, ToolAnswer
from harness.tools import Effect, Tool, ToolContext
from providers.scripted import Answer, Fail, call, reply, say
from tools_app.catalogue import all_tools

THIS, THAT, OTHER = {"what": "this"}, {"what": "that"}, {"what": "other"}
STOCK = CustomTool(name="stock", description="How many are left.")
QUESTIONS = [{"question": "Which?"}]
OVER = "Over."

ran: list[tuple[str, dict[str, Any]]] = []
"""Each execution of `act`, wherever: the call's id and what it got."""
requests: list[ModelRequest] = []
"""Those of the conversation under way that no call had been answered in."""


def _act(context: ToolContext, given: dict[str, Any]) -> str:
    ran.append((context.call_id, given))
    return "Done."


_ACT = Tool(
    "act",
    "Does something out there.",
    {"type": "object", "additionalProperties": True},
    _act,
    Effect.OUTSIDE,
)


def tools() -> Mapping[str, Tool]:
    return MappingProxyType({**all_tools(), "act": _ACT})


@dataclass(frozen=True)
class Scenario:
    name: str
    calls: tuple[Any, ...]
    """What the first reply asks for."""
    reaches: str
    """The type of an event that stands for what the scenario is about."""
    features: Mapping[str, bool] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Mapping[str, Any], ...] = ()
    """Made before anything is said."""
    messages: tuple[str, ...] = ("Go.",)
    dies_behind: str = ""
    """The process of the first run dies right behind an event of this type."""
    on_workers: bool = False
    """Its calls are carried out by workers of the environment."""
    worker_vanishes: bool = False
    """The first worker is told of the calls and never heard of again."""
    capped: bool = False
    """A budget has room for the first request only."""
    fails_first: bool = False
    """The model service cannot answer the first request."""
    edits: bool = False
    """People allow what waits with another input."""
    for_longer: bool = False
    """People allow such calls for the rest of the conversation."""

    @property
    def by_and_by(self) -> bool:
        """Something is to happen later by itself."""
        return self.fails_first or any(each.name == "continue_later" for each in self.calls)

    @property
    def asks_questions(self) -> bool:
        return any(each.name == "ask_user" for each in self.calls)

    def script(self, request: ModelRequest) -> Answer:
        parts = [part for message in request.messages for part in message.parts]
        if any(isinstance(part, ToolAnswer) for part in parts):
            return reply(OVER)
        requests.append(request)
        if self.fails_first and len(requests) == 1:
            return reply(Fail(Overloaded("Busy.")))
        return reply(say("I begin."), *self.calls)


_APPROVAL = {"approval": True}
_ALLOWED = {"tools": ({"tool": "*", "permission": "always_allow"},)}
_ASKS = {"tools": ({"tool": "*", "permission": "always_ask"},)}
_TWO = {"tool": "act", "permission": "always_ask", "options": {"two_people": True}}

SCENARIOS = (
    Scenario("one call asks", (call("act", **THIS),), "user.tool_confirmation", _APPROVAL),
    Scenario(
        "two calls ask",
        (call("act", **THIS), call("act", **OTHER)),
        "user.tool_confirmation",
        _APPROVAL,
    ),
    Scenario(
        "two same calls ask",
        (call("act", **THIS), call("act", **THIS)),
        "user.tool_confirmation",
        _APPROVAL,
    ),
    Scenario(
        "one answer allows both calls",
        (call("act", **THIS), call("act", **THIS)),
        "user.tool_confirmation",
        _APPROVAL,
        for_longer=True,
    ),
    Scenario(
        "nobody is asked",
        (call("act", **THIS), call("act", **OTHER)),
        "span.tool_start",
        config=_ALLOWED,
    ),
    Scenario(
        "the input is edited",
        (call("act", **THIS),),
        "user.tool_confirmation",
        _APPROVAL,
        edits=True,
    ),
    Scenario("two people must agree", (call("act", **THIS),), "x.approval_voted", rules=(_TWO,)),
    Scenario(
        "the outcome of an asked call is unknown",
        (call("act", **THIS),),
        "x.outcome_unknown",
        _APPROVAL,
        dies_behind="span.tool_start",
    ),
    Scenario(
        "the outcome of an edited call is unknown",
        (call("act", **THIS),),
        "x.outcome_unknown",
        _APPROVAL,
        dies_behind="span.tool_start",
        edits=True,
    ),
    Scenario(
        "the outcome of an unasked call is unknown",
        (call("act", **THIS), call("list_files")),
        "x.outcome_unknown",
        config=_ALLOWED,
        dies_behind="span.tool_start",
    ),
    Scenario(
        "a worker has the call",
        (call("bash", command="make"),),
        "user.tool_result",
        on_workers=True,
    ),
    Scenario(
        "workers have calls that were asked about",
        (call("bash", command="make"), call("bash", command="make")),
        "user.tool_result",
        config=_ASKS,
        on_workers=True,
    ),
    Scenario(
        "one answer has workers take both calls",
        (call("bash", command="make"), call("bash", command="make")),
        "user.tool_result",
        config=_ASKS,
        on_workers=True,
        for_longer=True,
    ),
    Scenario(
        "the worker that has the call vanishes",
        (call("bash", command="make"),),
        "x.outcome_unknown",
        on_workers=True,
        worker_vanishes=True,
    ),
    Scenario(
        "a program answers",
        (call("stock", article="A"),),
        "user.custom_tool_result",
        config={"custom_tools": (STOCK,)},
    ),
    Scenario(
        "a program and a person answer",
        (call("stock", article="A"), call("act", **THIS)),
        "user.custom_tool_result",
        _APPROVAL,
        config={"custom_tools": (STOCK,)},
    ),
    Scenario(
        "a question is asked", (call("ask_user", questions=QUESTIONS),), "user.custom_tool_result"
    ),
    Scenario(
        "messages wait",
        (call("act", **THIS),),
        "x.input_taken",
        _APPROVAL,
        messages=("Go.", "And then?"),
    ),
    Scenario(
        "it wakes itself", (call("continue_later", seconds=600, reason="look"),), "x.wake_due"
    ),
    Scenario(
        "a budget is reached", (call("act", **THIS),), "x.retry_requested", _APPROVAL, capped=True
    ),
    Scenario(
        "the service is busy",
        (call("act", **THIS),),
        "session.status_rescheduled",
        _APPROVAL,
        fails_first=True,
    ),
)
