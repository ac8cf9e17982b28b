"""What must hold of a conversation at every rest, and at its end, whoever did what in between.

`at_rest` compares what the log, the queue, the page and the programs' doors say waits; `at_end` reads
the log as a judge would: may this have run, had that answer its effect?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from agui.interrupts import open_interrupts
from api.commands import open_questions
from approvals.deciders import may_not_decide
from approvals.models import Approval
from conversations import delays, log
from conversations.models import Event, Run
from harness.content import text_of
from harness.events import (
    AgentToolUse,
    ApprovalRequested,
    CallHandedOut,
    InputTaken,
    MessageWithdrawn,
    OutcomeUnknown,
    RequiresAction,
    RetryRequested,
    SessionStatusIdle,
    SpanToolStart,
    ToolUse,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    WakeDue,
    answered_call,
)
from harness.history import History, OpenCall
from harness.messages import ModelRequest, ToolSpec
from harness.texts import Texts
from harness.transcript import build_messages
from providers.anthropic_request import request_body
from tests.standins.anthropic_rules import check_request
from workers.models import HandedCall, WorkItem

from .people import World
from .scenarios import STOCK, ran, tools


def rows_of(world: World) -> list[Event]:
    return list(Event.objects.filter(conversation=world.conversation).order_by("seq"))


# --- at every rest --------------------------------------------------------------------------------


def at_rest(world: World) -> Iterator[str]:
    """Nothing is under way any more in this process: is that a rest, and are all told the same?"""
    conversation = world.conversation
    conversation.refresh_from_db()
    history = History(row.entry() for row in rows_of(world))
    # What is put off goes on when its time comes, whatever was said meanwhile.
    owes = conversation.owes_run and not delays.is_put_off(conversation.pk)
    if conversation.status == "running" or owes:
        yield f"it does not come to rest: {conversation.status}, owes_run={conversation.owes_run}"
    if Run.objects.filter(conversation=conversation, state=Run.State.RUNNING).exists():
        yield "a run is left behind"
    waiting = {approval.call_uid: approval for approval in world.waiting()}
    cards = {card.call: card for card in world.cards()}
    handed = set(
        HandedCall.objects.filter(conversation=conversation).values_list("call_uid", flat=True)
    )
    opened = {call.uid: call for call in history.unanswered()} if history.turn.open else {}
    asked: set[str] = set()
    programs: set[str] = set()
    for uid, call in opened.items():
        if call.use.type == "agent.custom_tool_use":
            programs.add(uid)
        elif call.handed_out:
            if uid not in handed:
                yield "a call waits for workers, and none can hear of it"
        else:
            asked.add(uid)
            yield from _of_a_question(world, call, waiting.get(uid), cards[uid])
    if set(waiting) - asked:
        yield "an approval waits though the log does not wait for it"
    if strange := {uid for uid, card in cards.items() if card.asks and not card.questions} - asked:
        yield f"a card asks though the log does not wait for it: {strange}"
    if handed - set(opened):
        yield "workers are offered a call that is not open"
    if handed and not WorkItem.objects.filter(conversation=conversation).alive().exists():
        yield "no work item is there for the workers"
    wanted = "requires_action" if asked | programs else "waits_for_worker" if handed else ""
    if wanted and conversation.stop_reason != wanted:
        yield f"the conversation says {conversation.stop_reason}, not {wanted}"
    if not wanted and conversation.stop_reason in {"requires_action", "waits_for_worker"}:
        yield "the conversation waits for what is not open"
    questions = open_questions(conversation)[1]
    facts = {fact.uid: fact.round for fact in questions if not fact.custom}
    if facts != {uid: approval.round for uid, approval in waiting.items() if uid in asked}:
        yield f"the API's facts are {facts}"
    if {fact.uid for fact in questions if fact.custom} != programs:
        yield "the API names other calls for programs"
    if {each.tool_call_id for each in open_interrupts(conversation)} != asked | programs:
        yield "AG-UI's interrupts differ"


def _of_a_question(world: World, call: OpenCall, approval: Any, card: Any) -> Iterator[str]:
    if approval is None:
        yield f"a call waits and nobody can answer it: {call.use.name}, decided={call.decision}"
        return
    if not card.asks:
        yield "the queue asks and the page does not"
    if (card.round, card.shown) != (approval.round, approval.effective_sha256):
        yield f"the page shows round {card.round}, the queue {approval.round}, or other inputs"
    if all(may_not_decide(person, approval) for person in (world.alice, world.rita, world.otto)):
        yield "nobody may answer"
    if not approval.reason or card.reason != approval.reason:
        yield f"the page says “{card.reason}”, the queue “{approval.reason}”"


# --- at the end -----------------------------------------------------------------------------------


def at_end(world: World) -> Iterator[str]:
    rows = rows_of(world)
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        yield "the sequence has gaps"
    conversation = world.conversation
    conversation.refresh_from_db()
    begun = any(isinstance(row.value, InputTaken) for row in rows)
    if (conversation.status, conversation.stop_reason) != ("idle", "end_turn" if begun else ""):
        yield f"it ended {conversation.status}, {conversation.stop_reason}"
    if conversation.queued_count:
        yield "a message was never taken"
    uses = [row for row in rows if isinstance(row.value, ToolUse)]
    for use in uses:
        about = [row for row in rows if row.subject == use.uid]
        yield from _of_a_call(use, about, rows, world.told)
    yield from _of_the_turns(rows)
    yield from _of_the_inputs(rows)
    yield from _of_the_approvals(world, rows)
    if begun:
        yield from _of_the_transcript(world)


def _of_a_call(
    use: Event, about: Sequence[Event], rows: Sequence[Event], told: Set[tuple[str, int]]
) -> Iterator[str]:
    answers = [row for row in about if answered_call(row.value)]
    if len(answers) != 1:
        yield f"a call has {len(answers)} answers: {[row.type for row in answers]}"
    value = use.value
    begun = [row for row in about if _begins(row, about, told)]
    did = [given for uid, given in ran if uid == use.uid]
    if len(did) > len([row for row in begun if isinstance(row.value, SpanToolStart)]):
        yield "it ran without being told of before"
    unknown = sum(isinstance(row.value, OutcomeUnknown) for row in about)
    changes = [row for row in begun if row.value.effect != "read"]
    if len(changes) > 1 + unknown:
        yield f"it was begun {len(changes)} times"
    if not isinstance(value, AgentToolUse):
        return
    inputs: list[dict[str, Any]] = []
    lasting = {row.uid for row in rows if _is_lasting(row)}
    decision: UserToolConfirmation | None = None
    asked = value.evaluated_permission == "ask"
    running = ended = False
    proposed: dict[str, Any] | None = None
    for row in about:
        match row.value:
            case UserToolConfirmation() as answer:
                if running or ended:
                    yield f"“{answer.result}” was taken for a call that had begun or ended"
                decision = answer
                proposed = answer.edited_input if answer.result == "allow" else proposed
            case ApprovalRequested() as question:
                if not question.reason:
                    yield "it was asked again without a reason"
                if decision is not None and decision.result == "deny":
                    yield "it was asked again though a person had denied it"
                decision, asked = None, True
            case OutcomeUnknown():
                decision, asked, running = None, True, False
            case SpanToolStart() | CallHandedOut():
                running = row in begun
                if decision is not None and decision.result == "deny":
                    yield "it ran though a person had denied it"
                if asked and decision is None and not lasting:
                    yield "it ran though nobody had allowed it"
                if _is_stopped(rows, row.seq):
                    yield "it was begun though a person had interrupted before"
                inputs.append(value.input if proposed is None else proposed)
            case result if answered_call(result):
                ended = True
                if decision is not None:
                    yield from _of_an_answer(decision, running, result, rows, row.seq)
            case _:
                pass
    if did and did != inputs[-len(did) :]:
        yield f"it ran with {did}, not with {inputs}"


def _begins(row: Event, about: Sequence[Event], told: Set[tuple[str, int]]) -> bool:
    """What no worker had been told of when it was asked about anew was not begun."""
    if not isinstance(row.value, CallHandedOut):
        return isinstance(row.value, SpanToolStart)
    later = next((each for each in about if each.seq > row.seq), None)
    is_taken_back = later is not None and isinstance(later.value, ApprovalRequested)
    return not is_taken_back or (row.subject, row.seq) in told


def _is_lasting(row: Event) -> bool:
    value = row.value
    return isinstance(value, UserToolConfirmation) and value.scope != "once"


def _of_an_answer(
    decision: UserToolConfirmation,
    running: bool,
    result: Any,
    rows: Sequence[Event],
    seq: int,
) -> Iterator[str]:
    """The last answer to a call and the call's end: did it go as the person said?"""
    outcome = getattr(result, "outcome", "ok")
    words = text_of(result.content)
    if outcome == "stopped" and any(isinstance(row.value, UserInterrupt) for row in rows[:seq]):
        return
    if decision.result == "deny":
        if outcome not in {"denied", "unknown"}:
            yield f"it was denied and ended {outcome}: {words}"
    elif not running and not (outcome in {"denied", "unknown"} and words):
        yield f"it was allowed and ended {outcome} without having run: {words}"


