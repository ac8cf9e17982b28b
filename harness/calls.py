"""Answers the calls of a step: judged, announced, run together, each result stored as it comes.

Reads and calls that reach outside run side by side; calls that write the workspace run one after
another in call order, so that two edits of one file cannot lose one, and each is judged when its turn has
come: by the rules of then, and with what the one before it brought. Judging is `policy`'s, running
and containing one call is `tools.perform`'s.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.content import Text, as_blocks
from harness.errors import InvalidToolInput
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentToolResult,
    AgentToolUse,
    ApprovalRequested,
    CallHandedOut,
    Event,
    OutcomeUnknown,
    ResultOutcome,
    SpanToolEnd,
    SpanToolStart,
    ToolUse,
)
from harness.external import fault_of
from harness.history import Entry, History, OpenCall, untrusted_in_answer
from harness.hooks import CHILD_BEFORE, PASSED, TOOL_AFTER, TOOL_BEFORE, About, Ruling
from harness.kit import Kit, Signal, first_of, first_of_all
from harness.nested import DEPTH, Diverged, Nested
from harness.overflow import bounded
from harness.policy import Verdict
from harness.rules import AskTerms
from harness.tools import (
    PEOPLE,
    Effect,
    HandedOut,
    Outcome,
    PutDown,
    Tool,
    check_input_aside,
    perform,
)

Append = Callable[..., Awaitable[None]]
AppendIfUnchanged = Callable[..., Awaitable[bool]]
"""Whether the entries were stored; either way what the log gained was taken in."""

GRACE = 0.5
"""Seconds that a workspace write gets to finish when a person stops the turn: it is nearly done, and
an answer is worth more than "stopped" over a file that changed all the same."""

STOPPED = "Stopped by a person before it finished."
GIVEN_UP = "The call that made this one ended without waiting for it."
UNKNOWN = (
    "The outcome of this call is unknown: the process that ran it ended before it answered. It may "
    "or may not have happened. Check before you do it again."
)


def result_of(use: ToolUse, call_id: str, outcome: Outcome, kind: ResultOutcome) -> Event:
    """The event that answers a call of this kind."""
    if isinstance(use, AgentMcpToolUse):
        return AgentMcpToolResult(
            mcp_tool_use_id=call_id,
            content=outcome.content,
            is_error=outcome.is_error,
            outcome=kind,
        )
    return AgentToolResult(
        tool_use_id=call_id,
        content=outcome.content,
        is_error=outcome.is_error,
        outcome=kind,
        display=outcome.display,
        untrusted=outcome.untrusted,
        untrusted_by=outcome.untrusted_by,
        keeps=outcome.keeps,
    )


def _has_grace(tool: Tool) -> bool:
    """Whether its calls run one after another, and may still end by themselves when a turn stops."""
    return tool.in_order or tool.effect is Effect.WORKSPACE


def refusal_of(call: OpenCall, words: str, kind: ResultOutcome, *, untrusted_by: str = "") -> Entry:
    outcome = Outcome(
        as_blocks(words), is_error=True, untrusted=bool(untrusted_by), untrusted_by=untrusted_by
    )
    return Entry.of(result_of(call.use, call.uid, outcome, kind))


def _with_words(outcome: Outcome, ruling: Ruling) -> Outcome:
    return replace(
        outcome,
        content=(*outcome.content, *as_blocks(ruling.added)),
        untrusted=outcome.untrusted or bool(ruling.untrusted_by),
        untrusted_by=outcome.untrusted_by or ruling.untrusted_by,
    )


def note_of_edit(ran_with: Mapping[str, Any]) -> str:
    """What the model reads before the result of a call that a person changed."""
    given = json.dumps(ran_with, ensure_ascii=False)
    return f"A person changed the input of this call before allowing it. It ran with: {given}"


async def hand_out(
    call: OpenCall, tool: Tool, handed_out: HandedOut, offload: Callable[..., Awaitable[Any]]
) -> Entry:
    """The event that gives a call which may run to whoever carries it out, or its refusal where the
    input breaks the tool's schema: nobody is asked to carry that out."""
    try:
        await check_input_aside(tool, call.input, offload)
    except InvalidToolInput as problem:
        return refusal_of(call, problem.message, "error")
    name, given = handed_out(call.input)
    return Entry.of(
        CallHandedOut(
            tool_use_id=call.uid,
            effect=tool.effect.value,
            idempotent=tool.idempotent,
            name=name,
            input=given,
            carrier=tool.carrier,
        )
    )


