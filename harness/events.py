"""Everything that can happen in a conversation: a closed union of frozen values.

Names follow the public Managed Agents vocabulary; what it lacks has the prefix `x.`. An event has no
id, number, time or author: those belong to the log's row (`Entry` here, `conversations.Event` in the
table). Old payloads load for ever: `load()` upcasts, and `tests/golden/events/` holds one of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import orjson
from pydantic import Field, TypeAdapter

from harness.content import Block, Frozen, Text, UploadedFile
from harness.contextplan import ContextPlan
from harness.errors import in_words
from harness.frontends import FrontEnd
from harness.rules import AskTerms, Condition
from reading.wholetext import storable_json, storable_value


class BaseEvent(Frozen):
    """Base of every event. What storing one means for its conversation stands on its class, once."""

    waits: ClassVar[bool] = False
    """It is an input that a run handles later; every other event is handled by being stored."""
    owes_run: ClassVar[bool] = False
    """It must not be forgotten although the wake that announces it may be."""
    plain: ClassVar[bool] = False
    """Storing it changes nothing but the log: no column, no other table, no money. Nobody follows it."""
    voids_answers: ClassVar[bool] = False
    """No earlier answer about its call counts: the call is to be asked for anew."""
    between_turns: ClassVar[bool] = False
    """It is part of no turn, and no place in the dialogue: one goes back past it."""
    is_call: ClassVar[bool] = False
    """The model asks for something; its id is the call's, and the call is open until it is answered."""
    answers: ClassVar[str] = ""
    """Where the id of the call stands that it answers; empty: it answers none."""


# --- from people and programs ---------------------------------------------------------------------

Scope = Literal["once", "run", "conversation", "always"]


class UserMessage(BaseEvent):
    """Waits (`processed_at` null) until an `x.input_taken` names it; its place in the dialogue is there."""

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["user.message"] = "user.message"
    content: tuple[Block, ...]
    by_agent: bool = False
    """Written by the agent of a conversation above or below; no person has spoken."""
    untrusted_by: str = ""
    """What had brought untrusted content to that agent; empty: nothing had."""
    front_end: FrontEnd | None = None
    """Sent along by the program that she speaks through; None: by none that sends anything."""
    files: tuple[UploadedFile, ...] = ()
    """Uploaded with it; the model is told of them. Pictures that it sees stand in `content` as well."""
    carried_over: bool = False
    """It waited where somebody went back, and waits here too: it was said before, and nobody says it here."""


class UserInterrupt(BaseEvent):
    """Ends the current turn at once. Queued messages stay and get their turn after it."""

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["user.interrupt"] = "user.interrupt"
    session_thread_id: str | None = None


class UserToolConfirmation(BaseEvent):
    """A person's answer to a call that asks. Only the first answer to a call counts."""

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["user.tool_confirmation"] = "user.tool_confirmation"
    tool_use_id: str
    result: Literal["allow", "deny"]
    deny_message: str | None = None
    edited_input: dict[str, Any] | None = None
    """What the call runs with instead of what the model asked for; the model is told."""
    input_sha256: str = ""
    """Of the input that is allowed (`harness.patterns.input_hash`): the call runs with no other."""
    scope: Scope = "once"
    """How far beyond this call the answer reaches, by a rule that was saved with it."""
    met: tuple[Condition, ...] = ()
    """Conditions that the people who allowed it meet, whether or not the question had them."""
    service_accounts: tuple[str, ...] = ()
    """Ids of those among who allowed it that are no people."""
    expired: bool = False
    """It is denied because nobody answered in time."""


class UserCustomToolResult(BaseEvent):
    owes_run: ClassVar[bool] = True
    answers: ClassVar[str] = "custom_tool_use_id"

    type: Literal["user.custom_tool_result"] = "user.custom_tool_result"
    custom_tool_use_id: str
    content: tuple[Block, ...] = ()
    is_error: bool = False
    untrusted: bool = True
    """It brings what others wrote into the prompt: nobody here knows where the program that answers has
    it from. Only what a person said herself, to a question or in refusing, does not."""
    front_end: FrontEnd | None = None
    """What the front end that answers sends along from here on; None: it is as it was."""


class UserToolResult(BaseEvent):
    """What a worker of the environment answers to a call that was handed out to it."""

    owes_run: ClassVar[bool] = True
    answers: ClassVar[str] = "tool_use_id"

    type: Literal["user.tool_result"] = "user.tool_result"
    tool_use_id: str
    content: tuple[Block, ...] = ()
    is_error: bool = False
    untrusted: bool = False
    """It brings what others wrote into the prompt: nobody here knows what the worker's machine reached."""


class OutcomeCheck(Frozen):
    """A command that the server runs before the grader is asked. It holds where the exit code is 0."""

    run: str
    criterion: int | None = None
    """The number, from 1, of the criterion that is not met where it fails; None: it is evidence alone."""
    seconds: int = 60


