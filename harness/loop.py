"""Carries a conversation from what its log owes to its next rest.

Starting, going on after an approval, recovering after a crash and steering in mid-run are one
question here: what does the log owe? Every event is stored before anybody acts on it. Who claims the
conversation, and where events are stored, is the caller's part (`ports`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from harness.calls import Calls
from harness.compaction import Cut, compacted, dropped, find_cut, summary_request
from harness.content import Text
from harness.contextplan import SUMMARY_SHARE, TAIL_SHARE, reserve_of, share_out
from harness.errors import AgentError, ContextTooLong, LimitReached, ProviderError
from harness.estimates import CHARACTERS_PER_TOKEN, sizes_at_most, unopened_tokens_at_most
from harness.events import (
    WAITS_FOR_SUBAGENTS,
    WAITS_FOR_WORKER,
    AppEvent,
    BudgetReached,
    CompactionSkipped,
    ContentSetAside,
    EndTurn,
    Event,
    InputTaken,
    OutcomeCheck,
    Refusal,
    RequiresAction,
    RetriesExhausted,
    SessionError,
    SessionErrorBody,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionUpdated,
    SessionUsage,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanOutcomeEvaluationStart,
    StopDetails,
    StopReason,
)
from harness.grading import (
    TRIES,
    Shown,
    Verdict,
    criteria_of,
    evaluated,
    grading_request,
    record_of,
    verdict_of,
)
from harness.history import MAX_CONTINUATIONS, Entry, History, OpenCall, Pursued, Turn
from harness.hooks import (
    COMPACTION_BEFORE,
    HELD_BACK,
    MODEL_BEFORE,
    PASSED,
    TOOL_BEFORE,
    TURN_BEFORE,
    About,
    Ruling,
)
from harness.ids import new_event_id
from harness.kit import Kit, Signal, first_of
from harness.lostrequests import left_behind
from harness.messages import Message, ModelRequest, Usage
from harness.outcomechecks import Ran, failures, ran_event, told
from harness.policy import Verdict as Allowed
from harness.ports import Journal, LiveBlock
from harness.refused import CONTENT_REFUSED, KEY_REFUSED, suspects
from harness.reply import Replied, Reply
from harness.tools import PEOPLE
from harness.transcript import Dialogue, Window

logger = logging.getLogger(__name__)

HINT_STEPS = 3
"""While this many steps or fewer remain, the model is told to wrap up."""
SUMMARY_TOKENS = 4_096
"""Output tokens of a compaction summary, unless the agent's own limit is lower."""
SQUEEZES = (2, 4, 8)
"""By how much what results may take is divided, one after another, until a request fits."""
REREAD = "read_events"
"""The tool that reads again what a prompt left out, where the agent has it."""
GRADING_TOKENS = 8_192
"""Output tokens of one verdict, unless the agent's own limit is lower."""

MAX_BACKOFF = 60.0
MAX_RETRY_AFTER = 600.0
"""A service that wants longer is tried earlier and may say so again."""

_SPANS = (SpanModelRequestStart, SpanModelRequestEnd)
_WHOLE = ("end_turn", "stop_sequence", "max_tokens")
"""Ends of a request that leave a summary behind: one that ran into its limit is better than none."""

PUBLIC_ERRORS = {
    "rate_limited": "model_rate_limited_error",
    "overloaded": "model_overloaded_error",
    "billing_refused": "billing_error",
}
"""Our codes in the public vocabulary; all others are its `model_request_failed_error`."""


SET_ASIDE = "If what was sent is at fault, set it aside: it is kept, and the conversation goes on without it."

_FOR_WORKERS = StopDetails(
    code=WAITS_FOR_WORKER, message="A worker of the environment carries this out."
)
"""Of a rest that no person can end but by stopping the turn."""
_FOR_SUBAGENTS = StopDetails(code=WAITS_FOR_SUBAGENTS, message="Subagents work at this.")
"""The same, where nothing but conversations below this one are waited for."""


def _waits_for(calls: Sequence[OpenCall]) -> StopDetails | None:
    """What a rest over these calls says where no person is asked about any of them."""
    if not all(call.handed_out and call.carrier != PEOPLE for call in calls):
        return None
    return _FOR_SUBAGENTS if all(call.carrier for call in calls) else _FOR_WORKERS