def _is_stopped(rows: Sequence[Event], seq: int) -> bool:
    """Whether an interrupt of the turn under way stands before this place."""
    for row in reversed(rows[: seq - 1]):
        match row.value:
            case UserInterrupt():
                return True
            case SessionStatusIdle(stop_reason=reason) if not isinstance(reason, RequiresAction):
                return False
            case _:
                pass
    return False


def _of_the_turns(rows: Sequence[Event]) -> Iterator[str]:
    """Between two beginnings stands exactly one end."""
    ends: int | None = None
    for row in rows:
        match row.value:
            case InputTaken(steered=False) | RetryRequested():
                if ends == 0 and not isinstance(row.value, RetryRequested):
                    swallowed = any(
                        isinstance(later.value, SessionStatusIdle) and later.value.interrupted
                        for later in rows[row.seq :][:3]
                    )
                    if not swallowed:
                        yield "a turn began before the one before had ended"
                ends = 0
            case SessionStatusIdle(stop_reason=reason) if not isinstance(reason, RequiresAction):
                if ends is None:
                    yield "a turn ended that had not begun"
                elif ends:
                    yield "a turn ended twice"
                ends = (ends or 0) + 1
            case _:
                pass
    if ends == 0:
        yield "the last turn has no end"


def _of_the_inputs(rows: Sequence[Event]) -> Iterator[str]:
    taken = [
        uid for row in rows if isinstance(value := row.value, InputTaken) for uid in value.event_ids
    ]
    if len(taken) != len(set(taken)):
        yield "an input was taken twice"
    withdrawn = [v.event_id for row in rows if isinstance(v := row.value, MessageWithdrawn)]
    for row in rows:
        is_input = isinstance(row.value, UserMessage | WakeDue)
        if is_input and (row.uid in taken) == (row.uid in withdrawn):
            yield f"{row.type} was neither taken nor withdrawn, or both"


