"""AG-UI's interrupts: the calls a conversation waits with, and the answers that a resume brings.

The protocol wants one resume that answers all that is open and refuses plain input meanwhile; our
log takes single answers through any door. What holds is the log: an interrupt that was answered
elsewhere is no longer open here. What a conversation waits for that this one started is asked here as
well, under its own id as `subagentRunId`. Deciding itself is the actions'.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, TypeVar

from ag_ui.core import Interrupt
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from approvals.models import Approval
from conversations.actions.answers import REFUSED, SKIPPED
from conversations.models import Conversation, Event
from conversations.opencalls import open_calls
from harness.content import as_blocks
from harness.errors import Conflict, Invalid, NotFound
from harness.events import (
    AgentCustomToolUse,
    AgentMcpToolUse,
    AgentToolUse,
    RequiresAction,
    SessionStatusIdle,
    ToolUse,
    UserCustomToolResult,
    UserToolConfirmation,
)
from harness.faults import place
from programs.actions.sending import Decided, Input
from reading.digits import number_of
from reading.wholetext import json_of
from tools_app.questions import TOOL as QUESTIONS
from tools_app.questions import Answer, answer_text, checked, questions_of
from tools_app.touches import as_data
from v1.door import parse
from v1.threads import threads_of
from workers.handouts import handed_calls

from .incoming import ResumeAnswer
from .projection import Subagent

Shape = TypeVar("Shape", bound=BaseModel)

ROUND = "."
"""Between a call and how often it was asked for, so that an old answer is none to a new question."""


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    approved: bool = Field(strict=True)
    reason: str = ""
    edited_args: dict[str, Any] | None = None
    """What the call shall run with in place of its arguments, all of it."""


class _Answers(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    answers: tuple[Answer, ...]


def open_interrupts(conversation: Conversation) -> list[Interrupt]:
    """What the conversation, at rest, and those it started wait for; none while it works."""
    conversation.refresh_from_db(fields=["status", "stop_reason"])
    if conversation.status != Conversation.Status.IDLE:
        return []
    return [
        interrupt
        for each in threads_of(conversation).order_by("pk")
        if each.waits_for_person
        for interrupt in described(each, undecided(each), below=each.pk != conversation.pk)
    ]


def undecided(conversation: Conversation) -> list[str]:
    """The calls its last rest waits with, without those that somebody has answered since."""
    rests = Event.objects.filter(conversation=conversation, type="session.status_idle")
    rest = rests.order_by("-seq").first()
    value = rest.value if rest is not None else None
    if not isinstance(value, SessionStatusIdle) or not isinstance(
        value.stop_reason, RequiresAction
    ):
        return []
    calls = open_calls(conversation, value.stop_reason.event_ids)
    return [uid for uid, call in calls.items() if call.decision is None]


def described(
    conversation: Conversation, call_uids: Iterable[str], *, below: bool = False
) -> list[Interrupt]:
    """The calls as AG-UI asks for them, in the order they were made; other ids are left out, and calls
    that wait for no person. `below`: of a conversation that the run's own one started."""
    handed = handed_calls(conversation)
    wanted = [uid for uid in call_uids if uid not in handed]
    approvals = {
        row.call_uid: row
        for row in Approval.objects.filter(conversation=conversation, call_uid__in=wanted)
    }
    rows = Event.objects.filter(conversation=conversation, uid__in=wanted).order_by("seq")
    found = [_interrupt(row, approvals.get(row.uid)) for row in rows]
    thread = conversation.uid if below else None
    return [
        interrupt.model_copy(update={"subagent_run_id": thread})
        for interrupt in found
        if interrupt is not None
    ]


def subagents_of(
    conversation: Conversation, interrupts: Sequence[Interrupt], known: Container[str]
) -> list[Subagent]:
    """Who asks from below, with the calls that are asked for: a client has seen neither. Interrupts that
    are `known` to it have been shown before."""
    asking = [each for each in interrupts if each.subagent_run_id and each.id not in known]
    calls = {
        row.uid: row.value
        for row in Event.objects.filter(uid__in=[each.tool_call_id for each in asking])
    }
    threads = threads_of(conversation).filter(uid__in={each.subagent_run_id for each in asking})
    return [
        Subagent(
            uid=thread.uid,
            name=thread.agent_version.agent.name,
            interrupt_ids=[each.id for each in asking if each.subagent_run_id == thread.uid],
            calls=[
                (each.tool_call_id, call)
                for each in asking
                if each.subagent_run_id == thread.uid
                and each.tool_call_id is not None
                and isinstance(call := calls.get(each.tool_call_id), ToolUse)
            ],
        )
        for thread in threads.order_by("pk")
    ]


