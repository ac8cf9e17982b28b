"""The log of one conversation as the loop sees it: entries in order, and what they still owe.

`History` folds entries one by one, so that asking it costs nothing however long the log is. It is
pure: the same entries give the same answers, whoever appended them. Storing is the journal's part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from harness.agentconfig import Features
from harness.branches import branches_in, on_path
from harness.content import foreign_kind
from harness.estimates import BYTES_PER_TOKEN, CHARACTERS_PER_TOKEN
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentMessage,
    AgentThreadContextCompacted,
    AgentToolResult,
    AppEvent,
    ApprovalRequested,
    BackgroundFinished,
    CallHandedOut,
    CompactionRequested,
    CompactionSkipped,
    ContentSetAside,
    EndTurn,
    Event,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    MessageSteered,
    MessageWithdrawn,
    OutcomeCheckRan,
    OutcomeUnknown,
    QueueHeld,
    QueueOrdered,
    QueueReleased,
    RequiresAction,
    RetryRequested,
    Rewound,
    ServiceEdited,
    SessionMemoryWritten,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionUpdated,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanOutcomeEvaluationStart,
    SpanToolStart,
    SubagentEnded,
    SubagentStarted,
    Todo,
    TodosUpdated,
    ToolResult,
    ToolUse,
    UserCustomToolResult,
    UserDefineOutcome,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    UserToolResult,
    WakeDue,
    WakeRequested,
    answered_call,
)
from harness.frontends import SOURCE as FRONT_END_WORDS
from harness.frontends import FrontEnd, OfferedTool
from harness.ids import new_event_id
from harness.messages import Usage
from harness.rules import AskTerms

BACKGROUND_TURNS = 10
"""Turns that ended background commands may begin before a person speaks again; further ends wait for
the next turn, so that an agent whose commands wake it cannot go on for ever."""
FIRST_RATE = BYTES_PER_TOKEN / CHARACTERS_PER_TOKEN
"""`History.rate` before any service has counted: ordinary text."""
LOWEST_RATE = FIRST_RATE / 2
"""A service that counts less is not believed: it may have counted something else."""
DENSE_RATE = 0.72
"""Of what was not counted yet, at least: that of text of three bytes a token and a little more, as what has
gone since may have been an image, of which far less was counted than is estimated for one."""
SAID_TO_THE_AGENT = frozenset({"needs_revision", "max_iterations_reached"})
"""Results of an evaluation after which the agent has the word once more."""
MAX_CONTINUATIONS = 3
"""How often a reply that hit its output limit is continued."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its id and place. `seq` is 0 until the journal has stored it."""

    uid: str
    event: Event
    seq: int = 0
    at: float = 0.0
    """When it was stored, in seconds since 1970; 0 where nobody keeps the time."""

    @classmethod
    def of(cls, event: Event) -> Entry:
        return cls(new_event_id(), event)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without an answer."""

    uid: str
    use: ToolUse
    started_effect: str | None = None
    """The effect stored when it was dispatched; None if it never was."""
    decision: UserToolConfirmation | None = None
    idempotent: bool = False
    unknown: bool = False
    """It was under way when its process ended, and a person is asked what now."""
    terms: AskTerms | None = None
    """On which a person is asked, as far as that is stored."""
    handed_out: bool = False
    """Somebody else has it, or is to have it: only its answer is awaited, and no run carries it out."""
    carrier: str = ""
    """The app that has it; empty: a worker of the environment."""
    proposed: dict[str, Any] | None = None
    """What an answer that counts no more had put in place of the model's input: asked anew, the
    question is about this."""

    @property
    def within(self) -> str:
        """The call that makes it; empty: the model asked for it."""
        return "" if isinstance(self.use, AgentCustomToolUse) else self.use.within

    @property
    def begun(self) -> bool:
        """It runs, or a worker has it; or its process ended and nobody has found out yet."""
        return self.handed_out or self.started_effect is not None

    @property
    def edited(self) -> bool:
        """A person allowed it with another input than the model's."""
        answer = self.decision
        return answer is not None and answer.result == "allow" and answer.edited_input is not None

    @property
    def input(self) -> dict[str, Any]:
        """What it runs with: the model's arguments, or those a person put in their place."""
        answer = self.decision
        chosen = self.proposed
        if answer is not None and answer.result == "allow":
            chosen = answer.edited_input
        return self.use.input if chosen is None else chosen

    def asked_anew(self, terms: AskTerms | None) -> OpenCall:
        """The same call with a new question, which no answer from before answers."""
        answer = self.decision
        allowed = answer is not None and answer.result == "allow"
        proposed = answer.edited_input if answer is not None and allowed else self.proposed
        return replace(self, decision=None, terms=terms, proposed=proposed)


@dataclass(frozen=True, slots=True)
class NestedCall:
    """A call that an open call made, and what answered it; None: it is open itself."""

    uid: str
    use: ToolUse
    answer: ToolResult | None = None


