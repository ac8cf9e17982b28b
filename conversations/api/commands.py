"""What a frame of a program does: one call of an action, and the frames that answer it.

Each frame is answered: with what it changed, or with an error that an action raised. Nothing is
decided here but which action is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import TokenScope, User
from conversations.actions import messages
from conversations.actions.approvals import decide_approval
from conversations.approvals import approval_of
from conversations.models import Approval, Conversation, Event
from conversations.socketframes import KEY_CHARACTERS
from harness.errors import AlreadyDecided, Conflict, NotFound
from harness.events import RequiresAction, SessionStatusIdle
from harness.patterns import input_hash

from .facts import TableFacts
from .incoming import (
    ApprovalResponse,
    Cancel,
    Frame,
    Incoming,
    Interrupt,
    Message,
    PlanApproval,
    Toggle,
)
from .projection import PLAN_TOOL, CallFacts

APPROVE, AUTO_APPROVE = "approve", "auto_approve"


def scope_of(frame: Incoming) -> TokenScope:
    """What a token needs for this frame. Switching approvals off answers questions before they are
    asked, so it takes the same scope."""
    if isinstance(frame, ApprovalResponse | PlanApproval):
        return TokenScope.APPROVALS_DECIDE
    if isinstance(frame, Toggle) and frame.feature == "approval" and not frame.enabled:
        return TokenScope.APPROVALS_DECIDE
    return TokenScope.CONVERSATIONS_WRITE


def act(frame: Incoming, *, actor: User, conversation: Conversation) -> list[Frame]:
    """Do what `frame` asks; what its sender is answered. Raises `Declined`."""
    match frame:
        case Message():
            return [_accepted(frame, _post(actor, conversation, frame))]
        case Interrupt() if frame.content.strip():
            return [_accepted(frame, _post(actor, conversation, frame, interrupt=True))]
        case Interrupt() | Cancel():
            return [_accepted(frame, messages.stop(actor=actor, conversation=conversation))]
        case ApprovalResponse():
            return [_accepted(frame, _answer(frame, actor, conversation))]
        case PlanApproval():
            return _plan(frame, actor, conversation)
        case Toggle():
            event = messages.set_feature(
                actor=actor,
                conversation=conversation,
                feature=frame.feature,
                enabled=frame.enabled,
            )
            if event is not None:
                return [_accepted(frame, event)]  # the log tells every socket of the change
            return [
                _answered(frame, {"type": f"{frame.feature}_changed", "enabled": frame.enabled})
            ]
        case _:
            raise TypeError(f"not a command: {frame.type}")


def _post(
    actor: User, conversation: Conversation, frame: Message | Interrupt, *, interrupt: bool = False
) -> Event:
    return messages.post_message(
        actor=actor,
        conversation=conversation,
        text=frame.content,
        key=frame.key,
        interrupt=interrupt,
    )


def _answer(frame: ApprovalResponse, actor: User, conversation: Conversation) -> Event | None:
    """The answer to one request, for all its calls or the named ones; all of them or none.

    Allowing holds for what the request showed: a call whose input was changed since, or that was asked
    about anew, is not allowed by it. Denying always does.
    """
    with transaction.atomic():
        asked = [
            call
            for call in _asked(conversation, frame.request_id)
            if call.name != PLAN_TOOL and not call.custom
        ]
        if frame.tool_use_ids is not None:
            unknown = set(frame.tool_use_ids) - {call.uid for call in asked}
            if unknown:
                raise NotFound(_("This request does not ask about such a call."))
            asked = [call for call in asked if call.uid in frame.tool_use_ids]
        waiting = [(call, held) for call in asked if (held := _waiting(conversation, call))]
        if not waiting:
            raise AlreadyDecided(_("This request was answered before."))
        for place, (call, approval) in enumerate(waiting):
            key = f"{frame.key}.{place}" if frame.key else None
            _decide(frame, actor, approval, call, key=key)
        if frame.decision == AUTO_APPROVE:
            # Lasts for the conversation, is seen by all its sockets, and can be switched on again.
            messages.set_feature(
                actor=actor, conversation=conversation, feature="approval", enabled=False
            )
    return Event.objects.filter(
        conversation=conversation,
        subject__in=[call.uid for call, _approval in waiting],
        type__in=("user.tool_confirmation", "x.approval_voted"),
    ).latest("seq")


def _decide(
    frame: ApprovalResponse, actor: User, approval: Approval, shown: CallFacts, *, key: str | None
) -> None:
    allow = frame.decision in (APPROVE, AUTO_APPROVE)  # of any type: no set
    # What the switch does not ask about, a rule does: it is told to let such calls pass here.
    by_rule = approval.may_be_settled and approval.rule_level != "conversation"
    for_good = frame.decision == AUTO_APPROVE and by_rule
    decide_approval(
        actor=actor,
        approval=approval,
        verdict="approve" if allow else "deny",
        input_hash=input_hash(shown.input),
        seen_round=shown.round,
        reason="" if allow else frame.reason,
        scope="conversation" if for_good else "once",
        key=None if key is None else key[:KEY_CHARACTERS],
    )


def _plan(frame: PlanApproval, actor: User, conversation: Conversation) -> list[Frame]:
    approved = frame.decision == APPROVE
    feedback = frame.feedback.strip()
    with transaction.atomic():
        rest = _last_rest(conversation)
        if rest is None or (frame.request_id is not None and rest.uid != frame.request_id):
            raise Conflict(_("No such plan waits for an answer."))
        waiting = [
            call
            for call in _asked(conversation, rest.uid)
            if call.name == PLAN_TOOL and _waiting(conversation, call)
        ]
        if conversation.waits_for_person and waiting:
            if not approved and not feedback:
                # Nothing to revise it by: the turn ends, plan mode stays.
                event = messages.stop(actor=actor, conversation=conversation)
                said = _answered(frame, {"type": "plan_rejected", "feedback": ""})
                return [said, _accepted(frame, event)]
            event = messages.decide_call(
                actor=actor,
                conversation=conversation,
                call_uid=waiting[0].uid,
                allow=approved,
                reason=feedback,
                shown=input_hash(waiting[0].input),
                seen_round=waiting[0].round,
            )
            return [_accepted(frame, event)]  # the log tells every socket of the decision
        if not conversation.features.plan_mode or conversation.is_running:
            raise Conflict(
                _("No plan waits for an answer."),
                hint=_("Wait for `plan_ready`, or send a message."),
            )
        return _plan_in_words(frame, approved, feedback, actor, conversation)


def _plan_in_words(
    frame: PlanApproval, approved: bool, feedback: str, actor: User, conversation: Conversation
) -> list[Frame]:
    """A plan that was only said, at the end of its turn: the answer is a message (S-83)."""
    event: Event | None = None
    if approved:
        messages.set_feature(
            actor=actor, conversation=conversation, feature="plan_mode", enabled=False
        )
        text = _("The plan is approved. Carry it out now.")
        event = messages.post_message(
            actor=actor, conversation=conversation, text=text, key=frame.key
        )
        return [_answered(frame, {"type": "plan_approved"}), _accepted(frame, event)]
    if feedback:
        event = messages.post_message(
            actor=actor, conversation=conversation, text=feedback, key=frame.key
        )
    said = _answered(frame, {"type": "plan_rejected", "feedback": feedback})
    return [said, _accepted(frame, event)]


# --- the log --------------------------------------------------------------------------------------


def open_questions(conversation: Conversation) -> tuple[str, Sequence[CallFacts]]:
    """The id of the request that waits for a person, and its calls that nobody answered yet."""
    rest = _last_rest(conversation)
    if rest is None or not conversation.waits_for_person:
        return "", ()
    asked = _asked(conversation, rest.uid)
    return rest.uid, [call for call in asked if call.custom or _waiting(conversation, call)]


def _last_rest(conversation: Conversation) -> Event | None:
    rests = Event.objects.filter(conversation=conversation, type="session.status_idle")
    return rests.order_by("-seq").first()


def _asked(conversation: Conversation, request_id: str) -> Sequence[CallFacts]:
    """The calls a request is about: those its rest waits for. Raises `NotFound`."""
    rest = Event.objects.filter(
        conversation=conversation, uid=request_id.replace("\0", ""), type="session.status_idle"
    ).first()
    value: Any = rest.value if rest is not None else None
    if rest is None or not isinstance(value, SessionStatusIdle):
        raise NotFound(_("There is no such request."))
    if not isinstance(value.stop_reason, RequiresAction):
        return ()
    return TableFacts(conversation).asked(value.stop_reason.event_ids, rest.seq)


def _waiting(conversation: Conversation, call: CallFacts) -> Approval | None:
    """The approval of the call, if it is still to be given."""
    approval = approval_of(conversation, call.uid)
    return approval if approval is not None and approval.is_waiting else None


# --- answers --------------------------------------------------------------------------------------


def _accepted(frame: Incoming, event: Event | None) -> Frame:
    """`event_id` and `event_seq` are null when there was nothing to store: it stood so already."""
    stored = {"event_id": event.uid, "event_seq": event.seq} if event else {}
    return _answered(
        frame,
        {"type": "accepted", "frame": frame.type, "event_id": None, "event_seq": None, **stored},
    )


def _answered(frame: Incoming, said: Frame) -> Frame:
    return said if frame.key is None else {**said, "key": frame.key}