class Loop:
    """One run over one conversation. `await run()` once."""

    def __init__(
        self,
        history: History,
        kit: Kit,
        journal: Journal,
        signal: Signal | None = None,
        *,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self.history = history
        self.kit = kit
        self.journal = journal
        self.signal = signal or Signal()
        self._may_go_on = may_go_on
        self._calls = Calls(kit, history, self._append, self._append_if_unchanged, self.signal)
        self._began_turn = kit.clock()
        self._compacted_for_error = False
        self._stands_back = True
        """Where the service shortens by itself, we do not, as long as prompts fit."""
        self._outdated = False
        """Somebody changed the agent of this conversation, or what it may tell, since its kit was made."""
        self._dialogue = self._new_dialogue()
        self._tried = False
        """Whether this run has done anything: one that begins with a request put off tries it."""

    async def run(self, partials: Sequence[tuple[LiveBlock, str]] = ()) -> None:
        """Work until the log owes nothing, or a person is needed, or a limit is reached, or, asked
        before each step, `may_go_on` says no, or the next turn is to be another agent's than the one it
        was begun with: then the log still owes what it owed.

        The history is the log as it was just read; what it gained since comes with the first append.
        `partials` is text that a lost process had received and not stored. Raises `LeaseLost` when
        another worker took over, and whatever the journal raises; provider and tool failures become
        events.
        """
        if self.history.interrupt:
            self.signal.interrupt()
        await self._recover(partials)
        while self.history.has_work and not self._waits_for_a_retry():
            if not self._may_go_on() or self._is_for_another_kit():
                return
            self._tried = True
            await self._step()

    def _waits_for_a_retry(self) -> bool:
        return self.history.put_off and self._tried and not self.history.interrupt

    def _is_for_another_kit(self) -> bool:
        """What is under way ends as it began; the next message is for the agent as it is then."""
        history = self.history
        return self._outdated and not (history.turn.open or history.running or history.interrupt)

    # --- duties -----------------------------------------------------------------------------------

    async def _step(self) -> None:
        """Do the most urgent thing the log owes."""
        history = self.history
        if history.interrupt:
            await self._stop()
            return
        # A signal without an interrupt in the log belongs to a turn that has ended by itself.
        self.signal.clear()
        if history.compaction and (history.waits_for_people or not history.unanswered()):
            await self._compact_as_asked(history.compaction.focus)
        elif history.unanswered():
            await self._answer_calls()
        elif history.turn.open and not self._outdated and (steered := history.steered()):
            uids = tuple(entry.uid for entry in steered)
            await self._append_if_unchanged(Entry.of(InputTaken(event_ids=uids, steered=True)))
        elif history.turn.reply_owed and history.running:
            await self._reply()
        elif history.turn.reply_owed:
            await self._begin_with_request(Entry.of(SessionStatusRunning()))
        elif history.evaluation_owed:
            await self._evaluate()
        elif history.turn.open or history.running:
            await self._rest(EndTurn())
        else:
            await self._take_input()

    async def _take_input(self) -> None:
        """One queued message starts one turn; each stays a message of its own."""
        message = self.history.queued()[0]
        self._began_turn = self.kit.clock()
        self._compacted_for_error = False
        opening = [Entry.of(InputTaken(event_ids=(message.uid,)))]
        if not self.history.running:
            opening.insert(0, Entry.of(SessionStatusRunning()))
        await self._begin_with_request(*opening)

    async def _answer_calls(self) -> None:
        await self._be_running()
        await self._calls.answer()
        waiting = self.history.awaited()
        if waiting and not self.history.interrupt and not any(map(self._is_due, waiting)):
            reason = RequiresAction(event_ids=tuple(call.uid for call in waiting))
            await self.kit.refresh_rules()
            # Not over a word of hers that came meanwhile.
            await self._append_if_unchanged(*self._ending(reason, details=_waits_for(waiting)))

    def _is_due(self, call: OpenCall) -> bool:
        """A person has answered, or the calls that it made are, and nobody has acted on it yet."""
        decided = call.decision is not None and not call.handed_out
        return decided or self.history.may_go_on(call)

    async def _stop(self) -> None:
        """A person interrupted: what is open is answered as stopped and the turn ends, exactly once."""
        await self._calls.stop()
        if self.history.turn.open and self.history.outcome is not None:
            await self._end_evaluation(Verdict("interrupted", (), ""))
        interrupt = self.history.interrupt
        waits = self.history.held_by_person
        if not self.history.turn.open and interrupt is not None and not waits:
            # A message that was interrupted before its turn began is not answered any more.
            before = [entry.uid for entry in self.history.queued() if entry.seq < interrupt.seq]
            taken = Entry.of(InputTaken(event_ids=tuple(before)))
            if before and not await self._append_if_unchanged(taken):
                return
        await self._rest(EndTurn(), interrupted=True)

    async def _begin_with_request(self, *opening: Entry) -> None:
        """Store `opening`, after which a reply is owed, and the start of its request in one commit.

        Where that cannot be, because somebody else has said something, or a limit stands in the way, or
        more is to be done first, `opening` is stored by itself at most, and the next step sees to it.
        """
        ahead = self.history.followed_by(opening, at=self.kit.clock())
        asked = self.kit.asks_at(TURN_BEFORE, MODEL_BEFORE)
        if self.kit.tracer or asked or self._limit_reached(ahead):
            await self._append_if_unchanged(*opening)
            return
        request = self._request(ahead)
        if self._is_full(ahead, request):
            self._dialogue = self._new_dialogue()
            await self._append_if_unchanged(*opening)
            return
        reply = Reply(self.kit, self.history, self._append, self.signal)
        start, continues = reply.start(request, ahead), _continued(ahead)
        del ahead  # all that is known of the log once more, for as long as the reply arrives
        try:
            news = await self.journal.append_if_unchanged(*opening, start)
        except LimitReached:
            self._dialogue = self._new_dialogue()
            await self._append_if_unchanged(*opening)
            return
        self._take_in(news)
        if self.history.open_request is None or self.history.open_request.uid != start.uid:
            self._dialogue = self._new_dialogue()
            return
        await self._after(await reply.receive(request, continues=continues))

    async def _reply(self) -> None:
        """One model request, unless a limit says otherwise."""
        if limit := self._limit_reached(self.history):
            reason, details = limit
            await self._rest(reason, details=details)
            return
        if not await self._is_let():
            return
        request = self._request(self.history)
        if self._is_full(self.history, request):
            if not await self._compact():
                return
            request = self._squeezed()
        reply = Reply(self.kit, self.history, self._append, self.signal)
        continues = _continued(self.history)
        await self._after(await reply.run(request, continues=continues))

    def _limit_reached(self, history: History) -> tuple[StopReason, StopDetails] | None:
        """How the turn is to rest instead of asking the model."""
        limits, turn = self.kit.config.limits, history.turn
        if turn.steps > limits.steps:
            return EndTurn(), self._step_limit()
        if turn.tokens >= self._budget_of(turn):
            return BudgetReached(), self._token_budget(turn)
        if self._worked_seconds(turn) > limits.wall_clock_seconds:
            return BudgetReached(), self._wall_clock()
        return None

    def _is_full(self, history: History, request: ModelRequest) -> bool:
        """By what the service counted the last time, or by what has come since then."""
        limits = self.kit.config.limits
        counted, plan = history.context_tokens, request.plan
        most = limits.context_window * limits.compact_at
        if plan is not None and request.edits is not None and request.edits.compact_at:
            most = limits.context_window - plan.reserve  # the service's word comes first
        return max(counted, plan.total if plan else 0) > most

    async def _after(self, replied: Replied) -> None:
        """Rest where the way the reply ended says so; otherwise the log tells what comes next."""
        if replied.error is None:
            self._compacted_for_error = False
        if isinstance(replied.error, ContextTooLong) and not self._compacted_for_error:
            self._compacted_for_error = True
            before = self.history.turn.compactions
            if not await self._compact() or self.history.turn.compactions > before:
                return
        if isinstance(replied.error, LimitReached):
            await self._rest(BudgetReached(), details=_details(replied.error))
        elif replied.error is not None:
            await self._fail(replied)
        elif replied.end == "refusal":
            details = StopDetails(
                code="refusal",
                message=replied.detail or "The model declined to answer this.",
                hint="Say it differently, or ask something else.",
            )
            await self._rest(Refusal(), details=details)
        elif replied.end == "context_full" or self.history.turn.truncations > MAX_CONTINUATIONS:
            details = StopDetails(
                code="output_limit",
                message="The answer is longer than the output limit, even with continuations.",
                hint="Ask it to go on, or raise the agent's output limit.",
            )
            await self._rest(EndTurn(), details=details)

    # --- hooks ------------------------------------------------------------------------------------

    async def _is_let(self) -> bool:
        """Whether hooks let the next request be made; what they add is stored before it. Where not, the turn
        is over by then, or somebody has said something meanwhile."""
        hooks = self.kit.asks_at(TURN_BEFORE, MODEL_BEFORE)
        for about in hooks.before_request(self.history) if hooks else ():
            ruling = await self._ask(about)
            told = [Entry.of(event) for event in ruling.events]
            if ruling.refusal:
                told += (Entry.of(ContentSetAside(event_id=uid)) for uid in ruling.sets_aside)
                told += self._given_up(ruling.sets_aside)
                details = StopDetails(code=HELD_BACK, message=ruling.refusal)
                told += self._ending(EndTurn(), details=details)
            if self.signal.is_set:
                await self._append()
                return False
            if (told and not await self._append_if_unchanged(*told)) or ruling.refusal:
                return False
        return True

    def _given_up(self, refused: Sequence[str]) -> list[Entry]:
        """The end of an outcome that is defined in refused words: no grader is shown them."""
        pursued = self.history.outcome
        if pursued is None or pursued.uid not in refused:
            return []
        return evaluated(pursued, Verdict("interrupted", (), ""), Usage())

    async def _may_compact(self, cut: Cut, focus: str = "", *, asked: bool = False) -> str:
        """Why hooks let no summary be made now; empty: they do."""
        if self.kit.asks_at(COMPACTION_BEFORE) is None:
            return ""
        turn, tainted_by = self.history.turn.uid, self.history.tainted_by
        more = {"messages": len(cut.messages), "focus": focus, "asked_for": asked}
        ruling = await self._ask(About(COMPACTION_BEFORE, turn, more=more, tainted_by=tainted_by))
        await self._append(*map(Entry.of, ruling.events))
        return ruling.refusal

    async def _ask(self, about: About) -> Ruling:
        """A person's stop is not kept waiting: nothing has come of it then."""
        hooks = self.kit.hooks
        asking = asyncio.ensure_future(hooks.ask(about, self.kit.extras)) if hooks else None
        if asking is None or await first_of(asking, self.signal):
            if asking is not None:
                asking.cancel()
            return PASSED
        return asking.result()

    # --- requests ---------------------------------------------------------------------------------

    def _model_of(self, turn: Turn) -> str:
        return turn.model or self.kit.model

    def _budget_of(self, turn: Turn) -> int:
        return turn.token_budget or self.kit.config.limits.token_budget

    def _new_dialogue(self) -> Dialogue:
        return Dialogue(self.kit.texts, self._window_of(self.history))

    def _window(self, share: int = 1) -> Window:
        """As our own summaries are made for: nothing in it is a service's alone."""
        reread = REREAD if self.kit.offers(REREAD, self.history) else ""
        return Window(self.kit.config.limits.context_window // share, reread)

    def _window_of(self, history: History, share: int = 1) -> Window:
        """For the next request."""
        edits = self.kit.shortening_in(history).edits
        if edits is None:
            return self._window(share)
        return replace(
            self._window(share),
            shortens=not (self._stands_back and edits.clear_at),
            service=(self.kit.provider.name, self._model_of(history.turn))
            if edits.compact_at
            else None,
        )

    def _squeezed(self) -> ModelRequest:
        """The next request where the dialogue is as short as summaries make it: if it still does not fit,
        results and what is kept beside a summary get less of the window."""
        request = self._request(self.history)
        for share in SQUEEZES:
            if request.plan is None or request.plan.free >= 0:
                break
            self._stands_back = False
            self._dialogue = Dialogue(self.kit.texts, self._window_of(self.history, share))
            request = self._request(self.history)
        return request

    def _request(self, history: History) -> ModelRequest:
        kit = self.kit
        limits = kit.config.limits
        left = limits.steps - history.turn.steps
        shortening = kit.shortening_in(history)
        window = self._window_of(history)
        if not self._dialogue.is_for(window):
            self._dialogue = Dialogue(kit.texts, window)
        messages = self._dialogue.messages(history.entries)
        if left <= 0:
            messages = with_note(messages, kit.texts.final_summary)
        elif left <= HINT_STEPS and limits.steps > HINT_STEPS:
            messages = with_note(messages, kit.texts.wrap_up_hint.format(steps_left=left))
        remote = kit.remote_in(history)
        if withheld := kit.withheld_in(history, remote):
            messages = with_note(messages, withheld)
        reserve = reserve_of(limits.context_window, limits.output_tokens)
        request = ModelRequest(
            model=self._model_of(history.turn),
            system=kit.system_prompt(history),
            messages=messages,
            tools=kit.offered(history),
            tool_choice="none" if left <= 0 else "auto",
            remote=remote,
            max_output_tokens=reserve,
            settings=kit.config.settings(),
            edits=shortening.edits,
        )
        sizes = sizes_at_most(request)
        plan = share_out(
            window=limits.context_window,
            reserve=reserve,
            head=kit.head,
            at_most=sizes,
            rate=history.rate_of(sum(sizes.values())),
            cut=kit.cut,
            cleared=history.cleared if shortening.edits and self._stands_back else 0,
            service=shortening.words,
        )
        at_most = sum(sizes.values()) + unopened_tokens_at_most(request)
        return replace(request, plan=plan, prompt_at_most=at_most)

    async def _compact(self) -> bool:
        """Put a summary in the place of the older part, where there is anything to cut.

        False when the turn does not go on now: the summariser was put off, or a limit was reached.
        When it fails for good, the older part is dropped with a note.
        """
        texts, window = self.kit.texts, self._window()
        cut = find_cut(self.history.entries, texts, window=window, fits=self._fits)
        if cut is None or await self._may_compact(cut):
            return True
        if self.history.interrupt or self.signal.is_set:
            return False
        replied, told = await self._summarise(cut)
        if self.history.interrupt or replied.end == "interrupted":
            return False
        if isinstance(replied.error, LimitReached):
            await self._rest(BudgetReached(), details=_details(replied.error))
            return False
        if replied.error is not None and self._may_try_again(replied):
            await self._put_off(replied.error)
            return False
        if not told:
            reread = texts.reread.format(tool=window.reread) if window.reread else ""
            note = dropped(cut, texts, tokens=self.history.context_tokens, reread=reread)
            await self._append(Entry.of(note))
        return True

    async def _compact_as_asked(self, focus: str) -> None:
        """Once, and not at the price of anything: where it cannot be had, all stays as it is."""
        history = self.history
        # Beside a turn that rests for somebody, or has failed, it changes nothing about that.
        if not (history.turn.open or history.waits_for_people or history.stopped_short):
            await self._be_running()
        cut = find_cut(history.entries, self.kit.texts, window=self._window(), fits=self._fits)
        if cut is None:
            await self._append(Entry.of(CompactionSkipped(reason="too_short")))
        elif refusal := await self._may_compact(cut, focus, asked=True):
            await self._append(Entry.of(CompactionSkipped(reason="failed", detail=refusal)))
        else:
            replied, told = await self._summarise(cut, focus)
            if not told:
                stopped = replied.end == "interrupted"
                why = replied.error.message if replied.error else ""
                skipped = CompactionSkipped(reason="stopped" if stopped else "failed", detail=why)
                await self._append(Entry.of(skipped))
        if history.running and not history.turn.open:
            await self._rest(EndTurn())

    async def _summarise(self, cut: Cut, focus: str = "") -> tuple[Replied, bool]:
        """How the request for a summary ended, and whether one stands in the log because of it."""
        window = self.kit.config.limits.context_window
        role = self.kit.config.for_role("compaction")
        own = self._model_of(self.history.turn)
        model = role.model if role.model and role.model != self.kit.config.model else own
        request = summary_request(
            cut,
            texts=self.kit.texts,
            model=model,
            output_tokens=min(
                SUMMARY_TOKENS, role.limits.output_tokens, int(window * SUMMARY_SHARE)
            ),
            room_tokens=role.limits.context_window // 2,
            focus=focus,
        )
        return await self._told(cut, replace(request, settings=role.settings()), focus)

    def _fits(self, messages: Sequence[Message]) -> bool:
        """Whether a dialogue leaves as much of the window as a summary is to make."""
        sizes = sizes_at_most(ModelRequest("", "", tuple(messages)))
        limits = self.kit.config.limits
        return sum(sizes.values()) * self.history.rate <= limits.context_window * TAIL_SHARE

    async def _evaluate(self) -> None:
        """Have the work on an outcome judged. What the grader cannot be asked now it is asked later; what it
        cannot be asked at all ends the outcome, and the turn with it."""
        pursued = self.history.outcome
        if pursued is None:
            return
        if limit := self._limit_reached(self.history):
            reason, details = limit
            await self._rest(reason, details=details)
            return
        await self._be_running()
        if not pursued.evaluating:
            start = SpanOutcomeEvaluationStart(
                outcome_id=pursued.defined.outcome_id, iteration=pursued.evaluations
            )
            if not await self._append_if_unchanged(Entry.of(start)):
                return
        if not await self._run_checks():
            return
        pursued = self.history.outcome or pursued
        failed = failures(pursued.checked)
        shown = await self._evidence()
        request = self._grading_request(pursued, shown.text)
        checked = (each.untrusted_by for each in pursued.checked)
        foreign = next(filter(None, (shown.untrusted_by, *checked)), "")
        before = self.history.usage
        last = pursued.evaluations + 1 >= pursued.defined.max_iterations
        criteria = criteria_of(pursued.defined.rubric)
        judged = False

        def tell(end: SpanModelRequestEnd, answer: str) -> Sequence[Entry]:
            nonlocal judged
            verdict: Verdict | None = None
            if end.end in _WHOLE:
                verdict = verdict_of(answer, criteria, last=last, failed=failed)
            judged = verdict is not None
            if verdict is None or self.history.outcome is None:
                return ()
            used = self.history.usage - before + Usage(**end.model_usage.model_dump())
            return evaluated(self.history.outcome, verdict, used, untrusted_by=foreign)

        for _ in range(TRIES):
            replied = await self._ask_aside(request, tell)
            if judged or self.history.interrupt or replied.end == "interrupted":
                return
            if isinstance(replied.error, LimitReached):
                await self._rest(BudgetReached(), details=_details(replied.error))
                return
            if replied.error is not None and self._may_try_again(replied):
                await self._put_off(replied.error)
                return
            if replied.error is not None:
                break
        problem = replied.error
        said = (
            " ".join(part for part in (problem.message, problem.hint) if part)
            if problem is not None
            else "The grader gave no verdict that could be read."
        )
        await self._end_evaluation(Verdict("failed", (), said), self.history.usage - before)

    async def _run_checks(self) -> bool:
        """Run those that have no result in this evaluation. False: a person has stopped the work."""
        while (pursued := self.history.outcome) is not None and not self.history.interrupt:
            if len(pursued.checked) >= len(pursued.defined.checks):
                return True
            check = pursued.defined.checks[len(pursued.checked)]
            if news := await self._calls.before_writing():
                await self._append(*map(Entry.of, news))
            running = asyncio.ensure_future(self._run_check(check, pursued.evaluating))
            if await first_of(running, self.signal):
                running.cancel()
                await asyncio.wait({running})
                await self._append()  # takes in whose signal it was
                return False
            outcome, start = pursued.defined.outcome_id, pursued.evaluating
            event = ran_event(check, running.result(), outcome=outcome, start=start)
            await self._append(Entry.of(event))
        return False

    async def _run_check(self, check: OutcomeCheck, start: str) -> Ran:
        """As rules and hooks allow it by now; what asks is not run."""
        kit, runner = self.kit, self.kit.checks
        if runner is None:
            return Ran(problem="nothing runs commands here")
        await kit.refresh_rules()
        given = {"command": check.run}
        judgement = await kit.judge_aside(runner.tool, self.history, arguments=given)
        if judgement.verdict is not Allowed.ALLOW:
            why = judgement.reason or "a rule asks before such a command"
            return Ran(problem=f"not run, for nobody is asked about a check: {why}")
        tool = kit.tools_in(self.history)[runner.tool]
        if kit.asks_at(TOOL_BEFORE):
            tainted_by = self.history.tainted_by
            about = About(
                TOOL_BEFORE, start, tool.name, tool.effect.value, given, tainted_by=tainted_by
            )
            ruling = await self._ask(about)
            await self._append(*map(Entry.of, ruling.events))
            if why := ruling.refusal or ruling.question:
                return Ran(problem=f"not run: {why}", untrusted_by=ruling.untrusted_by)
        return await runner.run(check.run, float(check.seconds), self.history.tainted_by)

    def _evidence_room(self) -> int:
        limits = self.kit.config.for_role("grading").limits
        return limits.context_window * CHARACTERS_PER_TOKEN // 4

    async def _evidence(self) -> Shown:
        evidence = self.kit.evidence
        return await evidence(self._evidence_room()) if evidence is not None else Shown()

    def _grading_request(self, pursued: Pursued, files: str) -> ModelRequest:
        kit, role = self.kit, self.kit.config.for_role("grading")
        room = self._evidence_room()
        request = grading_request(
            description=pursued.defined.description,
            criteria=criteria_of(pursued.defined.rubric),
            record=record_of(self.history.entries[pursued.since :], room),
            files=files,
            checks=told(pursued.checked),
            marker=new_event_id(),
            texts=kit.texts,
            model=role.model if role.model and role.model != kit.config.model else kit.model,
            output_tokens=min(GRADING_TOKENS, role.limits.output_tokens),
        )
        return replace(request, settings=role.settings())

    async def _end_evaluation(self, verdict: Verdict, used: Usage | None = None) -> None:
        if self.history.outcome is not None:
            await self._append(*evaluated(self.history.outcome, verdict, used or Usage()))

    async def _told(self, cut: Cut, request: ModelRequest, focus: str) -> tuple[Replied, bool]:
        told = False

        def tell(end: SpanModelRequestEnd, said: str) -> Sequence[Entry]:
            nonlocal told
            told = end.end in _WHOLE and bool(said)
            if not told:
                return ()
            event = compacted(
                cut,
                said,
                focus=focus,
                tokens=self.history.context_tokens,
                request=end.model_request_start_id,
                usage=end.model_usage,
            )
            return (Entry.of(event),)

        return await self._ask_aside(request, tell), told

    async def _ask_aside(
        self, request: ModelRequest, tell: Callable[[SpanModelRequestEnd, str], Sequence[Entry]]
    ) -> Replied:
        """How a request ended that is no part of the dialogue.

        What `tell` makes of its end and its words is stored in one commit with the end: what was paid for
        is not asked for again. Nothing else of the request is.
        """
        collected: list[str] = []

        async def append(*entries: Entry) -> None:
            kept = [each for each in entries if isinstance(each.event, _SPANS)]
            end = kept[-1].event if kept else None
            if isinstance(end, SpanModelRequestEnd):
                kept += tell(end, "".join(collected).strip())
            if kept:
                await self._append(*kept)

        kit = replace(self.kit, live=_Collecting(collected))
        return await Reply(kit, self.history, append, self.signal).run(request)

    # --- rests ------------------------------------------------------------------------------------

    async def _rest(
        self,
        reason: StopReason,
        *,
        details: StopDetails | None = None,
        interrupted: bool = False,
        first: Sequence[Event] = (),
    ) -> None:
        """End the turn with its one terminal event."""
        if self.history.turn.steps > 1 and not interrupted:
            await self.kit.refresh_rules()
        ending = self._ending(reason, details=details, interrupted=interrupted)
        await self._append(*(Entry.of(event) for event in first), *ending)

    def _ending(
        self,
        reason: StopReason,
        *,
        details: StopDetails | None = None,
        interrupted: bool = False,
    ) -> list[Entry]:
        idle = SessionStatusIdle(stop_reason=reason, stop_details=details, interrupted=interrupted)
        return [Entry.of(self._usage()), Entry.of(idle)]

    async def _fail(self, replied: Replied) -> None:
        """Put the request off when that may help and has not been tried too often; else end the turn."""
        problem = replied.error
        if problem is None:
            return
        if self._may_try_again(replied):
            await self._put_off(problem)
            return
        body = self._error_body(problem, "exhausted")
        if isinstance(problem, KEY_REFUSED) and self.kit.who_can_mend is not None:
            who = await self.kit.who_can_mend()
            body = body.model_copy(update={"hint": " ".join(filter(None, (body.hint, who)))})
        if isinstance(problem, CONTENT_REFUSED) and (named := suspects(self.history.entries)):
            hint = " ".join(part for part in (problem.hint, SET_ASIDE) if part)
            body = body.model_copy(update={"hint": hint, "event_ids": named})
        details = StopDetails(code=body.code, message=body.message, hint=body.hint)
        await self._rest(RetriesExhausted(), details=details, first=[SessionError(error=body)])

    def _may_try_again(self, replied: Replied) -> bool:
        """A reply that had begun is never asked for again by itself."""
        passing = isinstance(replied.error, ProviderError) and replied.error.retryable
        left = self.history.turn.failures < self.kit.config.limits.retries
        return passing and left and not replied.begun

    async def _put_off(self, problem: AgentError) -> None:
        wanted = problem.retry_after if isinstance(problem, ProviderError) else None
        delay = retry_delay(self.history.turn.failures, wanted, self.kit.random())
        await self._append(
            Entry.of(SessionError(error=self._error_body(problem, "retrying"))),
            Entry.of(SessionStatusRescheduled(delay_seconds=delay)),
        )

    def _error_body(
        self, problem: AgentError, retry_status: Literal["retrying", "exhausted"]
    ) -> SessionErrorBody:
        return SessionErrorBody(
            type=PUBLIC_ERRORS.get(problem.code, "model_request_failed_error"),
            code=problem.code,
            message=problem.message,
            hint=problem.hint,
            retry_status=retry_status,
            attempts=self.history.turn.failures + 1,
        )

    def _usage(self) -> SessionUsage:
        used = self.history.usage
        return SessionUsage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_creation_input_tokens=used.cache_creation_input_tokens,
            cache_read_input_tokens=used.cache_read_input_tokens,
        )

    def _step_limit(self) -> StopDetails:
        return StopDetails(
            code="step_limit",
            message=f"The limit of {self.kit.config.limits.steps} model steps for one message is reached.",
            hint="Send another message to go on, or have staff raise the agent's step limit.",
        )

    def _token_budget(self, turn: Turn) -> StopDetails:
        used, budget = turn.tokens, self._budget_of(turn)
        return StopDetails(
            code="token_budget",
            message=f"This message has used {used:,} of its {budget:,} tokens.",
            hint="Go on with “Try again”, which starts a new budget, or have staff raise the agent's.",
        )

    def _worked_seconds(self, turn: Turn) -> float:
        """How long the turn has been worked on, over all its runs, without the wait for people."""
        began = turn.began_at or self._began_turn
        return self.kit.clock() - began - turn.waited + turn.seconds_below

    def _wall_clock(self) -> StopDetails:
        seconds = self.kit.config.limits.wall_clock_seconds
        return StopDetails(
            code="wall_clock",
            message=f"This message has been worked on for longer than {seconds:,} seconds.",
            hint="Go on with “Try again”, or have staff raise the agent's time limit.",
        )

    # --- the log ----------------------------------------------------------------------------------

    async def _be_running(self) -> None:
        if not self.history.running:
            await self._append(Entry.of(SessionStatusRunning()))

    async def _append(self, *entries: Entry) -> None:
        """Store entries and take in everything the log gained, ours and others'."""
        self._take_in(await self.journal.append(*entries))

    async def _append_if_unchanged(self, *entries: Entry) -> bool:
        """Whether they were stored: not over what somebody else has said, which is taken in instead."""
        news = await self.journal.append_if_unchanged(*entries)
        self._take_in(news)
        return bool(news) and news[-1].uid == entries[-1].uid

    def _take_in(self, news: Sequence[Entry]) -> None:
        for entry in news:
            self.history.add(entry)
            if _outdates(entry.event):
                self._outdated = True
        if self.history.interrupt and not self.signal.is_set:
            self.signal.interrupt()

    async def _recover(self, partials: Sequence[tuple[LiveBlock, str]]) -> None:
        """Bring in order what a lost process left: text half said, a request and calls half done."""
        for entry in left_behind(self.history, partials):
            await self._append(entry)
        await self._calls.recover()


def retry_delay(failures: int, retry_after: float | None, random: float) -> float:
    """Seconds before the next try: 1, 2, 4 … up to a minute, plus up to half of that again so that
    many do not come back at once; never less than the service asked for, up to ten minutes.

    `random` is between 0 and 1.
    """
    backoff = min(2.0**failures, MAX_BACKOFF)
    jittered = backoff * (1 + random / 2)
    return round(max(jittered, min(retry_after or 0.0, MAX_RETRY_AFTER)), 3)


def _continued(history: History) -> str | None:
    """The text block that the next reply goes on with."""
    return history.turn.last_text if history.turn.truncations else None


def _details(problem: AgentError) -> StopDetails:
    return StopDetails(code=problem.code, message=problem.message, hint=problem.hint)


def _outdates(event: Event) -> bool:
    if isinstance(event, SessionUpdated):
        return bool(event.overrides)
    return isinstance(event, AppEvent) and event.outdates()


def with_note(messages: tuple[Message, ...], note: str) -> tuple[Message, ...]:
    """The same dialogue with one more text at its end. It is not stored anywhere, and because it is
    last, the cached beginning of the prompt stays valid."""
    if not messages:
        return (Message("user", (Text(text=note),)),)
    last = messages[-1]
    return (*messages[:-1], Message(last.role, (*last.parts, Text(text=note))))


class _Collecting:
    """A `Live` that keeps the text instead of showing it."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    def begin(self, block: LiveBlock) -> None:
        pass

    def delta(self, block: LiveBlock, text: str) -> None:
        if block.kind == "text":
            self._pieces.append(text)

    def end(self, block: LiveBlock) -> None:
        pass

    async def stride(self) -> None:
        pass