@dataclass(slots=True)
class Turn:
    """From input being taken to the rest that closes it; waiting for a person does not close it."""

    open: bool = False
    uid: str = ""
    """Of the event that began it."""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    truncations: int = 0
    """Consecutive replies cut by the output limit."""
    reply_owed: bool = False
    last_text: str | None = None
    """First piece of the last text block, to which a continuation would belong."""
    began_at: float = 0.0
    waited: float = 0.0
    """Seconds of the turn in which it rested for a person."""
    compactions: int = 0
    failures: int = 0
    """Consecutive model requests that failed and were put off."""
    wakes_requested: int = 0
    model: str = ""
    """Asked for in place of the kit's, for this turn only."""
    token_budget: int = 0
    """In place of the agent's own, for this turn only; 0: there is none."""
    tools: tuple[OfferedTool, ...] = ()
    """Brought by the front end that its words came through, for this turn only."""
    reserved: Mapping[str, int] = field(default_factory=dict)
    """By call: tokens that subagents of the turn may use at most, while they work."""
    tokens_below: int = 0
    """What those used that have ended."""
    seconds_below: float = 0.0
    """How long the turn's subagents worked while it rested for them. Side by side counts once."""
    seconds_beside: float = 0.0
    """The same since the last request, of the one that took longest."""

    @property
    def tokens(self) -> int:
        """What the turn has used, with what is held back for its subagents."""
        return self.usage.total_tokens + self.tokens_below + sum(self.reserved.values())


@dataclass(frozen=True, slots=True)
class Pursued:
    """An outcome that the agent works towards."""

    defined: UserDefineOutcome
    since: int
    """The place in the log's entries at which the work on it began."""
    evaluations: int = 0
    """How many have ended."""
    evaluating: str = ""
    """The id of the start of the one that is under way, or was lost with its process."""
    checked: tuple[OutcomeCheckRan, ...] = ()
    """What its checks came to in that one, in their order."""
    uid: str = ""
    """Of the event that defined it."""