class UserDefineOutcome(BaseEvent):
    """What the agent is to bring about, and by what it is judged. Like a message it waits until it is taken
    and begins a turn; that turn ends when the evaluation says so, or a limit, or a person."""

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["user.define_outcome"] = "user.define_outcome"
    outcome_id: str
    description: str
    rubric: str
    """Its listed lines are its criteria (`harness.grading.criteria_of`)."""
    max_iterations: int = 3
    """How often the work is judged at most."""
    checks: tuple[OutcomeCheck, ...] = ()


# --- from the agent -------------------------------------------------------------------------------


class AgentMessage(BaseEvent):
    """One finished text block of a reply, or what had arrived of it (`interrupted`)."""

    type: Literal["agent.message"] = "agent.message"
    content: tuple[Text, ...]
    model_request_id: str = ""
    continues: str | None = None
    """The first piece's event id, when this block goes on where an output limit cut it off: the
    pieces joined without a separator are one text."""
    interrupted: bool = False


class AgentThinking(BaseEvent):
    plain: ClassVar[bool] = True

    type: Literal["agent.thinking"] = "agent.thinking"
    thinking: str
    signature: str = ""
    redacted_data: str = ""
    model_request_id: str = ""
    interrupted: bool = False


class AgentToolUse(BaseEvent):
    """A call the model asks for. The event's id is the call's id everywhere."""

    is_call: ClassVar[bool] = True

    type: Literal["agent.tool_use"] = "agent.tool_use"
    name: str
    input: dict[str, Any]
    model_request_id: str = ""
    evaluated_permission: Literal["allow", "ask", "deny"] = "allow"
    reason: str = ""
    """Which rule decided, in words."""
    invalid_input: str = ""
    """The raw arguments, when they were not a JSON object."""
    terms: AskTerms | None = None
    """Set when it asks."""
    within: str = ""
    """The call that makes this one (`harness.nested`); empty: the model asks for it."""
    within_tool: str = ""
    """The name of that call's tool."""
    depth: int = 0
    """How many calls stand around it."""


class AgentMcpToolUse(BaseEvent):
    is_call: ClassVar[bool] = True

    type: Literal["agent.mcp_tool_use"] = "agent.mcp_tool_use"
    name: str
    mcp_server_name: str
    host: str = ""
    """Where the call goes, as far as its server's address says; empty: to a program in the sandbox."""
    input: dict[str, Any]
    model_request_id: str = ""
    evaluated_permission: Literal["allow", "ask", "deny"] = "ask"
    reason: str = ""
    invalid_input: str = ""
    terms: AskTerms | None = None
    within: str = ""
    within_tool: str = ""
    depth: int = 0


class AgentCustomToolUse(BaseEvent):
    """A call that the API caller answers with `user.custom_tool_result`."""

    is_call: ClassVar[bool] = True

    type: Literal["agent.custom_tool_use"] = "agent.custom_tool_use"
    name: str
    input: dict[str, Any]
    model_request_id: str = ""
    invalid_input: str = ""
    of_front_end: bool = False
    """The tool was brought by the front end that the turn's words came through."""


class DiffDisplay(Frozen):
    """A change of one file, for people."""

    type: Literal["diff"] = "diff"
    path: str
    diff: str
    """Unified diff without the two header lines; empty when nothing changed."""
    added: int
    removed: int
    created: bool = False


class TableDisplay(Frozen):
    type: Literal["table"] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class NetworkDecision(Frozen):
    """What a command asked its way out for, and what came of it."""

    method: str
    host: str
    port: int
    allowed: bool
    reason: str = ""
    """Which rule decided, in words."""
    times: int = 1


class NetworkRecord(Frozen):
    """What a command asked its way out for: all of it counted, of the kinds there were the first ones."""

    allowed: int = 0
    refused: int = 0
    decisions: tuple[NetworkDecision, ...] = ()


class CommandDisplay(Frozen):
    """A command that ran: what it printed, of long output beginning and end, and how it ended."""

    type: Literal["command"] = "command"
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    """None when it was killed."""
    ended_by: str = ""
    """Why it did not come to its own end (`sandbox.contract.KilledBy`)."""
    seconds: float = 0.0
    directory: str = ""
    """Where the shell stands now."""
    sandbox: str = ""
    confined: bool = True
    network: NetworkRecord | None = None
    """None: it had no way out, or none that is known."""


Display = Annotated[DiffDisplay | TableDisplay | CommandDisplay, Field(discriminator="type")]

ResultOutcome = Literal["ok", "error", "denied", "stopped", "unknown"]


class Keepsake(Frozen):
    """A result that stays in the prompt, word for word, where the part that it stands in is summarised."""

    name: str
    """Of those of one name the newest stays."""
    text: str = ""
    """In place of the result's own words; empty: these."""