def _of_the_approvals(world: World, rows: Sequence[Event]) -> Iterator[str]:
    """Each is closed as the log says."""
    for approval in Approval.objects.filter(conversation=world.conversation):
        said = "cancelled"
        for row in rows:
            if row.subject != approval.call_uid:
                continue
            match row.value:
                case UserToolConfirmation(result="allow"):
                    said = "approved"
                case UserToolConfirmation(expired=expired):
                    said = "expired" if expired else "denied"
                case ApprovalRequested() | OutcomeUnknown():
                    said = "cancelled"
                case _:
                    pass
        if approval.state != said:
            yield f"the log says {said}, the approval {approval.state}"
        if (approval.closed_at is None) or (approval.closed_by is None) != (
            said in {"cancelled", "expired"}
        ):
            yield f"the approval was {said} at {approval.closed_at} by {approval.closed_by}"


def _of_the_transcript(world: World) -> Iterator[str]:
    dialogue = build_messages(log.entries_after(world.conversation.pk, 0), texts=Texts())
    specs = tuple(ToolSpec(t.name, t.description, t.input_schema) for t in tools().values())
    own = ToolSpec(STOCK.name, STOCK.description, STOCK.input_schema)
    request = ModelRequest("claude-sonnet-5-5", "", dialogue, (*specs, own))
    try:
        body = request_body(request, provider="anthropic", caching=False)
        check_request({**body, "stream": True})
    except Exception as problem:
        yield f"a service would refuse the transcript: {problem}"
