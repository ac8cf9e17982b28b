"""The card of one tool call: its line, its arguments, the question it asks, its answer.

Folds the events about a call. Whether a call may run was judged elsewhere and is only told here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import starmap
from typing import Any, Literal

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from conversations.models import Event
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentToolResult,
    AppEvent,
    ApprovalRequested,
    ApprovalVoted,
    CallHandedOut,
    CommandDisplay,
    DiffDisplay,
    OutcomeUnknown,
    SpanToolEnd,
    SpanToolStart,
    SubagentEnded,
    SubagentStarted,
    TableDisplay,
    ToolResult,
    ToolUse,
    UserCustomToolResult,
    UserToolConfirmation,
    UserToolResult,
)
from harness.frontends import documents_of
from harness.patterns import input_hash
from harness.rules import AskTerms
from harness.tools import Effect
from reading.unseen import visible
from rendering.markdown import to_html
from tools_app.catalogue import find
from tools_app.questions import OWN_WORDS, Question, questions_of
from tools_app.questions import TOOL as QUESTIONS

from .content import (
    Argument,
    Capped,
    Moment,
    Piece,
    arguments_of,
    capped,
    duration,
    pieces_of,
)
from .dangers import danger_words
from .network import Network, network_of
from .proposals import Diff, diff_from, proposed_by
from .titles import Tense, in_words
from .touched import NOTHING, Touched

PLAN_TOOL = "present_plan"
"""Its question is a plan to read, not a call to inspect."""
SMALL_DIFF = 24
"""Lines of a change that is shown without being asked for."""
SMALL_OUTPUT = 24
"""Lines of a command's output that are shown without being asked for."""
INTENT_CHARACTERS = 200
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What terminals take as colours and movements; here it would only be noise."""

State = Literal[
    "requested", "running", "waiting", "ok", "failed", "error", "denied", "stopped", "unknown"
]
"""`failed`: it ran to its end, and that was no good one; `error`: the tool gave no other answer."""

_ICONS: dict[State, str] = {
    "requested": "○",
    "running": "●",
    "waiting": "?",
    "ok": "✓",
    "failed": "✕",
    "error": "✕",
    "denied": "⊘",
    "stopped": "■",
    "unknown": "!",
}


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    by: str
    at: Moment
    reason: str
    edited: tuple[Argument, ...] = ()
    """What it runs with in place of what the agent asked for; empty where nobody changed it."""
    expired: bool = False
    """Nobody answered in time."""
    lasting: str = ""
    """How far beyond this call the answer reaches, in words."""


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    """What is sent; `label` is what is seen of it."""
    label: str
    about: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a form."""

    number: str
    question: str
    header: str
    options: tuple[Choice, ...]
    multi_select: bool
    takes_text: bool

    @classmethod
    def of(cls, number: int, question: Question) -> Asked:
        return cls(
            str(number),
            visible(question.question),
            visible(question.header),
            tuple(
                Choice(option.label, visible(option.label), visible(option.description))
                for option in question.options
            ),
            question.multi_select,
            question.takes_text,
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that came to an end."""

    command: Capped | None
    """None: its arguments name none."""
    stdout: str
    stderr: str
    code: str
    """Its exit code, or how else it ended, in words; empty where the card's state says it."""
    ok: bool
    sandbox: str
    confined: bool
    small: bool
    """Its output is quicker seen than unfolded."""
    network: Network | None = None
    """None: it asked its way out for nothing, or had none."""


@dataclass(slots=True)
class Card:
    """What the template needs. `asks`: a person has to decide, and the buttons stand on it."""

    call: str
    name: str
    server: str = ""
    host: str = ""
    """Of a tool of an MCP server: the machine that it runs on; empty: beside the agent's own commands."""
    within: str = ""
    """The name of the tool whose call makes this one; empty: the agent asked for it."""
    depth: int = 0
    state: State = "requested"
    asks: bool = False
    intent: str = ""
    title: SafeString | None = None
    """What it does, in words; None: its name and its intent stand for that."""
    reach: str = ""
    reason: str = ""
    duration: str = ""
    arguments: list[Argument] = field(default_factory=list)
    invalid_input: str = ""
    decision: Decision | None = None
    result: list[Piece] = field(default_factory=list)
    ran: Ran | None = None
    live: bool = False
    """What it prints is shown while it runs."""
    diff: Diff | None = None
    """What it changed; before that, and where it never did, what it would."""
    table: TableDisplay | None = None
    untrusted_by: str = ""
    """What of its answer others wrote, in words."""
    remarks: list[str] = field(default_factory=list)
    """What apps tell of it."""
    plan: SafeString | None = None
    for_program: bool = False
    for_worker: bool = False
    """It may run, and a worker of the environment has it or is to take it."""
    child: str = ""
    """The id of the conversation in which a subagent carries it out, or did."""
    child_works: bool = False
    denied_at: str = ""
    """When it is denied by itself unless somebody answers, in words; empty: never."""
    allowed_by_some: str = ""
    """How many of the people it needs have allowed it, in words."""
    questions: tuple[Asked, ...] = ()
    answered_by: str = ""
    answered_at: Moment | None = None
    unknown: bool = False
    """It was under way when its process ended; the question is whether to run it again."""
    round: int = 0
    """Counts how often it was asked about, as its approval does."""
    shown: str = ""
    """The hash of the input that the question is about; what allowing it is bound to."""
    dangers: tuple[str, ...] = ()
    """What makes it dangerous, in words, while it asks."""
    touched: Touched = NOTHING
    """What it acts on, where its arguments only name that, as whoever was asked was shown it."""
    asked_for: tuple[Argument, ...] = ()
    """What the agent asked for, where the question is about what a person put in its place."""

    own_words: int = OWN_WORDS
    """Characters that an answer to a question may have."""

    @property
    def icon(self) -> str:
        return _ICONS[self.state]

    @property
    def state_words(self) -> str:
        if self.state == "waiting" and self.for_program:
            return _("waiting for the program it belongs to")
        if self.state == "waiting" and self.for_worker:
            return _("waiting for a worker")
        return {
            "requested": _("about to run"),
            "running": _("running"),
            "waiting": _("waiting for you"),
            "ok": _("done"),
            "failed": _("failed"),
            "error": _("failed"),
            "denied": _("not allowed"),
            "stopped": _("stopped"),
            "unknown": _("outcome unknown"),
        }[self.state]

    @property
    def changed(self) -> Diff | None:
        """What it changed, in truth."""
        return self.diff if self.state == "ok" else None

    @property
    def never_ran(self) -> bool:
        """It ended without having done what it was to do, as far as anybody knows."""
        return self.state in {"error", "denied", "stopped", "unknown"}

    @property
    def folds_arguments(self) -> bool:
        """There is a better view of them than they are themselves."""
        if self.invalid_input or not self.arguments:
            return False
        if self.asks or self.state in {"error", "unknown"}:
            return self.diff is not None
        return self.title is not None

    @property
    def called(self) -> str:
        """Of a tool of an MCP server the server's name, and what that calls it."""
        if not self.server:
            return self.name
        return f"{self.server}: {self.name.removeprefix(f'mcp__{self.server}__')}"

    @property
    def is_open(self) -> bool:
        """What needs eyes, and what is quicker seen than unfolded, is open from the start."""
        small_diff = self.changed is not None and self.changed.lines <= SMALL_DIFF
        small_output = self.ran is not None and self.ran.small
        runs = self.live and self.state == "running"
        return self.asks or runs or self.state in {"error", "unknown"} or small_diff or small_output


def card_of(use: ToolUse, rows: Sequence[Event], touched: Touched = NOTHING) -> Card:
    """The card of the call that `rows` are about; the first of them is the call itself. `touched`: as its
    reader may see it."""
    call = rows[0].uid
    card = Card(call, visible(use.name), invalid_input=visible(use.invalid_input))
    asked = handed = False
    match use:
        case AgentMcpToolUse():
            card.server, card.host = visible(use.mcp_server_name), visible(use.host)
            asked = use.evaluated_permission == "ask"
            card.reason, card.denied_at = use.reason, _denied_at(rows[0], use.terms)
        case AgentCustomToolUse():
            card.for_program = use.name != QUESTIONS
            if not card.for_program:
                card.questions = tuple(starmap(Asked.of, enumerate(questions_of(use.input))))
            card.state, card.asks = "waiting", bool(card.questions)
        case _:
            asked = use.evaluated_permission == "ask"
            card.reason, card.denied_at = use.reason, _denied_at(rows[0], use.terms)
    if not isinstance(use, AgentCustomToolUse):
        card.within, card.depth = visible(use.within_tool), use.depth
    answered = started = False
    card.round = int(asked)
    card.touched = touched
    given: Mapping[str, Any] = use.input
    proposed: dict[str, Any] | None = None
    for row in rows[1:]:
        match row.value:
            case ApprovalRequested() as request:
                card.round += 1
                if card.server and not started:
                    card.host = visible(request.terms.host)
                # What no worker had heard of is taken back by asking anew.
                handed = False
                if not answered and not started:
                    asked, card.decision, card.allowed_by_some = True, None, ""
                    card.reason = request.reason
                    card.denied_at = _denied_at(row, request.terms)
            case ApprovalVoted() as vote:
                proposed = vote.edited_input
                card.allowed_by_some = _("%(allowed)d of %(needed)d people have allowed it.") % {
                    "allowed": vote.allowed,
                    "needed": vote.needed,
                }
            case UserToolConfirmation() as answer if card.decision is None:
                card.decision = _decision(answer, row)
                proposed = answer.edited_input if card.decision.allowed else proposed
            case SpanToolStart():
                started = True
                card.unknown = False
                card.state = "running" if not answered else card.state
            case OutcomeUnknown():
                card.round += 1
                if not answered:
                    # Whatever allowed the first attempt does not allow a second one; the question
                    # about that is still to come.
                    started = asked = False
                    card.decision, card.unknown, card.state = None, True, "requested"
            case SpanToolEnd() as end:
                card.duration = duration(end.milliseconds)
            case CallHandedOut() as sent:
                handed, card.unknown = not sent.carrier, False
                started = started or bool(sent.carrier)
                if sent.carrier and not answered:
                    card.state = "running"
            case SubagentStarted() as begun:
                card.child, card.child_works = begun.subagent, True
            case SubagentEnded() as ended:
                card.child_works = False
                card.duration = duration(round(ended.seconds * 1_000))
            case AppEvent() as told if words := told.remark():
                card.remarks.append(visible(words))
            case _ if isinstance(row.value, ToolResult):
                result = row.value
                if not answered:
                    answered = True
                    card.asks = False
                    _answer(card, result, given if proposed is None else proposed)
                    if isinstance(result, UserCustomToolResult) and row.actor is not None:
                        card.answered_by = str(row.actor)
                        card.answered_at = Moment.of(row.created_at)
            case _:
                pass
    if handed and not answered and not card.unknown:
        card.for_worker, card.state = True, "waiting"
    elif not answered and not started and not card.for_program and asked:
        if card.decision is None:
            card.state, card.asks = "waiting", True
        elif not card.decision.allowed:
            card.state = "denied"
    if card.asks:
        card.shown = input_hash(given if proposed is None else proposed)
        if proposed is not None:
            card.asked_for = tuple(arguments_of(given, in_full=False))
            given = proposed
        card.dangers = tuple(danger_words(use.name, given))
    card.arguments = arguments_of(given, in_full=card.asks)
    runs_with = given if proposed is None else proposed
    _describe(card, use.name, runs_with)
    if card.title is not None and card.diff is None:
        card.diff = proposed_by(use.name, runs_with)
    if use.name == PLAN_TOOL and isinstance(given.get("plan"), str):
        card.plan = to_html(given["plan"])
    return card


def _decision(answer: UserToolConfirmation, row: Event) -> Decision:
    return Decision(
        allowed=answer.result == "allow",
        by=str(row.actor) if row.actor else _("somebody"),
        at=Moment.of(row.created_at),
        reason="" if answer.expired else answer.deny_message or "",
        expired=answer.expired,
        edited=tuple(arguments_of(answer.edited_input or {}, in_full=False)),
        lasting={
            "run": _("for this run"),
            "conversation": _("for this conversation"),
            "always": _("for always"),
        }.get(answer.scope, ""),
    )


def _denied_at(row: Event, terms: AskTerms | None) -> str:
    if terms is None or not terms.expires_seconds:
        return ""
    at = row.created_at + timedelta(seconds=terms.expires_seconds)
    return date_format(at.astimezone(timezone.get_default_timezone()), "DATETIME_FORMAT")


def _answer(card: Card, result: ToolResult, given: Mapping[str, Any]) -> None:
    if isinstance(result, UserCustomToolResult | UserToolResult):
        card.state = "error" if result.is_error else "ok"
    else:
        card.state = "error" if result.outcome == "ok" and result.is_error else result.outcome
    card.result = pieces_of(result.content)
    if isinstance(result, UserCustomToolResult):
        card.result += pieces_of(documents_of(result.front_end))
    if isinstance(result, AgentToolResult):
        card.untrusted_by = visible(result.untrusted_by)
        match result.display:
            case DiffDisplay() as change:
                card.diff = diff_from(change)
            case TableDisplay() as table:
                card.table = table
            case CommandDisplay() as command:
                card.ran = _ran(command, given)
                if card.state == "ok" and not card.ran.ok:
                    card.state = "failed"


def _ran(command: CommandDisplay, given: Mapping[str, Any]) -> Ran:
    words = {
        "timeout": _("took too long"),
        "interrupt": "",  # the card's state says it
        "memory": _("out of memory"),
        "cpu": _("out of processor time"),
        "file_size": _("file too large"),
        "disk": _("workspace full"),
        "output": _("too much output"),
        "closed": _("shell closed"),
        "signal": _("killed by a signal"),
    }
    if command.ended_by:
        code = words.get(command.ended_by, command.ended_by)
    else:
        code = _("exit code %(code)s") % {"code": command.exit_code}
    lines = command.stdout.count("\n") + command.stderr.count("\n")
    ordered = given.get("command")
    return Ran(
        command=capped(visible(ordered)) if isinstance(ordered, str) and ordered else None,
        stdout=visible(_COLOURS.sub("", command.stdout)),
        stderr=visible(_COLOURS.sub("", command.stderr)),
        code=code,
        ok=command.exit_code == 0 and not command.ended_by,
        sandbox=command.sandbox,
        confined=command.confined,
        small=lines <= SMALL_OUTPUT,
        network=network_of(command.network),
    )


def _describe(card: Card, name: str, given: Mapping[str, Any]) -> None:
    """What the catalogue knows: a short intent, and how far such a call reaches."""
    tool = None if card.server or card.for_program else find(name)
    if tool is None:
        if card.server:
            card.reach = _(
                "The MCP server “%(name)s” is given the arguments; what it does with them is its own."
            ) % {"name": card.server}
        elif not card.for_program:
            card.intent = visible(str(given.get("description", "")))[:INTENT_CHARACTERS]
            card.title = in_words(name, _tense(card), card.intent, created=False)
        return
    card.live = tool.live
    try:
        card.intent = visible(tool.intent(given))[:INTENT_CHARACTERS]
    except Exception:  # input that broke the schema may break the intent
        card.intent = ""
    created = card.diff is not None and card.diff.created
    card.title = in_words(name, _tense(card), card.intent, created=created)
    if tool.general and tool.effect is not Effect.READ:
        card.reach = _(
            "It runs in this conversation's sandbox: it can change files of the workspace, and reach "
            "what the environment allows."
        )
        return
    card.reach = {
        Effect.READ: _("It only reads."),
        Effect.WORKSPACE: _("It changes files of this conversation's workspace."),
        Effect.OUTSIDE: _("It reaches beyond this conversation: network, people or other systems."),
    }[tool.effect]


def _tense(card: Card) -> Tense:
    match card.state:
        case "running":
            return "doing"
        case "ok" | "failed":
            return "done"
        case "error":
            return "done" if card.ran is not None else "failed"
        case _:
            return "to_do"