class AgentToolResult(BaseEvent):
    plain: ClassVar[bool] = True
    answers: ClassVar[str] = "tool_use_id"

    type: Literal["agent.tool_result"] = "agent.tool_result"
    tool_use_id: str
    content: tuple[Block, ...]
    is_error: bool = False
    outcome: ResultOutcome = "ok"
    """`denied` and `stopped`: it never ran or was cut short by a person; `unknown`: the process died
    while it ran, so it may or may not have happened."""
    display: Display | None = None
    untrusted: bool = False
    """It brings what others wrote (a web page, an uploaded document) into the prompt."""
    untrusted_by: str = ""
    """What of it others wrote, in words; empty: the tool's name says it."""
    keeps: Keepsake | None = None


class AgentMcpToolResult(BaseEvent):
    plain: ClassVar[bool] = True
    answers: ClassVar[str] = "mcp_tool_use_id"

    type: Literal["agent.mcp_tool_result"] = "agent.mcp_tool_result"
    mcp_tool_use_id: str
    content: tuple[Block, ...]
    is_error: bool = False
    outcome: ResultOutcome = "ok"


class McpElsewhere(BaseEvent):
    """The model's service called a tool of an MCP server by itself while it replied, or told what came of it.
    No call of ours: it is neither judged nor answered here, and never runs here."""

    type: Literal["x.mcp_elsewhere"] = "x.mcp_elsewhere"
    kind: Literal["use", "result", "listing"]
    server: str
    block: dict[str, Any]
    """As the service sent it, and as it gets it back. Empty: it was taken out."""
    tool_use_id: str = ""
    """Of a result, the event of the use; empty: the event stands for itself."""
    model_request_id: str = ""


class ModelUsage(Frozen):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class AgentThreadContextCompacted(BaseEvent):
    """From here on the prompt holds `summary` in place of everything up to and including `through`."""

    type: Literal["agent.thread_context_compacted"] = "agent.thread_context_compacted"
    summary: str
    through: str
    """The id of the last event that is summarised away; the log keeps it."""
    messages: int = 0
    """How many messages the summary stands for."""
    fallback: bool = False
    """The summariser failed, so `summary` only says that messages were dropped."""
    focus: str = ""
    """What somebody asked the summary to dwell on."""
    tokens_before: int = 0
    """About how large the prompt was; 0: nobody knew."""
    model_request_id: str = ""
    """The request that wrote the summary, for what it cost; empty: none did, or it was not kept."""
    usage: ModelUsage | None = None
    """What that used."""
    block: dict[str, Any] = {}
    """The summary as the model's service made it by itself, to be sent back as it is; empty: it is ours, or
    that was taken out. Other services and models are told `summary`."""
    provider: str = ""
    model: str = ""
    """Which made it."""


class CompactionRequested(BaseEvent):
    """Somebody asks that the older part of the dialogue be summarised now; the next free moment is for it.
    Of several that wait the last one's focus counts, and one answer is for all."""

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["x.compaction_requested"] = "x.compaction_requested"
    focus: str = ""
    """What the summary is to dwell on; empty: nothing more than the rest."""
    by_agent: bool = False


class CompactionSkipped(BaseEvent):
    """What was asked for was not done, and nothing was taken from the dialogue."""

    type: Literal["x.compaction_skipped"] = "x.compaction_skipped"
    reason: Literal["too_short", "failed", "stopped"]
    detail: str = ""
    """Why it failed, in words."""


# --- the conversation -----------------------------------------------------------------------------


class SessionStatusRunning(BaseEvent):
    type: Literal["session.status_running"] = "session.status_running"


class EndTurn(Frozen):
    type: Literal["end_turn"] = "end_turn"


class RequiresAction(Frozen):
    type: Literal["requires_action"] = "requires_action"
    event_ids: tuple[str, ...]


class RetriesExhausted(Frozen):
    type: Literal["retries_exhausted"] = "retries_exhausted"


class BudgetReached(Frozen):
    type: Literal["budget_reached"] = "budget_reached"


class Refusal(Frozen):
    type: Literal["refusal"] = "refusal"


StopReason = Annotated[
    EndTurn | RequiresAction | RetriesExhausted | BudgetReached | Refusal,
    Field(discriminator="type"),
]


class StopDetails(Frozen):
    """Why it rests, for a person: which limit, how far, and who can change it."""

    code: str
    message: str
    hint: str = ""

    @property
    def words(self) -> str:
        return in_words(self.message, self.hint)


WAITS_FOR_WORKER = "waits_for_worker"
"""Code of the details of a rest that only workers of the environment can end."""
WAITS_FOR_SUBAGENTS = "waits_for_subagents"
"""The same of one that ends when subagents have answered."""
WAITS_ELSEWHERE = frozenset({WAITS_FOR_WORKER, WAITS_FOR_SUBAGENTS})
"""Rests in which no person is asked anything; what comes after one is the same turn."""


class SessionStatusIdle(BaseEvent):
    """The run rests. Exactly one ends each turn."""

    type: Literal["session.status_idle"] = "session.status_idle"
    stop_reason: StopReason
    stop_details: StopDetails | None = None
    interrupted: bool = False
    """A person stopped it; the public vocabulary calls that `end_turn`."""

    def waits_for(self, code: str) -> bool:
        return self.stop_details is not None and self.stop_details.code == code