def _interrupt(row: Event, approval: Approval | None) -> Interrupt | None:
    use = row.value
    match use:
        case AgentCustomToolUse(name=name) if name == QUESTIONS:
            return Interrupt(
                id=row.uid,
                reason="input_required",
                message="\n".join(question.question for question in questions_of(use.input)),
                tool_call_id=row.uid,
                response_schema=_Answers.model_json_schema(),
            )
        case AgentCustomToolUse(of_front_end=False):
            return Interrupt(id=row.uid, reason="agentsite:custom_tool", tool_call_id=row.uid)
        case AgentToolUse() | AgentMcpToolUse() if approval is not None:
            return Interrupt(
                id=row.uid if approval.round == 1 else f"{row.uid}{ROUND}{approval.round}",
                reason="tool_call",
                message=approval.reason or None,
                tool_call_id=row.uid,
                response_schema=_Decision.model_json_schema(),
                expires_at=approval.expires_at.isoformat() if approval.expires_at else None,
                metadata=_about(approval) or None,
            )
        case AgentToolUse() | AgentMcpToolUse() if use.evaluated_permission == "ask":
            return Interrupt(
                id=row.uid,
                reason="tool_call",
                message=use.reason or None,
                tool_call_id=row.uid,
                response_schema=_Decision.model_json_schema(),
            )
        case _:
            return None


def _about(approval: Approval) -> dict[str, Any]:
    about: dict[str, Any] = {"proposedArgs": approval.final_input} if approval.was_edited else {}
    about |= {"agentsite:host": approval.host} if approval.host else {}
    told = as_data(approval.touches)
    return {**about, "agentsite:acts_on": told} if told else about


def require_none_open(still_open: Sequence[Interrupt]) -> None:
    if still_open:
        raise Conflict(
            _("The thread waits for an answer to: %(ids)s.")
            % {"ids": ", ".join(interrupt.id for interrupt in still_open)},
            hint=_("Answer all of them in one run by resume, then send the message."),
        )


def inputs_of(
    conversation: Conversation, answers: Sequence[ResumeAnswer], still_open: Sequence[Interrupt]
) -> list[Input]:
    """What the answers say to the log. A resume that was taken before is taken to be repeated.

    Raises Conflict when open interrupts are left out or one was asked anew, NotFound for an unknown
    one, Invalid for a payload that does not fit.
    """
    given = [answer.interrupt_id for answer in answers]
    if len(set(given)) != len(given):
        raise Invalid(
            _("An interrupt is answered twice."), field="resume", hint=_("Name each once.")
        )
    open_ids = {interrupt.id for interrupt in still_open}
    missing = [interrupt.id for interrupt in still_open if interrupt.id not in given]
    if missing and open_ids.intersection(given):
        raise Conflict(
            _("These interrupts are left without an answer: %(ids)s.")
            % {"ids": ", ".join(missing)},
            hint=_("One resume answers all that are open; none of it was taken."),
        )
    asked_anew = {interrupt.tool_call_id for interrupt in still_open if interrupt.id not in given}
    inputs: list[Input] = []
    for number, answer in enumerate(answers):
        call_uid, _dot, number_of_round = answer.interrupt_id.partition(ROUND)
        if call_uid in asked_anew:
            raise Conflict(
                _("%(id)s was asked for again since.") % {"id": answer.interrupt_id},
                hint=_("Answer the interrupt that is open now."),
            )
        given_to = _input(conversation, call_uid, answer, place("resume", number, "payload"))
        if isinstance(given_to, UserToolConfirmation):
            inputs.append(Decided(given_to, seen_round=number_of(number_of_round or "1") or 0))
        else:
            inputs.append(given_to)
    return inputs


def _input(
    conversation: Conversation, call_uid: str, answer: ResumeAnswer, field: str
) -> UserToolConfirmation | UserCustomToolResult:
    threads = threads_of(conversation).order_by().values("pk")
    row = Event.objects.filter(conversation__in=threads, uid=call_uid).first()
    use = row.value if row is not None else None
    cancelled = answer.status == "cancelled"
    match use:
        case AgentToolUse() | AgentMcpToolUse():
            if cancelled:
                return UserToolConfirmation(tool_use_id=call_uid, result="deny")
            decision = _payload(answer.payload, _Decision, field)
            if decision.edited_args is not None and not decision.approved:
                raise Invalid(
                    _("A call that is denied runs with no arguments."),
                    field=f"{field}.editedArgs",
                    hint=_("Leave them out, or approve."),
                )
            denial = (decision.reason.strip() or None) if not decision.approved else None
            return UserToolConfirmation(
                tool_use_id=call_uid,
                result="allow" if decision.approved else "deny",
                deny_message=denial,
                edited_input=decision.edited_args,
            )
        case AgentCustomToolUse(name=name) if name == QUESTIONS:
            words = SKIPPED
            if not cancelled:
                questions = questions_of(use.input)
                given = _payload(answer.payload, _Answers, field).answers
                words = answer_text(questions, checked(questions, given))
            return UserCustomToolResult(custom_tool_use_id=call_uid, content=as_blocks(words))
        case AgentCustomToolUse():
            words = REFUSED if cancelled else _words(answer.payload)
            return UserCustomToolResult(
                custom_tool_use_id=call_uid, content=as_blocks(words), is_error=cancelled
            )
        case _:
            raise NotFound(
                _("There is no interrupt %(id)s in this thread.") % {"id": answer.interrupt_id}
            )


def _payload(payload: Any, shape: type[Shape], field: str) -> Shape:
    try:
        return parse(payload, shape)
    except Invalid as problem:
        raise problem.under(field) from None


def _words(payload: Any) -> str:
    return payload if isinstance(payload, str) else json_of(payload).decode()