def taken_back(call: OpenCall, kit: Kit, history: History) -> Entry | None:
    """The refusal of a call that was handed out and that nobody was told of yet, or the question about it,
    where it may not run any more as things stand now; None: it may."""
    judgement = kit.judge(
        call.use.name,
        history,
        decision=call.decision,
        arguments=call.input,
        unknown=call.unknown,
        asked=call.terms,
    )
    if judgement.verdict is Verdict.ALLOW:
        return None
    if judgement.verdict is Verdict.ASK and judgement.terms is not None:
        return Entry.of(
            ApprovalRequested(tool_use_id=call.uid, reason=judgement.reason, terms=judgement.terms)
        )
    return _denial_of(call, judgement.reason)


def _denial_of(call: OpenCall, reason: str) -> Entry:
    """Of one that may have run before nobody says that it did not."""
    if call.unknown:
        return refusal_of(call, f"{UNKNOWN} {reason}", "unknown")
    return refusal_of(call, reason, "denied")


class Calls:
    """The open calls of one step."""

    def __init__(
        self,
        kit: Kit,
        history: History,
        append: Append,
        append_if_unchanged: AppendIfUnchanged,
        signal: Signal,
    ) -> None:
        self.kit = kit
        self.history = history
        self.append = append
        self.append_if_unchanged = append_if_unchanged
        self.signal = signal
        self._in_order = asyncio.Lock()
        self._readied = ""
        """The turn whose first writing was made ready for."""
        self._untold: list[Event] = []
        """What came of it, and of what hooks were asked, and is not stored yet."""
        self._ruled: dict[str, Ruling] = {}
        """What hooks said in this run, by the call as it would run."""

    async def recover(self) -> None:
        """Settle calls that another process had started, none of which runs again by itself but reads.

        What changed the workspace is answered as unknown; for what reached outside a person is asked.
        """
        while settled := self._settled():
            if await self.append_if_unchanged(*settled):
                return

    def _settled(self) -> list[Entry]:
        settled: list[Entry] = []
        for call in list(self.history.unanswered()):
            if call.started_effect == Effect.OUTSIDE:
                event = OutcomeUnknown(
                    tool_use_id=call.uid, effect=call.started_effect, idempotent=call.idempotent
                )
                settled.append(Entry.of(event))
            elif call.started_effect not in {None, Effect.READ}:
                settled.append(refusal_of(call, UNKNOWN, "unknown"))
        return settled

    async def stop(self) -> None:
        """Answer every open call as stopped."""
        while calls := self.history.unanswered():
            stopped = (refusal_of(call, STOPPED, "stopped") for call in calls)
            if await self.append_if_unchanged(*stopped):
                return

    async def answer(self) -> None:
        """Refuse what may not run, run what may, and leave what a person must decide.

        What was judged is stored only if nobody said anything meanwhile: else it is judged again, with
        her word. Returns early when a person interrupts; unfinished calls are then left for `stop`.
        """
        await self._answer()
        if told := self._untold:
            self._untold = []
            await self.append(*map(Entry.of, told))

    async def _answer(self) -> None:
        while not self.history.interrupt:
            await self.kit.refresh_rules()
            refused, asked, allowed = await self._judged(self.history.awaited())
            if refused or asked:
                await self._store_if_unchanged(*refused, *asked)
            elif allowed and await self._made_ready_for(allowed):
                continue  # that may have taken long
            elif not allowed or await self._run(allowed):
                return

    async def _judged(
        self, calls: Sequence[OpenCall]
    ) -> tuple[list[Entry], list[Entry], list[tuple[OpenCall, Tool]]]:
        """The refusals and questions to store, and the calls that may run."""
        refused: list[Entry] = []
        asked: list[Entry] = []
        allowed: list[tuple[OpenCall, Tool]] = []
        for call in calls:
            if call.handed_out:
                continue
            tool = self.kit.tools_in(self.history).get(call.use.name)
            if isinstance(call.use, AgentCustomToolUse):
                # Somebody outside answers it, unless it is not fit to be shown to anybody.
                if fault := await fault_of(call.use, tool, self.kit.offload):
                    refused.append(refusal_of(call, fault, "error"))
                continue
            judgement = await self.kit.judge_aside(
                call.use.name,
                self.history,
                decision=call.decision,
                arguments=call.input,
                unknown=call.unknown,
                asked=call.terms,
            )
            if judgement.verdict is Verdict.DENY and call.unknown:
                refused.append(_denial_of(call, judgement.reason))
            elif tool is not None and tool.within_only and not call.within:
                refused.append(refusal_of(call, f"There is no tool called {tool.name}.", "error"))
            elif judgement.verdict is Verdict.DENY:
                refused.append(_denial_of(call, judgement.reason))
            elif call.use.invalid_input and not call.edited:
                words = f"The arguments were not a JSON object: {call.use.invalid_input[:500]}"
                refused.append(refusal_of(call, words, "error"))
            elif fault := _not_from_within(call, tool):
                refused.append(refusal_of(call, fault, "error"))
            elif judgement.verdict is Verdict.ALLOW and tool is not None:
                ruling = await self._ruling(call, tool)
                if ruling is None:
                    await self.append()  # her stop is known from here on
                    return [], [], []
                if ruling.refusal:
                    whose = ruling.untrusted_by
                    refused.append(refusal_of(call, ruling.refusal, "denied", untrusted_by=whose))
                elif ruling.question and call.decision is None:
                    asked.append(_question_of(call, tool, ruling, self.history))
                elif tool.handed_out:
                    refused.append(await hand_out(call, tool, tool.handed_out, self.kit.offload))
                else:
                    allowed.append((call, tool))
            elif judgement.terms is not None and (call.decision or judgement.terms != call.terms):
                request = ApprovalRequested(
                    tool_use_id=call.uid, reason=judgement.reason, terms=judgement.terms
                )
                asked.append(Entry.of(request))
        return refused, asked, allowed

    async def _ruling(self, call: OpenCall, tool: Tool) -> Ruling | None:
        """What hooks say of it; what they tell of that is stored with what comes of it. None where a person
        stops the turn meanwhile."""
        hooks = self.kit.asks_at(TOOL_BEFORE, CHILD_BEFORE)
        if hooks is None:
            return PASSED
        given = json.dumps(call.input, sort_keys=True, ensure_ascii=False)
        key = f"{call.uid} {call.decision is not None} {given}"
        known = self._ruled.get(key)
        if known is not None:
            return known
        begins_child = tool.handed_out is not None and tool.carrier not in {"", PEOPLE}
        ruling = PASSED
        for point in (TOOL_BEFORE, CHILD_BEFORE) if begins_child else (TOOL_BEFORE,):
            if point in hooks.points and not ruling.refusal:
                about = self._about(point, call, tool)
                asking = asyncio.ensure_future(hooks.ask(about, self.kit.extras))
                if await first_of(asking, self.signal):
                    asking.cancel()
                    return None
                said = asking.result()
                self._untold += said.events
                ruling = ruling.with_next(said)
        self._ruled[key] = ruling
        return ruling

    def _about(
        self, point: str, call: OpenCall, tool: Tool, more: Mapping[str, Any] | None = None
    ) -> About:
        tainted_by = self.history.tainted_by
        effect = tool.effect.value
        return About(point, call.uid, tool.name, effect, call.input, more or {}, tainted_by)

    async def _heard(
        self, call: OpenCall, tool: Tool, outcome: Outcome, took: int
    ) -> tuple[Outcome, Ruling]:
        """What of it the model is shown, as far as hooks say, with the events that tell of that; and what
        they said, of which the words to add are still to be added."""
        hooks = self.kit.asks_at(TOOL_AFTER)
        if hooks is None:
            return outcome, PASSED
        text = "\n".join(block.text for block in outcome.content if isinstance(block, Text))
        more = {"result": text, "is_error": outcome.is_error, "milliseconds": took}
        ruling = await hooks.ask(self._about(TOOL_AFTER, call, tool, more), self.kit.extras)
        events = (*outcome.events, *ruling.events)
        if ruling.refusal:
            outcome = Outcome(
                as_blocks(ruling.refusal),
                is_error=True,
                stopped=outcome.stopped,
                untrusted=bool(ruling.untrusted_by),
                untrusted_by=ruling.untrusted_by,
            )
        return replace(outcome, events=events), ruling

    async def _run(self, calls: Sequence[tuple[OpenCall, Tool]]) -> bool:
        """False, with nothing run, where somebody has said something since they were judged."""
        later = [pair for pair in calls if _has_grace(pair[1])][1:]
        put_off = {call.uid for call, _tool in later}
        begun = [pair for pair in calls if pair[0].uid not in put_off]
        if not await self._tell_start(begun):
            return False
        tasks = [
            asyncio.ensure_future(
                self._perform_in_order(call, tool, later)
                if _has_grace(tool)
                else self._perform(call, tool)
            )
            for call, tool in begun
        ]
        if await first_of_all(tasks, self.signal):
            await self._wind_down(begun, tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()
        return True

    async def _perform_in_order(
        self, call: OpenCall, tool: Tool, later: Sequence[tuple[OpenCall, Tool]]
    ) -> None:
        """The call, and behind it those of `later` that may still run then."""
        await self._perform(call, tool)
        for each, _tool in later:
            try:
                await self._settle(each.uid)
            except PutDown:
                continue  # a person is asked about it, or it is left for `stop`

    async def _tell_start(self, calls: Sequence[tuple[OpenCall, Tool]]) -> bool:
        """That they are about to run is stored before any of them runs; or nothing is, see `_run`."""
        return await self._store_if_unchanged(
            *(
                Entry.of(
                    SpanToolStart(
                        tool_use_id=call.uid,
                        effect=tool.effect.value,
                        idempotent=tool.idempotent,
                    )
                )
                for call, tool in calls
            )
        )

    async def _store_if_unchanged(self, *entries: Entry) -> bool:
        """With what is to be told before them, which goes with the next where these are not stored."""
        told, self._untold = self._untold, []
        stored = await self.append_if_unchanged(*map(Entry.of, told), *entries)
        if not stored:
            self._untold = [*told, *self._untold]
        return stored

    async def _made_ready_for(self, calls: Sequence[tuple[OpenCall, Tool]]) -> bool:
        """Whether something was done, so that they are to be judged anew."""
        if not any(tool.may_write for _call, tool in calls):
            return False
        before = self._readied
        self._untold += await self.before_writing()
        return self._readied != before

    async def before_writing(self) -> Sequence[Event]:
        """Makes ready for the turn's first writing, whoever does it; what is to be told of that."""
        turn, ready = self.history.turn.uid, self.kit.before_writing
        if ready is None or turn == self._readied:
            return ()
        told = await ready(turn, self.history.last_seq)
        self._readied = turn
        return told

    async def _wind_down(
        self, calls: Sequence[tuple[OpenCall, Tool]], tasks: Sequence[asyncio.Task[None]]
    ) -> None:
        writing = [
            task
            for (_call, tool), task in zip(calls, tasks, strict=True)
            if (tool.composed or _has_grace(tool)) and not task.done()
        ]
        if writing:
            await asyncio.wait(writing, timeout=GRACE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _perform(self, call: OpenCall, tool: Tool) -> None:
        if _has_grace(tool):
            async with self._in_order:
                await self._perform_now(call, tool)
        else:
            await self._perform_now(call, tool)

    async def _perform_now(self, call: OpenCall, tool: Tool) -> None:
        began = time.perf_counter()
        context = self.kit.context(call, self.history)
        context = replace(context, stopped=self.signal.wait)
        makes_calls = tool.composed or tool.asks_people
        nested = self._nested_of(call, tool) if makes_calls else None
        if nested is not None:
            context = replace(context, call_tool=nested.call)
        try:
            outcome = await perform(tool, context, dict(call.input))
        except PutDown:
            if nested is not None and nested.failure is not None:
                raise nested.failure from None
            return  # it is begun anew when the call that it waits for is answered
        if nested is not None:
            outcome = self._as_composed(call, nested, outcome)
        if tool.untrusted or isinstance(call.use, AgentMcpToolUse):
            outcome = replace(outcome, untrusted=True)
        milliseconds = round((time.perf_counter() - began) * 1000)
        outcome, ruling = await self._heard(call, tool, outcome, milliseconds)
        if self.kit.admit is not None and not all(isinstance(b, Text) for b in outcome.content):
            outcome = replace(outcome, content=await self.kit.admit(outcome.content))
        outcome = await bounded(outcome, call.uid, tool.output_limit, self.kit.keep)
        if ruling.added and not ruling.refusal:
            outcome = _with_words(outcome, ruling)
        if call.edited:
            words = note_of_edit(call.input)
            outcome = replace(outcome, content=(*as_blocks(words), *outcome.content))
        end = SpanToolEnd(
            tool_use_id=call.uid, milliseconds=milliseconds, is_error=outcome.is_error
        )
        kind: ResultOutcome = "error" if outcome.is_error else "ok"
        answer = result_of(call.use, call.uid, outcome, "stopped" if outcome.stopped else kind)
        await self.append(
            *self._left_open(call),
            Entry.of(end),
            Entry.of(answer),
            *(Entry.of(event) for event in outcome.events),
        )

    # --- calls that a call makes ------------------------------------------------------------------

    def _nested_of(self, call: OpenCall, tool: Tool) -> Nested:
        async def begin(name: str, given: Mapping[str, Any]) -> str:
            entry = await self._asked_within(call, tool, name, given)
            await self.append(entry)
            return entry.uid

        return Nested(call.uid, self.history, begin, self._settle)

    async def _asked_within(
        self, call: OpenCall, tool: Tool, name: str, given: Mapping[str, Any]
    ) -> Entry:
        """The event of a call that this one makes, judged as one of the model's."""
        if self.history.interrupt:
            raise PutDown
        await self.kit.refresh_rules()
        judgement = await self.kit.judge_aside(name, self.history, arguments=given)
        wanted = self.kit.tools_in(self.history).get(name)
        fields: dict[str, Any] = {
            "name": name,
            "input": dict(given),
            "evaluated_permission": judgement.verdict.value,
            "reason": judgement.reason,
            "terms": judgement.terms,
            "within": call.uid,
            "within_tool": tool.name,
            "depth": _depth_of(call) + 1,
        }
        if wanted is not None and wanted.mcp_server:
            return Entry.of(
                AgentMcpToolUse(mcp_server_name=wanted.mcp_server, host=wanted.host, **fields)
            )
        return Entry.of(AgentToolUse(**fields))

    async def _settle(self, uid: str) -> None:
        """Have the call answered as `answer` does, while the one that made it goes on. Raises `PutDown`
        where somebody has to answer it, or a person stops the turn."""
        while (call := self.history.open_call(uid)) is not None:
            if self.history.interrupt or self.history.is_blocked(call):
                raise PutDown
            await self.kit.refresh_rules()
            refused, asked, allowed = await self._judged([call])
            if refused or asked:
                await self._store_if_unchanged(*refused, *asked)
                continue
            if not allowed:
                raise PutDown
            if await self._made_ready_for(allowed):
                continue
            if await self._tell_start(allowed):
                await self._perform(*allowed[0])

    def _as_composed(self, call: OpenCall, nested: Nested, outcome: Outcome) -> Outcome:
        """What others wrote in the answers that it got, or had written before it was asked for, may stand
        in its own."""
        if not outcome.is_error and not outcome.stopped:
            try:
                nested.require_whole()
            except Diverged as problem:
                outcome = Outcome(as_blocks(f"{problem.message}\n{problem.hint}"), is_error=True)
        made = self.history.nested_in(call.uid)
        sources = (untrusted_in_answer(each.answer, each.use.name) for each in made if each.answer)
        source = next(filter(None, sources), "")
        before = self.history.made_after.get(call.uid, "")
        if not (source or before):
            return outcome
        source = source or f"{before}, when this was asked for"
        return replace(outcome, untrusted=True, untrusted_by=outcome.untrusted_by or source)

    def _left_open(self, call: OpenCall) -> list[Entry]:
        """Answers to calls that it made and did not wait for, because it was late, and to what these made:
        nobody would ever read another one."""
        left: list[Entry] = []
        for each in self.history.nested_in(call.uid):
            made = self.history.open_call(each.uid)
            if made is not None:
                began = made.started_effect not in {None, Effect.READ}
                kind: ResultOutcome = "unknown" if began else "stopped"
                refusal = refusal_of(made, UNKNOWN if began else GIVEN_UP, kind)
                left += [*self._left_open(made), refusal]
        return left


def _question_of(call: OpenCall, tool: Tool, ruling: Ruling, history: History) -> Entry:
    """A person is asked about this very call; no permission given before or with the answer settles it."""
    terms = AskTerms(
        level="organisation",
        effect=tool.effect.value,
        may_be_settled=False,
        turn=history.turn.uid,
        host=tool.host,
    )
    return Entry.of(ApprovalRequested(tool_use_id=call.uid, reason=ruling.question, terms=terms))


def _depth_of(call: OpenCall) -> int:
    return 0 if isinstance(call.use, AgentCustomToolUse) else call.use.depth


def _not_from_within(call: OpenCall, tool: Tool | None) -> str:
    """Why a call cannot make this one; empty: it can."""
    if not call.within or tool is None:
        return ""
    if tool.external or (tool.handed_out and tool.carrier != PEOPLE):
        return f"{tool.name} is answered outside this server, which no call can wait for."
    if tool.composed and _depth_of(call) >= DEPTH:
        return f"Calls stand in each other {DEPTH} deep at most; {tool.name} would be one deeper."
    return ""