class SessionStatusRescheduled(BaseEvent):
    type: Literal["session.status_rescheduled"] = "session.status_rescheduled"
    delay_seconds: float = 0


class SessionStatusTerminated(BaseEvent):
    type: Literal["session.status_terminated"] = "session.status_terminated"


class SessionErrorBody(Frozen):
    type: str
    """The public error type (`model_overloaded_error`, …, else `unknown_error`)."""
    code: str
    """Ours, and stable: see `harness.errors`."""
    message: str
    hint: str = ""
    retry_status: Literal["retrying", "exhausted", "terminal"] = "exhausted"
    event_ids: tuple[str, ...] = ()
    """Messages and calls whose content the service may have meant when it refused the request: those it
    has never taken. One of them can be set aside (`ContentSetAside`)."""
    attempts: int = 1
    """How often the request has been made by now, one after another and in vain."""

    @property
    def words(self) -> str:
        return in_words(self.message, self.hint)


class SessionError(BaseEvent):
    type: Literal["session.error"] = "session.error"
    error: SessionErrorBody


class SessionUpdated(BaseEvent):
    """Only what changed. `features` holds the switches that were turned, by name; `overrides` the fields
    of the agent's configuration that differ here from now on."""

    type: Literal["session.updated"] = "session.updated"
    title: str | None = None
    made_of: str = ""
    """The message that `title` is the first words or a model's summary of; empty: somebody gave it."""
    features: dict[str, bool] = {}
    overrides: dict[str, Any] = {}


class SessionUsage(BaseEvent):
    """Totals of the conversation so far, right before it rests."""

    type: Literal["session.usage"] = "session.usage"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class SessionThreadCreated(BaseEvent):
    type: Literal["session.thread_created"] = "session.thread_created"
    session_thread_id: str
    agent_name: str


# --- spans ----------------------------------------------------------------------------------------


class SpanModelRequestStart(BaseEvent):
    """Its event id is the `model_request_id` of everything the reply brings."""

    type: Literal["span.model_request_start"] = "span.model_request_start"
    purpose: str = "main"
    provider: str = ""
    model: str = ""
    step: int = 0
    """Counts the model requests of the turn from 1."""
    turn: str = ""
    """The turn it belongs to (`Turn.uid`); empty: to none, or stored before turns were named here."""
    prompt_tokens_at_most: int = 0
    """An upper estimate, for what has to be reserved before the request is sent."""
    output_tokens_at_most: int = 0
    server_keys: bool = False
    """Whether it is sent with a key of the deployment, which persons may have budgets for."""
    plan: ContextPlan | None = None
    """How its window was shared out; None: stored before that was kept, or by no agent's request."""
    summary_tokens_at_most: int = 0
    """Of `prompt_tokens_at_most`, what a summary may take that the service makes by itself."""
    unopened_tokens_at_most: int = 0
    """Of `prompt_tokens_at_most`, what documents may take whose pages nobody here has counted."""
    servers: tuple[str, ...] = ()
    """MCP servers that the service may be given with it, to call by itself (`McpElsewhere`)."""


class ServiceEdited(Frozen):
    """What a service left out of a prompt by itself."""

    cleared_results: int = 0
    cleared_tokens: int = 0
    compaction: ModelUsage | None = None
    """What its summary took, which `model_usage` holds; None: it made none."""


class SpanModelRequestEnd(BaseEvent):
    type: Literal["span.model_request_end"] = "span.model_request_end"
    model_request_start_id: str
    model_usage: ModelUsage
    is_error: bool = False
    end: str = ""
    """How the reply ended (`harness.messages.ReplyEnd`), or `interrupted`, `error`, `lost`."""
    milliseconds: int = 0
    first_delta_milliseconds: int | None = None
    estimated: bool = False
    """The service did not say what the reply had cost, or not all of it; the usage is our estimate."""
    cached: bool = False
    """No service was asked and nothing was spent: the reply is one from before, and the usage what that
    one had taken."""
    edited: ServiceEdited | None = None


EvaluationResult = Literal[
    "satisfied", "needs_revision", "max_iterations_reached", "failed", "interrupted"
]
"""The public vocabulary's; all but `needs_revision` end the outcome."""


class CriterionJudged(Frozen):
    criterion: str
    met: bool
    reason: str = ""


class SpanOutcomeEvaluationStart(BaseEvent):
    type: Literal["span.outcome_evaluation_start"] = "span.outcome_evaluation_start"
    outcome_id: str
    iteration: int = 0
    """Counts the evaluations of this outcome from 0."""


class SpanOutcomeEvaluationEnd(BaseEvent):
    type: Literal["span.outcome_evaluation_end"] = "span.outcome_evaluation_end"
    outcome_evaluation_start_id: str
    outcome_id: str
    iteration: int = 0
    result: EvaluationResult
    explanation: str = ""
    criteria: tuple[CriterionJudged, ...] = ()
    usage: ModelUsage = ModelUsage()
    """Of all requests to the grader in this evaluation."""
    untrusted_by: str = ""
    """What of strangers' the grader was shown beside the dialogue, in files or by checks; empty: nothing."""