class History:
    def __init__(self, entries: Iterable[Entry] = (), *, features: Features | None = None) -> None:
        self._log: list[Entry] | None = None
        """All of the log, where it has branches: `entries` is then the path that counts."""
        self._begin(features or Features())
        log = list(entries)
        if any(isinstance(entry.event, Rewound) for entry in log):
            self._choose_path(log)
        else:
            for entry in log:
                self.add(entry)

    def _begin(self, features: Features) -> None:
        """As it is before the first entry."""
        self._first_features = features
        self.entries: list[Entry] = []
        self.turn = Turn()
        self.running = False
        self.held = False
        """Queued messages wait for a person, because the last turn failed or hit a limit."""
        self.held_by_person = False
        """They do because she stopped the agent."""
        self.features = features
        self.todos: tuple[Todo, ...] = ()
        self.todos_untrusted_by = ""
        """What of them the agent may have from strangers."""
        self.outcome: Pursued | None = None
        """Until its last evaluation has ended."""
        self.memory: dict[str, tuple[SessionMemoryWritten, ...]] = {}
        """What the agent keeps for this conversation: of each part all versions, the oldest first."""
        self.usage = Usage()
        """Of every model request so far, whatever its purpose."""
        self.context_tokens = 0
        """Prompt and reply of the last main request: roughly the next prompt's size."""
        self.cleared = 0
        """Tokens that the service left out of that prompt by itself."""
        self.rate = FIRST_RATE
        """How much of the upper estimate of a prompt its service counted, the last time it was asked."""
        self.compaction: CompactionRequested | None = None
        """Somebody asked for one, and it was neither done nor skipped."""
        self.open_request: Entry | None = None
        """A model request that was begun and not ended: under way, or lost with its process."""
        self.interrupt: Entry | None = None
        self.wakes_in_row = 0
        """Turns begun by the agent's own wakes since a person last spoke."""
        self.put_off = False
        """A failed request is to be tried again later."""
        self.tainted_by = ""
        """What brought untrusted content in since a person last spoke; empty: nothing did."""
        self.ever_tainted_by = ""
        """The same since the conversation began."""
        self.tainted_beside = ""
        """What brought it in on a branch that was left; empty: nothing did."""
        self.left_beside_at = 0
        """The number of the event that said so."""
        self._tainted_at = 0
        """The place in the log at which the first such content came in."""
        self.made_after: dict[str, str] = {}
        """By call of the agent's: what had brought untrusted content in when it made it; by input what it
        brought itself."""
        self.first_taint = ""
        """The id of the event that said so."""
        self._unread = ""
        """What brought untrusted content in that no reply to the dialogue has heeded yet."""
        self._being_read = ""
        """The same of what the request that is under way carries."""
        self._read = (0, "")
        """The place in the log at which such content was last read, and what had brought it."""
        self.rested_at = 0.0
        """Since when the turn rests for somebody; 0 while it does not."""
        self._pending: dict[str, Entry] = {}
        self._said: dict[str, int] = {}
        """The place in the log at which each of them that is a person's got its words."""
        self._wakes: dict[str, Entry] = {}
        self._foreign_wakes: dict[tuple[str, str], str] = {}
        """Reason and note of wakes asked for with untrusted content in sight, and what had brought it."""
        self._finished: dict[str, Entry] = {}
        self._steered: set[str] = set()
        self._set_aside: set[str] = set()
        self._jump: str | None = None
        self._last: Entry | None = None
        self._waits_for_people = False
        """The last rest is one until somebody answers the open calls."""
        self._retry: RetryRequested | None = None
        """Asked for where no turn had begun: what it names holds for the next one."""
        self._context_at_input = 0
        self._calls: dict[str, OpenCall] = {}
        self._nested: dict[str, dict[str, NestedCall]] = {}
        """By the id of an open call, those that it made, in order."""
        self._purposes: dict[str, str] = {}
        self._of_summaries: set[str] = set()
        """Requests that were none of the dialogue."""
        self._estimated = 0
        """The upper estimate of the last main request's prompt, as its plan has it."""
        self._counted = (0, 0)  # of the last one that was counted, that and what it was

    # --- questions --------------------------------------------------------------------------------

    @property
    def last_seq(self) -> int:
        return self._last.seq if self._last else 0

    @property
    def read_anywhere(self) -> str:
        """`ever_tainted_by`, or what was read on a branch that was left: what came of it may have stayed."""
        return self.ever_tainted_by or left_behind(self.tainted_beside)

    def rate_of(self, at_most: int) -> float:
        """`rate` of a prompt with this upper estimate, where what is new in it has its own at least."""
        estimated, counted = self._counted
        grown = counted + (at_most - estimated) * DENSE_RATE
        return max(self.rate, min(1.0, grown / at_most)) if 0 < estimated < at_most else self.rate

    def unanswered(self) -> list[OpenCall]:
        """Calls without a result, in the order they were asked."""
        return list(self._calls.values())

    @property
    def evaluation_owed(self) -> bool:
        """The agent has said its last word on an outcome that nobody has judged since."""
        return (
            self.outcome is not None
            and self.turn.open
            and not (self.turn.reply_owed or self._calls)
        )

    def awaited(self) -> list[OpenCall]:
        """The open calls without those that wait for a call of their own."""
        return [call for call in self._calls.values() if not self.is_blocked(call)]

    def is_blocked(self, call: OpenCall) -> bool:
        """It made a call that is still open, and goes on when that is answered."""
        return any(each.answer is None for each in self.nested_in(call.uid))

    def may_go_on(self, call: OpenCall) -> bool:
        """All calls that it made are answered, and nobody is asked about it."""
        made = self.nested_in(call.uid)
        asked = call.terms is not None and call.decision is None
        return bool(made) and not self.is_blocked(call) and not asked

    def open_call(self, uid: str) -> OpenCall | None:
        return self._calls.get(uid)

    def nested_in(self, uid: str) -> list[NestedCall]:
        """What an open call has made so far, in order."""
        return list(self._nested.get(uid, {}).values())

    def queued(self) -> list[Entry]:
        """Messages, outcomes to reach, due wakes and ends of background commands that may begin a turn
        and were not taken yet, in the order they will be.

        Messages first in, first out, unless a person ordered them otherwise; only one posted right
        behind an interrupt goes first, because that is what its sender interrupted for. Wakes come behind
        all messages, by priority.
        """
        waiting = list(self._pending.values())
        if self._jump in self._pending:
            waiting.sort(key=lambda entry: entry.uid != self._jump)
        return [*waiting, *sorted(self._wakes.values(), key=_urgency), *self._wakers()]

    def steered(self) -> list[Entry]:
        """What waits and shall join the current turn, oldest first: messages, and the ends of
        background commands."""
        messages = [entry for uid, entry in self._pending.items() if uid in self._steered]
        return sorted([*messages, *self._finished.values()], key=lambda entry: entry.seq)

    @property
    def has_work(self) -> bool:
        """Whether a run would do anything at all."""
        if self.interrupt or self.open_request or self.compaction:
            return True
        if self._calls:
            # Resting for people is no work; a decision, a lost process or a rest not reached is.
            return (
                self.running
                or (self._is_asked and not self._waits_for_people)
                or any(map(self._owes, self._calls.values()))
            )
        return self._is_asked or self.running

    @property
    def stopped_short(self) -> bool:
        """Its last turn failed, met a limit or was stopped, and no person has said what now."""
        return self.held or self.held_by_person

    @property
    def waits_for_people(self) -> bool:
        """It rests until somebody answers the open calls."""
        return self._waits_for_people

    def _owes(self, call: OpenCall) -> bool:
        if self.is_blocked(call):
            return False
        decided = call.decision is not None and not call.handed_out
        return decided or call.started_effect is not None

    @property
    def may_retry(self) -> bool:
        """Whether going on without a new message makes sense: something was asked and not answered."""
        if self.turn.open or self._waits_for_people:
            return False
        return bool(self._calls) or self._last_reply_is_missing() or (self.held and self._waits)

    @property
    def _waits(self) -> bool:
        return bool(self._pending or self._wakes or self._wakers())

    def _wakers(self) -> list[Entry]:
        allowed = self.wakes_in_row < BACKGROUND_TURNS
        return list(self._finished.values()) if allowed else []

    @property
    def _is_asked(self) -> bool:
        """Whether a turn is under way, or something waits that may begin one."""
        return self.turn.open or (self._waits and not (self.held or self.held_by_person))

    # --- folding ----------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Take the next entry of the log."""
        if self._log is not None:
            self._log.append(entry)
        if isinstance(entry.event, Rewound):
            self._choose_path(self._log or [*self.entries, entry])
            return
        self.take(entry)

    def take(self, entry: Entry) -> None:
        """The same of one that counts wherever it leads back to."""
        self.entries.append(entry)
        self._fold(entry)
        self._last = entry

    def _choose_path(self, log: list[Entry]) -> None:
        """Fold anew what counts of a log with branches. What was used on others stays used."""
        self._begin(self._first_features)
        self._log = log
        path = on_path(log)
        here = {entry.uid for entry in path}
        left = ((entry.seq, strangers_in(entry)) for entry in log if entry.uid not in here)
        first = next((each for each in left if each[1]), (0, ""))
        self.left_beside_at, self.tainted_beside = first
        branches, stored = branches_in(log), [entry for entry in log if entry.seq]
        begun, stretches = branches.begun(), branches.left()
        # Wherever they stand: what counts on every branch stands on one that was left as well, and what a
        # call was made after may have come from another branch.
        words = ((entry.seq, strangers_in(entry)) for entry in stored)
        heard = next((each for each in words if each[1]), (0, ""))
        if heard[1] and 0 in stretches:
            self._heed_what_was_left(stored, stretches[0], begun, heard)
        for entry in path:
            self.take(entry)
            if (heard[1] or self.ever_tainted_by) and entry.seq in stretches:
                self._heed_what_was_left(stored, stretches[entry.seq], begun, heard)
        spent = (entry.event for entry in log if isinstance(entry.event, SpanModelRequestEnd))
        self.usage = sum((Usage(**each.model_usage.model_dump()) for each in spent), Usage())

    def _heed_what_was_left(
        self,
        log: Sequence[Entry],
        stretches: Iterable[tuple[int, int]],
        begun: Mapping[int, Sequence[tuple[int, int]]],
        heard: tuple[int, str],
    ) -> None:
        """Strangers' words that stand before this place may have led to calls on branches that go on behind
        it and were left, as long as no person had spoken there. So may those that came there from another
        branch, by a wake say: where the first of the log were `heard` before, on whichever, what came counts
        there as it would have."""
        left = [(self, stretch) for stretch in stretches]
        while left:
            before, (first, last) = left.pop()
            if self.tainted_beside and self.left_beside_at <= first:
                continue
            there = before.copied()
            there.left_beside_at, there.tainted_beside = heard if heard[0] < first else (0, "")
            begins = bisect_left(log, first, key=_number)
            for entry in log[begins : bisect_right(log, last, key=_number)]:
                there.take(entry)
                if isinstance(entry.event, ToolUse) and there.tainted_by:
                    if not self.tainted_beside or entry.seq < self.left_beside_at:
                        self.left_beside_at, self.tainted_beside = entry.seq, there.tainted_by
                    break
                if entry.seq in begun:
                    here = there.copied()
                    left += [(here, each) for each in begun[entry.seq]]

    def followed_by(self, entries: Iterable[Entry], *, at: float) -> History:
        """What this would be with `entries` stored behind it at that time; itself it stays as it is."""
        ahead = self.copied()
        for entry in entries:
            ahead.add(replace(entry, at=at))
        return ahead

    def copied(self) -> History:
        """Another one that stands where this does."""
        ahead = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict | set | Turn):
                setattr(ahead, name, copy(value))
        return ahead

    def _fold(self, entry: Entry) -> None:
        event = entry.event
        if (call_id := answered_call(event)) is not None:
            call = self._calls.pop(call_id, None)
            self._fold_trust(call, event)
            self._fold_nested(call, event)
            if isinstance(event, UserCustomToolResult) and event.front_end is not None:
                self.turn.tools = event.front_end.tools
            if not self._calls and self.turn.open:
                self.turn.reply_owed = True
            # What still waits is told again, without the call that was answered.
            self._waits_for_people = False
            return
        match event:
            case UserMessage():
                self._pending[entry.uid] = entry
                if not (event.by_agent or event.carried_over):
                    self._said[entry.uid] = len(self.entries)
                self.held = self.held_by_person = False
                if self._last and isinstance(self._last.event, UserInterrupt):
                    self._jump = entry.uid
            case UserDefineOutcome():
                self._pending[entry.uid] = entry
                self._said[entry.uid] = len(self.entries)
                self.held = self.held_by_person = False
            case InputTaken():
                self._fold_input(entry.uid, event)
                if not event.steered:
                    self.turn.began_at = entry.at
            case MessageEdited():
                self._fold_edit(event)
            case MessageWithdrawn():
                self._pending.pop(event.event_id, None)
                self._said.pop(event.event_id, None)
            case MessageSteered():
                self._steered.add(event.event_id)
            case QueueOrdered():
                named = [uid for uid in event.event_ids if uid in self._pending]
                self._pending = {uid: self._pending[uid] for uid in (*named, *self._pending)}
                self._jump = None
            case QueueHeld():
                self.held_by_person = True
            case QueueReleased():
                self.held = self.held_by_person = False
            case ContentSetAside():
                self._set_aside.add(event.event_id)
                self.held = self.held_by_person = False
            case WakeDue():
                self._wakes[entry.uid] = entry
            case BackgroundFinished():
                self._finished[entry.uid] = entry
            case WakeRequested():
                self.turn.wakes_requested += 1
                if self.tainted_by:
                    self._foreign_wakes[event.reason, event.note] = self.tainted_by
            case RetryRequested():
                self._fold_retry(entry.uid, event)
            case UserInterrupt():
                if self.turn.open or self._calls or self._pending:
                    self.interrupt = entry
            case UserToolConfirmation():
                call = self._calls.get(event.tool_use_id)
                if call and call.decision is None:
                    self._calls[call.uid] = replace(call, decision=event)
            case SpanToolStart():
                call = self._calls.get(event.tool_use_id)
                if call:
                    self._calls[call.uid] = replace(
                        call,
                        started_effect=event.effect,
                        idempotent=event.idempotent,
                        unknown=False,
                    )
            case CallHandedOut():
                call = self._calls.get(event.tool_use_id)
                if call:
                    self._calls[call.uid] = replace(call, handed_out=True, carrier=event.carrier)
            case SubagentStarted():
                held = {event.tool_use_id: event.tokens}
                self.turn.reserved = {**self.turn.reserved, **held}
            case SubagentEnded():
                self._fold_subagent(event)
            case OutcomeUnknown():
                call = self._calls.get(event.tool_use_id)
                if call:
                    # Whatever allowed the first attempt does not allow a second one, wherever it was.
                    again = call.asked_anew(None)
                    self._calls[call.uid] = replace(
                        again, started_effect=None, handed_out=False, carrier="", unknown=True
                    )
                self._waits_for_people = False
            case ApprovalRequested():
                call = self._calls.get(event.tool_use_id)
                if call:
                    if call.handed_out:
                        # Taken back before anybody had it: what the turn rests for is told anew.
                        self._waits_for_people = False
                    anew = call.asked_anew(event.terms)
                    self._calls[call.uid] = replace(anew, handed_out=False, carrier="")
            case SpanModelRequestStart():
                self.open_request = entry
                self._purposes[entry.uid] = event.purpose
                if event.purpose == "main":
                    beside = event.summary_tokens_at_most + event.unopened_tokens_at_most
                    self._estimated = event.prompt_tokens_at_most - beside
                    self.turn.steps += 1
                    self.turn.seconds_below += self.turn.seconds_beside
                    self.turn.seconds_beside = 0.0
                    self._being_read = self._being_read or self._unread
                    self._unread = ""
            case SpanModelRequestEnd():
                self._fold_request_end(event)
            case SpanOutcomeEvaluationStart():
                if self.outcome is not None:
                    self.outcome = replace(self.outcome, evaluating=entry.uid, checked=())
            case OutcomeCheckRan(outcome_evaluation_start_id=start):
                if self.outcome is not None and start == self.outcome.evaluating:
                    checked = (*self.outcome.checked, event)
                    self.outcome = replace(self.outcome, checked=checked)
            case SpanOutcomeEvaluationEnd():
                self._fold_evaluation(event)
            case McpElsewhere():
                # The reply that goes on behind it has read it; whoever speaks later speaks about that. A use
                # as well: what came of it may be lost, and nothing is to be begun anew then unasked.
                unread = self._unread
                self._taint(event.server)
                self._unread, self._being_read = unread, self._being_read or event.server
            case AgentMessage():
                self.turn.last_text = event.continues or entry.uid
            case CompactionRequested():
                self.compaction = event
            case CompactionSkipped():
                self.compaction = None
            case AgentThreadContextCompacted():
                # What a service makes by itself answers nobody.
                self.compaction = self.compaction if event.provider else None
                self.cleared = 0
                self.turn.compactions += 1
                self.context_tokens = 0
                self._fold_summary(event)
            case SessionStatusRunning():
                if self.rested_at and self.turn.open:
                    self.turn.waited += entry.at - self.rested_at
                self.rested_at = 0.0
                self.running = True
                self.put_off = False
                self._waits_for_people = False
            case SessionStatusRescheduled():
                self.running = False
                self.put_off = True
                self.turn.failures += 1
            case SessionStatusIdle():
                self._fold_idle(event)
                self.rested_at = entry.at
            case SessionUpdated():
                if event.features:
                    self.features = self.features.model_copy(update=event.features)
            case TodosUpdated():
                self.todos, self.todos_untrusted_by = event.todos, event.untrusted_by
            case SessionMemoryWritten():
                self.memory[event.part] = (*self.memory.get(event.part, ()), event)
            case Rewound():
                self._fold_rewound(entry, event)
            case AppEvent() if source := event.untrusted_by():
                self._taint(source)
                if event.tells_of_before():
                    self._tainted_at, self.first_taint = 1, entry.uid
                    before = (each.uid for each in self.entries if isinstance(each.event, ToolUse))
                    self.made_after = {**dict.fromkeys(before, source), **self.made_after}
            case _ if isinstance(event, ToolUse):
                call = OpenCall(entry.uid, event, terms=_terms_of(event))
                self._calls[entry.uid] = call
                if self.tainted_by:
                    self.made_after[entry.uid] = self.tainted_by
                if call.within:
                    made = self._nested.get(call.within, {})
                    made = {**made, call.uid: NestedCall(call.uid, event)}
                    self._nested[call.within] = made
                    self._put_down(call.within)
            case _:
                pass

    def _put_down(self, uid: str) -> None:
        """A call of an MCP server that makes one has its answer so far, which is a question: it is not under
        way, and if its process ends now nothing is unknown."""
        made_by = self._calls.get(uid)
        if made_by is not None and isinstance(made_by.use, AgentMcpToolUse):
            self._calls[uid] = replace(made_by, started_effect=None)

    def _fold_nested(self, call: OpenCall | None, event: Event) -> None:
        if call is None:
            return
        self._nested.pop(call.uid, None)
        if call.within in self._nested and isinstance(event, ToolResult):
            made = self._nested[call.within]
            answered = replace(made[call.uid], answer=event)
            self._nested[call.within] = {**made, call.uid: answered}

    def _fold_trust(self, call: OpenCall | None, event: Event) -> None:
        source = untrusted_in_answer(event, call.use.name if call else "a tool's answer")
        seq = self.entries[-1].seq
        if isinstance(event, UserToolResult) and not 0 < seq <= self.left_beside_at:
            # Nobody marks the files there, nor what is left running.
            source = source or left_behind(self.tainted_beside)
        if source:
            self._taint(source)

    def _taint(self, source: str) -> None:
        self.tainted_by = self.tainted_by or source
        if not self.ever_tainted_by:
            self.ever_tainted_by, self._tainted_at = source, len(self.entries)
            self.first_taint = self.entries[-1].uid
        self._unread = self._unread or source

    def _fold_summary(self, event: AgentThreadContextCompacted) -> None:
        """What stands for words of others may say anything, and no person has seen it."""
        if not self.ever_tainted_by or event.fallback:
            return
        own = islice(self.entries, self._tainted_at - 1)
        if all(entry.uid != event.through for entry in own):
            self._taint(f"{self.ever_tainted_by}, by way of a summary")

    def _fold_evaluation(self, event: SpanOutcomeEvaluationEnd) -> None:
        """What the grader says joins the dialogue, unless there is nothing more to be done."""
        if self.outcome is None:
            return
        going_on = event.result == "needs_revision"
        more = self.outcome.evaluations + 1
        self.outcome = replace(self.outcome, evaluations=more, evaluating="") if going_on else None
        if self.turn.open and event.result in SAID_TO_THE_AGENT:
            self.turn.reply_owed = True
            if source := event.untrusted_by or self.ever_tainted_by:
                # The grader has read what strangers wrote, and no person what it says of it.
                self._taint(f"{source}, by way of an evaluation")

    def _hear_a_person(self, said_at: int) -> None:
        """Her word is about what the agent had read by then, and about nothing that came later."""
        if self._read[0] <= said_at:
            self._read = (0, "")
        self.tainted_by = self._read[1] or self._being_read or self._unread

    def _fold_reading(self, *, is_read: bool) -> None:
        """A request of the dialogue has ended."""
        if is_read and self._being_read:
            self._read = (len(self.entries), self._being_read)
        elif not is_read:
            self._unread = self._being_read or self._unread
        self._being_read = ""

    def _fold_input(self, uid: str, event: InputTaken) -> None:
        woken = False
        spoken: list[Entry] = []
        for taken in event.event_ids:
            message = self._pending.pop(taken, None)
            if message is not None:
                spoken.append(message)
            for wakers in (self._wakes, self._finished):
                waker = wakers.pop(taken, None)
                if waker is not None:
                    woken = True
                    spoken.append(waker)
        # What was taken together is read together: a person's word does not make the rest hers.
        said = [self._said.pop(each.uid) for each in spoken if each.uid in self._said]
        if said:
            self._hear_a_person(max(said))
        for each in spoken:
            if source := self._untrusted_in(each):
                self.made_after[each.uid] = source
                self._taint(source)
        for each in spoken:
            if isinstance(each.event, UserDefineOutcome):
                self.outcome = Pursued(each.event, since=len(self.entries), uid=each.uid)
        brought = [sent for each in spoken if (sent := _sent_along(each)) is not None]
        if event.steered:
            self.turn.reply_owed = True
            self.turn.tools = brought[-1].tools if brought else self.turn.tools
            return
        tools = brought[-1].tools if brought else ()
        self.turn = Turn(open=True, uid=uid, reply_owed=True, tools=tools)
        if self._retry is not None:
            self.turn.model = self._retry.model
            self.turn.token_budget = self._retry.token_budget
            self._retry = None
        self._context_at_input = self.context_tokens
        self.wakes_in_row = self.wakes_in_row + 1 if woken else 0

    def _untrusted_in(self, input_: Entry) -> str:
        beside = self.tainted_beside
        match input_.event:
            case WakeDue(reason=reason, note=note):
                source = self._foreign_wakes.get((reason, note), "")
            case BackgroundFinished(untrusted_by=source):
                pass
            case UserMessage(by_agent=True):
                source = untrusted_in_input(input_)
                if 0 < input_.seq <= self.left_beside_at:
                    beside = ""  # said before that was read
            case _:
                return untrusted_in_input(input_)
        # Whoever says it may have been told on that branch what it says here.
        return source or left_behind(beside)

    def _fold_subagent(self, event: SubagentEnded) -> None:
        """What it did not use comes back to the turn it began in; another one has nothing of it."""
        turn = self.turn
        if event.tool_use_id not in turn.reserved:
            return
        turn.reserved = {
            call: held for call, held in turn.reserved.items() if call != event.tool_use_id
        }
        turn.tokens_below += event.tokens
        if event.tool_use_id in self._calls:
            turn.seconds_beside = max(turn.seconds_beside, event.seconds)

    def _fold_edit(self, event: MessageEdited) -> None:
        waiting = self._pending.get(event.event_id)
        if waiting is not None and isinstance(waiting.event, UserMessage):
            said = waiting.event.model_copy(update={"content": event.content})
            self._pending[event.event_id] = replace(waiting, event=said)
            if not said.by_agent:
                self._said[event.event_id] = len(self.entries)

    def _fold_retry(self, uid: str, event: RetryRequested) -> None:
        if event.from_start and not self.turn.open:
            self._nested.clear()
            self._calls.clear()  # what the prompt forgets is not carried out any more
        missing = bool(self._calls) or self._last_reply_is_missing()
        began_nothing = self.held and self._waits and not missing
        self.held = self.held_by_person = False
        if self.turn.open:
            return
        if began_nothing:
            self._retry = event
            return
        self.turn = Turn(
            open=True,
            uid=uid,
            reply_owed=missing and not self._calls,
            model=event.model,
            token_budget=event.token_budget,
            tools=self.turn.tools,
        )
        if event.from_start:
            self.context_tokens, self.cleared = self._context_at_input, 0

    def _fold_rewound(self, entry: Entry, event: Rewound) -> None:
        """Nothing goes on as it was at that place, but what was asked there may be asked anew."""
        for waiting in (self._pending, self._wakes, self._finished):
            for uid in [uid for uid in waiting if uid not in event.keeps]:
                del waiting[uid]
        self._calls.clear()
        self._nested.clear()
        self.interrupt = self.open_request = self._retry = self._jump = None
        self.running = self.put_off = self._waits_for_people = self.held_by_person = False
        self.rested_at = 0.0
        if self.turn.open:
            self.turn = Turn(
                open=True,
                uid=entry.uid,
                reply_owed=self.turn.reply_owed,
                began_at=entry.at,
                model=event.model,
                tools=self.turn.tools,
            )

    def _fold_request_end(self, event: SpanModelRequestEnd) -> None:
        begun = self.open_request.event if self.open_request is not None else None
        self.open_request = None
        usage = Usage(**event.model_usage.model_dump())
        self.turn.usage += usage
        self.usage += usage
        if self._purposes.pop(event.model_request_start_id, "main") != "main":
            self._of_summaries.add(event.model_request_start_id)
            return
        self._fold_reading(is_read=not event.is_error and event.end != "interrupted")
        if event.end == "lost" and isinstance(begun, SpanModelRequestStart) and begun.servers:
            # Its process ended, and nobody knows what the service had called by then. It is asked again, and
            # is to begin nothing anew that nobody sees.
            self._taint(begun.servers[0])
        if event.is_error:
            self.turn.steps = max(0, self.turn.steps - 1)  # it brought the work no further
            return
        if event.end == "interrupted":
            return
        edited = event.edited or ServiceEdited()
        made = edited.compaction
        self.cleared = 0 if made else edited.cleared_tokens
        self.context_tokens = usage.total_tokens
        if made:
            # What is left of the prompt says nothing about the one that was estimated.
            self.context_tokens -= Usage(**made.model_dump()).total_tokens
            self._counted = (0, 0)
        elif self._estimated and usage.prompt_tokens and not event.estimated:
            sent = usage.prompt_tokens + self.cleared
            self.rate = min(1.0, max(LOWEST_RATE, sent / self._estimated))
            self._counted = (self._estimated, sent)
        self.turn.failures = 0
        truncated = event.end == "max_tokens" and not self._calls
        self.turn.truncations = self.turn.truncations + 1 if truncated else 0
        self.turn.reply_owed = event.end == "pause" or (
            truncated and self.turn.truncations <= MAX_CONTINUATIONS
        )

    def _fold_idle(self, event: SessionStatusIdle) -> None:
        self.running = False
        self.put_off = False
        self._waits_for_people = isinstance(event.stop_reason, RequiresAction)
        if self._waits_for_people:
            return  # an interrupt that came right before is still to be heeded
        self.interrupt = None
        self.turn.open = False
        self.turn.reply_owed = False
        self.held = not isinstance(event.stop_reason, EndTurn)

    def _last_reply_is_missing(self) -> bool:
        """Whether the dialogue's last word is not a finished reply of the agent's."""
        for entry in reversed(self.entries):
            match entry.event:
                case SpanModelRequestEnd(model_request_start_id=uid) if uid in self._of_summaries:
                    continue
                case SpanModelRequestEnd(is_error=False, end="end_turn" | "stop_sequence"):
                    return False
                case SpanModelRequestEnd(is_error=True) if self._set_aside:
                    continue  # what was refused may be what was set aside
                case InputTaken(event_ids=uids) if uids and self._set_aside.issuperset(uids):
                    continue
                case SpanModelRequestEnd() | InputTaken():
                    return True
                case event if answered_call(event) is not None:
                    return True
                case _:
                    continue
        return False