class OutcomeCheckRan(BaseEvent):
    """What came of a check in one evaluation."""

    type: Literal["x.outcome_check_ran"] = "x.outcome_check_ran"
    outcome_evaluation_start_id: str
    outcome_id: str
    run: str
    criterion: int | None = None
    exit_code: int | None = None
    output: str = ""
    """Bounded; foreign text."""
    problem: str = ""
    """Why it could not run, or did not come to its own end."""
    untrusted_by: str = ""
    """What brought strangers' words into the output, or into the problem; empty: nothing did."""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and not self.problem


class SpanToolStart(BaseEvent):
    """Stored before the call is dispatched. Without an answer after a crash its outcome is unknown."""

    plain: ClassVar[bool] = True

    type: Literal["span.tool_start"] = "span.tool_start"
    tool_use_id: str
    effect: str
    idempotent: bool = False


class SpanToolEnd(BaseEvent):
    plain: ClassVar[bool] = True

    type: Literal["span.tool_end"] = "span.tool_end"
    tool_use_id: str
    milliseconds: int = 0
    is_error: bool = False


# --- ours -----------------------------------------------------------------------------------------


class InputTaken(BaseEvent):
    """These messages enter the dialogue here, in this order, and start a turn."""

    type: Literal["x.input_taken"] = "x.input_taken"
    event_ids: tuple[str, ...]
    steered: bool = False
    """They join the turn that is under way instead of starting one."""


class MessageWithdrawn(BaseEvent):
    """A queued message was removed before it was taken."""

    type: Literal["x.message_withdrawn"] = "x.message_withdrawn"
    event_id: str


class MessageEdited(BaseEvent):
    """A queued message now says this; the last edit before it is taken counts."""

    type: Literal["x.message_edited"] = "x.message_edited"
    event_id: str
    content: tuple[Block, ...]


class MessageSteered(BaseEvent):
    """A queued message shall join the current turn at its next tool boundary."""

    type: Literal["x.message_steered"] = "x.message_steered"
    event_id: str


class QueueOrdered(BaseEvent):
    """The messages that wait are taken in this order from now on; what comes later waits behind them."""

    plain: ClassVar[bool] = True

    type: Literal["x.queue_ordered"] = "x.queue_ordered"
    event_ids: tuple[str, ...]


class QueueHeld(BaseEvent):
    """A person stopped the agent while messages waited: none of them is taken before somebody says more,
    asks for another try, or lets the queue go on."""

    plain: ClassVar[bool] = True

    type: Literal["x.queue_held"] = "x.queue_held"


class QueueReleased(BaseEvent):
    """Nothing holds back what waits any more."""

    owes_run: ClassVar[bool] = True

    type: Literal["x.queue_released"] = "x.queue_released"


class ContentSetAside(BaseEvent):
    """What a message said, or what a call was answered, is left out of every prompt from now on: a
    model service refused it, or a hook. The log and the page keep it."""

    type: Literal["x.content_set_aside"] = "x.content_set_aside"
    event_id: str
    """Of the message, or of the call."""
    reason: str = ""
    """What the service said of it."""


class ContentRedacted(BaseEvent):
    """What a message or an answer said, or a call brought, was taken out of the log by a person: a sentence
    stands in its place (`harness.redacted`), in prompts as well."""

    type: Literal["x.content_redacted"] = "x.content_redacted"
    event_id: str
    """Of the message, of the answer's first piece, of the call, or of what went with one of these: a thought,
    a judgement, a summary, a service's refusal."""


class Rewound(BaseEvent):
    """From here on the dialogue goes on behind the event numbered `behind`: what stands between the two
    belongs to a sibling branch (`harness.branches`), and goes on when somebody chooses that one.

    It is stored between turns only, with nothing open. Where a turn's input is the last that still
    counts, a reply to it is owed anew.
    """

    type: Literal["x.rewound"] = "x.rewound"
    behind: int
    """0: behind nothing, the dialogue begins anew."""
    why: Literal["rewind", "edit", "regenerate", "switch"] = "rewind"
    keeps: tuple[str, ...] = ()
    """Inputs that waited at that place and are to be taken here; of all others there nothing waits."""
    model: str = ""
    """Asked for in place of the agent's own, for the turn that is done anew; empty: its own."""
    files: Literal["", "follow", "stay", "not_kept", "elsewhere"] = ""
    """What becomes of the files of the workspace. Empty: they are as they were there; `follow`: they go
    back with it, to `checkpoint`; `stay`: they were to be left alone; `not_kept`: how they were there was
    not kept; `elsewhere`: they are on a worker's machine."""
    checkpoint: str = ""


class FeedbackGiven(BaseEvent):
    """What a reader thinks of an answer; her last word about it counts. The agent does not see it."""

    type: Literal["x.feedback_given"] = "x.feedback_given"
    event_id: str
    rating: Literal["up", "down", "none"]
    comment: str = ""


class MessagePinned(BaseEvent):
    """A person wants a message or an answer to stay before the agent word for word, or no longer; the last
    word about it counts. It changes nothing while what was said stands in the dialogue itself."""

    type: Literal["x.message_pinned"] = "x.message_pinned"
    event_id: str
    pinned: bool = True


class OutcomeUnknown(BaseEvent):
    """A call that reaches outside was under way when its process ended; a person says what now.

    Allowing the call runs it again, under the same id and with the same input, also where a person
    had edited that; denying leaves it unknown.
    """

    voids_answers: ClassVar[bool] = True

    type: Literal["x.outcome_unknown"] = "x.outcome_unknown"
    tool_use_id: str
    effect: str
    idempotent: bool = False


class CallHandedOut(BaseEvent):
    """A call was judged and may run, and somebody else is to carry it out: a worker of the environment
    or, where `carrier` names one, an app.

    Stored before any of them is told of it. `name` and `input` are what the worker is told, in its own
    vocabulary: the input that was judged or, where a person changed it, hers.
    """

    type: Literal["x.call_handed_out"] = "x.call_handed_out"
    tool_use_id: str
    effect: str
    idempotent: bool = False
    name: str
    input: dict[str, Any]
    carrier: str = ""
    """The app that carries it out; empty: the environment's workers do."""


class ApprovalRequested(BaseEvent):
    """A call that was stored as one that may run must wait for a person after all, or on other
    terms: a rule came in between. Answers from before count no more; an input that one of them put
    in place of the model's is what the question is about."""

    voids_answers: ClassVar[bool] = True

    type: Literal["x.approval_requested"] = "x.approval_requested"
    tool_use_id: str
    reason: str
    terms: AskTerms


class ApprovalVoted(BaseEvent):
    """How many of the people whose consent a call needs have allowed it; others are still to. Told with
    each consent, and by nobody when one counts no more."""

    type: Literal["x.approval_voted"] = "x.approval_voted"
    tool_use_id: str
    allowed: int
    needed: int
    edited_input: dict[str, Any] | None = None
    """What the last of them would have it run with in place of what the model asked for; others are
    asked about it."""


Priority = Literal["low", "normal", "high"]


class WakeRequested(BaseEvent):
    """The agent asks to be woken later and goes to sleep."""

    type: Literal["x.wake_requested"] = "x.wake_requested"
    delay_seconds: int
    reason: str
    note: str = ""
    dedupe_key: str = ""
    priority: Priority = "normal"


class WakeDue(BaseEvent):
    """A delayed wake has come due. Like a message it waits until it is taken, behind all messages."""

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["x.wake_due"] = "x.wake_due"
    reason: str
    note: str = ""
    priority: Priority = "normal"


class BackgroundStarted(BaseEvent):
    """A command runs on beside the conversation's turns."""

    type: Literal["x.background_started"] = "x.background_started"
    background_id: str
    command: str


class BackgroundFinished(BaseEvent):
    """A background command, or a subagent in the background, has ended, which is said exactly once.

    Waits like a message until it is taken: it joins the turn that is under way at its next tool
    boundary, or else begins one.
    """

    waits: ClassVar[bool] = True
    owes_run: ClassVar[bool] = True

    type: Literal["x.background_finished"] = "x.background_finished"
    background_id: str
    command: str
    state: Literal["completed", "failed", "timed_out", "cancelled", "lost"]
    """`lost`: its process ended before it did, so nobody knows how far it came."""
    exit_code: int | None = None
    seconds: float = 0.0
    output_path: str = ""
    """Relative to the workspace."""
    tail: str = ""
    """The end of what it printed."""
    detail: str = ""
    """How it ended, where state and code do not say it."""
    network: NetworkRecord | None = None
    """None: it had no way out, or none that is known."""
    untrusted_by: str = ""
    """What brought into its output what others wrote; empty: nothing did."""
    subagent: str = ""
    """The subagent's conversation, whose answer is `tail`; empty: it was a command."""


SubagentState = Literal["completed", "failed", "stopped", "lost"]


class SubagentStarted(BaseEvent):
    """A subagent has begun to work at what one call asked for, in a conversation of its own.

    What it may use is held back from what is left of the turn, until it has ended.
    """

    type: Literal["x.subagent_started"] = "x.subagent_started"
    tool_use_id: str
    subagent: str
    """The id of its conversation."""
    name: str
    """Its type, or the name of the agent."""
    description: str
    background: bool = False
    tokens: int = 0
    """What it may use at most."""


class SubagentEnded(BaseEvent):
    """It works no more at what the call asked for. Its answer is the call's or, in the background, an
    `x.background_finished`."""

    type: Literal["x.subagent_ended"] = "x.subagent_ended"
    tool_use_id: str
    subagent: str
    state: SubagentState
    tokens: int = 0
    """What it used, with everybody below it."""
    seconds: float = 0.0
    """How long it worked, without the wait for people."""