def _terms_of(use: ToolUse) -> AskTerms | None:
    """On which the call asks from the start; None where it does not."""
    if isinstance(use, AgentCustomToolUse):
        return None
    asks = use.evaluated_permission == "ask"
    return use.terms or (AskTerms() if asks else None)


def _sent_along(input_: Entry) -> FrontEnd | None:
    return input_.event.front_end if isinstance(input_.event, UserMessage) else None


def _number(entry: Entry) -> int:
    return entry.seq


def left_behind(source: str) -> str:
    """The same words of what was read on a branch that was left; empty: nothing was."""
    said = ", on a branch that was left"
    return f"{source.removesuffix(said)}{said}" if source else ""


def untrusted_in_input(input_: Entry) -> str:
    """What brings into an input what others wrote, in words; empty: nothing does."""
    match input_.event:
        case UserMessage(untrusted_by=source) if source:
            return source
        case UserMessage(front_end=FrontEnd(notes=notes)) if notes:
            return FRONT_END_WORDS
        case UserMessage(content=content) if kind := foreign_kind(content):
            return f"an uploaded {kind}"
        case BackgroundFinished(untrusted_by=source):
            return source
        case _:
            return ""


def untrusted_in_answer(event: Event, tool: str) -> str:
    """The same of an answer to a call of `tool`."""
    match event:
        case AgentMcpToolResult():
            return tool
        case UserCustomToolResult() | UserToolResult() if event.untrusted:
            return tool
        case UserCustomToolResult(front_end=FrontEnd(notes=notes)) if notes:
            return FRONT_END_WORDS
        case AgentToolResult() if event.untrusted or event.untrusted_by:
            return event.untrusted_by or tool
        case UserCustomToolResult() | UserToolResult() | AgentToolResult():
            kind = foreign_kind(event.content)
            return f"{kind} in the answer of {tool}" if kind else ""
        case _:
            return ""


def strangers_in(entry: Entry) -> str:
    """What brings others' words into an entry, whether the agent was told of it, will be, or never is: for
    whoever reads the log itself. Empty: nothing does."""
    match entry.event:
        case MessageEdited(content=content):
            return untrusted_in_input(Entry.of(UserMessage(content=content)))
        case UserMessage() | BackgroundFinished():
            return untrusted_in_input(entry)
        case OutcomeCheckRan(untrusted_by=source) | SpanOutcomeEvaluationEnd(untrusted_by=source):
            return source
        case TodosUpdated(untrusted_by=source) | SessionMemoryWritten(untrusted_by=source):
            return source
        case McpElsewhere(server=server):
            return server
        case AppEvent() as told:
            return told.untrusted_by()
        case event:
            return untrusted_in_answer(event, "a tool")


_URGENCY = {"high": 0, "normal": 1, "low": 2}


def _urgency(entry: Entry) -> tuple[int, int]:
    event = entry.event
    return (_URGENCY[event.priority] if isinstance(event, WakeDue) else 0, entry.seq)