class RetryRequested(BaseEvent):
    """A person asked to go on after a failure or a limit. What is named here holds for that turn."""

    owes_run: ClassVar[bool] = True

    type: Literal["x.retry_requested"] = "x.retry_requested"
    from_start: bool = False
    """The prompt forgets what came of the turn's input so far; the log and the workspace keep it."""
    model: str = ""
    """Empty: the agent's own."""
    token_budget: int = 0
    """0: the agent's own."""
    resumed: bool = False
    """What kept it from going on is gone: nobody asks for it herself, and it goes on for whom it worked."""


class Todo(Frozen):
    content: str
    active_form: str
    """How to say it while it is being done: "Writing the tests"."""
    status: Literal["pending", "in_progress", "completed"] = "pending"


class TodosUpdated(BaseEvent):
    """The whole list as it is now."""

    plain: ClassVar[bool] = True

    type: Literal["x.todos_updated"] = "x.todos_updated"
    todos: tuple[Todo, ...]
    untrusted_by: str = ""
    """What of it the agent may have from strangers, in words: who reads it later reads these."""


class SessionMemoryWritten(BaseEvent):
    """A part of what the agent keeps for this conversation, whole, as it is from here on."""

    plain: ClassVar[bool] = True

    type: Literal["x.session_memory_written"] = "x.session_memory_written"
    part: Literal["state", "buffer"]
    version: int
    """Counts the writes of this part from 1."""
    text: str
    untrusted_by: str = ""
    """What of it the agent may have from strangers, in words: who reads it later reads these."""


Known = (
    UserMessage
    | UserInterrupt
    | UserToolConfirmation
    | UserCustomToolResult
    | UserToolResult
    | UserDefineOutcome
    | AgentMessage
    | AgentThinking
    | AgentToolUse
    | AgentToolResult
    | AgentMcpToolUse
    | AgentMcpToolResult
    | AgentCustomToolUse
    | McpElsewhere
    | AgentThreadContextCompacted
    | CompactionRequested
    | CompactionSkipped
    | SessionStatusRunning
    | SessionStatusIdle
    | SessionStatusRescheduled
    | SessionStatusTerminated
    | SessionError
    | SessionUpdated
    | SessionUsage
    | SessionThreadCreated
    | SpanModelRequestStart
    | SpanModelRequestEnd
    | SpanOutcomeEvaluationStart
    | SpanOutcomeEvaluationEnd
    | OutcomeCheckRan
    | SpanToolStart
    | SpanToolEnd
    | InputTaken
    | MessageWithdrawn
    | MessageEdited
    | MessageSteered
    | QueueOrdered
    | QueueHeld
    | QueueReleased
    | ContentSetAside
    | ContentRedacted
    | Rewound
    | FeedbackGiven
    | MessagePinned
    | OutcomeUnknown
    | CallHandedOut
    | ApprovalRequested
    | ApprovalVoted
    | WakeRequested
    | WakeDue
    | BackgroundStarted
    | BackgroundFinished
    | SubagentStarted
    | SubagentEnded
    | RetryRequested
    | TodosUpdated
    | SessionMemoryWritten
)


class AppEvent(BaseEvent):
    """Base of events that an app brings along: it names a `type` of its own under `x.` and calls `know`
    with the class when it starts. Old payloads of it must load for ever, as of any other."""

    type: str

    def remark(self) -> str:
        """What a reader of the conversation is told of it, in a line; nothing by itself."""
        return ""

    def more(self) -> str:
        """The address of a page of this server that tells more of it; empty: there is none."""
        return ""

    def subject(self) -> str:
        """The id of what it is about; empty: it stands for itself."""
        return ""

    def to_agent(self) -> str:
        """What it says to the agent at its place in the dialogue, where all calls have their answers; nothing
        by itself."""
        return ""

    def untrusted_by(self) -> str:
        """Whose words it brings into the dialogue, where they are others'; empty: nobody's."""
        return ""

    def tells_of_before(self) -> bool:
        """Whether those words stand before it, somewhere, in events that do not say so themselves. All of one
        type say the same, and they count on every branch."""
        return False

    def instructs(self) -> bool:
        """Whether whoever left it may have said by it what an agent is to do."""
        return False

    def outdates(self) -> bool:
        """Whether what a run has been given no longer holds by it: what follows is another run's."""
        return False

    def asked(self) -> Sequence[tuple[str, int, str]]:
        """Who was asked one after another right before it was stored: a name, milliseconds, and why it
        failed in a word; empty: nobody was."""
        return ()

    def may_quote(self) -> bool:
        """Whether it may repeat what was said before it in the dialogue."""
        return False

    def silent(self) -> Self:
        """The same without what was said of the call that its `tool_use_id` names, for when the words of
        that are taken out; itself, where it says nothing of one."""
        return self


Event = Known | AppEvent

ToolUse = AgentToolUse | AgentMcpToolUse | AgentCustomToolUse
"""What `is_call`; the id of the event is the id of the call."""

ToolResult = AgentToolResult | AgentMcpToolResult | UserCustomToolResult | UserToolResult
"""What `answers` a call."""

_ADAPTER: TypeAdapter[Known] = TypeAdapter(Annotated[Known, Field(discriminator="type")])
_of_apps: dict[str, type[AppEvent]] = {}

TYPES: tuple[str, ...] = tuple(kind.model_fields["type"].default for kind in Known.__args__)
"""Every type name of ours, in the order of the union; `types` tells those of apps as well."""


def _named(fits: Callable[[type[BaseEvent]], object]) -> tuple[str, ...]:
    return tuple(kind.model_fields["type"].default for kind in Known.__args__ if fits(kind))


CALLS = _named(lambda kind: kind.is_call)
OWES_RUN = _named(lambda kind: kind.owes_run)
ANSWERS = _named(lambda kind: kind.answers)
VOIDS_ANSWERS = _named(lambda kind: kind.voids_answers)


def load(payload: Mapping[str, Any]) -> Event:
    """The event of a stored payload, of whatever version it was written with."""
    of_app = _of_apps.get(payload.get("type", ""))
    return _ADAPTER.validate_python(payload) if of_app is None else of_app.model_validate(payload)


def know(kind: type[AppEvent]) -> None:
    """Take an app's event into the vocabulary. Raises `ValueError` for a name that does not begin with
    `x.`, or that another class has."""
    name = kind.model_fields["type"].default
    if not isinstance(name, str) or not name.startswith("x."):
        raise ValueError(f"{kind.__name__}: the type of an app's event begins with x.")
    if name in TYPES or _of_apps.get(name, kind) is not kind:
        raise ValueError(f"{kind.__name__}: there is an event {name} already")
    _of_apps[name] = kind


def bringing_types() -> tuple[str, ...]:
    """Those of apps by which others' words may come into the dialogue."""
    nobody = AppEvent.untrusted_by
    return tuple(name for name, kind in _of_apps.items() if kind.untrusted_by is not nobody)


def telling_of_before() -> tuple[str, ...]:
    """Those of apps that say so of what stands before them."""
    nothing = AppEvent.tells_of_before
    return tuple(name for name, kind in _of_apps.items() if kind.tells_of_before is not nothing)


def instructing_types() -> tuple[str, ...]:
    """Those of apps by which people may say what an agent is to do."""
    nobody = AppEvent.instructs
    return tuple(name for name, kind in _of_apps.items() if kind.instructs is not nobody)


def types() -> tuple[str, ...]:
    """Every type name that is known now."""
    return (*TYPES, *_of_apps)


def dump(event: Event) -> dict[str, Any]:
    """The payload to store: JSON types only, defaults included so that a later default changes nothing.

    Whatever the event holds, every database keeps the payload and it can be sent: `storable_value` says what
    becomes of the rest.
    """
    payload: dict[str, Any] = event.model_dump(mode="json")
    text = storable_json(payload)
    if text is None:
        mended: dict[str, Any] = storable_value(payload)
        return mended
    # Read back, what is no number is nothing.
    read: dict[str, Any] = orjson.loads(text)
    return read


def dump_text(event: Event) -> str:
    """The same as JSON text."""
    payload: dict[str, Any] = event.model_dump(mode="json")
    text = storable_json(payload)
    return json.dumps(storable_value(payload)) if text is None else text.decode()


def is_nested(event: Event) -> bool:
    """Whether it is a call that another call makes: no part of the dialogue with the model."""
    return isinstance(event, AgentToolUse | AgentMcpToolUse) and bool(event.within)


def answered_call(event: Event) -> str | None:
    """The id of the call that `event` answers, if it answers one."""
    return getattr(event, event.answers) if event.answers else None


def subject_of(event_id: str, event: Event) -> str:
    """The id of what `event` is about: a call, a reply, a message; its own id if it stands alone.

    Everything with one subject is drawn as one unit on a page, and stored with it for finding.
    """
    match event:
        case SpanToolStart() | SpanToolEnd() | UserToolConfirmation() | OutcomeUnknown():
            return event.tool_use_id
        case ApprovalRequested() | ApprovalVoted() | CallHandedOut():
            return event.tool_use_id
        case SubagentStarted() | SubagentEnded():
            return event.tool_use_id
        case McpElsewhere():
            return event.tool_use_id or event_id
        case _ if isinstance(event, ToolResult):
            return answered_call(event) or event_id
        case AgentMessage(continues=str(first)):
            return first
        case SpanModelRequestEnd():
            return event.model_request_start_id
        case SpanOutcomeEvaluationEnd() | OutcomeCheckRan():
            return event.outcome_evaluation_start_id
        case MessageWithdrawn() | MessageEdited() | MessageSteered() | ContentSetAside():
            return event.event_id
        case FeedbackGiven() | ContentRedacted() | MessagePinned():
            return event.event_id
        case AppEvent():
            return event.subject() or event_id
        case _:
            return event_id
