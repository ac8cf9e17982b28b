"""What a frame of a program does: one call of an action, and the frames that answer it.

Each frame is answered: with what it changed, or with an error that an action raised. Nothing is
decided here but which action is meant.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import TokenScope, User
from approvals.actions.approvals import decide_approval
from approvals.decisions import HOLDING_BACK
from approvals.models import Approval
from approvals.projection import approval_of
from conversations.actions import messages
from conversations.actions.deciding import decide_call
from conversations.actions.redacting import redact_content
from conversations.actions.setaside import set_aside
from conversations.judging import kit_of
from conversations.models import Conversation, Event
from harness.errors import AlreadyDecided, Conflict, NotFound
from harness.events import RequiresAction, SessionStatusIdle
from harness.history import History
from harness.patterns import input_hash
from harness.policy import Situation, Verdict
from harness.tools import Effect
from wire.socketframes import KEY_CHARACTERS

from .facts import TableFacts
from .incoming import (
    ApprovalResponse,
    Cancel,
    Frame,
    Incoming,
    Interrupt,
    Message,
    PlanApproval,
    Redact,
    SetAside,
    Toggle,
)
from .projection import PLAN_TOOL, CallFacts

APPROVE, AUTO_APPROVE = "approve", "auto_approve"


def scope_of(frame: Incoming) -> TokenScope:
    """What a token needs for this frame. To switch off what holds the agent back answers questions
    before they are asked, so it takes the same scope."""
    if isinstance(frame, ApprovalResponse | PlanApproval):
        return TokenScope.APPROVALS_DECIDE
    if isinstance(frame, Toggle) and frame.feature in HOLDING_BACK and not frame.enabled:
        return TokenScope.APPROVALS_DECIDE
    return TokenScope.CONVERSATIONS_WRITE


def act(
    frame: Incoming, *, actor: User, conversation: Conversation, shown: Collection[str] = ()
) -> list[Frame]:
    """Do what `frame` asks; what its sender is answered. Raises `Declined`.

    `shown` are the requests that its socket was told of.
    """
    match frame:
        case Message():
            return [_accepted(frame, _post(actor, conversation, frame))]
        case Interrupt() if frame.content.strip():
            return [_accepted(frame, _post(actor, conversation, frame, interrupt=True))]
        case Interrupt() | Cancel():
            return [_accepted(frame, messages.stop(actor=actor, conversation=conversation))]
        case ApprovalResponse():
            event = _answer(frame, actor, conversation, shown)
            accepted = _accepted(frame, event)
            if frame.decision == AUTO_APPROVE:
                accepted["auto_approve"] = _promise(conversation)
            return [accepted]
        case SetAside():
            aside = set_aside(actor=actor, conversation=conversation, event_uid=frame.event_id)
            return [_accepted(frame, aside)]
        case Redact():
            redacted = redact_content(
                actor=actor, conversation=conversation, event_uid=frame.event_id
            )
            return [_accepted(frame, redacted)]
        case PlanApproval():
            return _plan(frame, actor, conversation, shown)
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


def _answer(
    frame: ApprovalResponse, actor: User, conversation: Conversation, shown: Collection[str]
) -> Event | None:
    """The answer to one request, for all its calls or the named ones; all of them or none.

    Allowing holds for what the request showed: a call whose input was changed since, or that was asked
    about anew, is not allowed by it. Denying always does.
    """
    with transaction.atomic():
        request_id = frame.request_id or _only_request(conversation, shown)
        asked = [
            call
            for call in _asked(conversation, request_id)
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


def _only_request(conversation: Conversation, shown: Collection[str]) -> str:
    """What an answer means that names no request. Raises `Conflict` for none that is open, and for one
    that its sender cannot have seen: a second click answers no later question."""
    request_id, calls = open_questions(conversation)
    if not any(call.name != PLAN_TOOL and not call.custom for call in calls):
        raise Conflict(
            _("No approval is asked for now, so it is not clear what this answers."),
            hint=_("Wait for `tool_approval_request`, and send its `request_id`."),
        )
    if request_id not in shown:
        raise Conflict(
            _("This answer names no request; one is open that this socket was not sent: %(id)s.")
            % {"id": request_id},
            hint=_("Look at what it asks, and send its `request_id`."),
        )
    return request_id


def _promise(conversation: Conversation) -> Frame:
    """What `auto_approve` came to: which tools ask on, because rules demand it that no answer in a
    conversation may lift."""
    conversation.refresh_from_db()
    kit, features = kit_of(conversation), conversation.features
    situation = Situation(features)
    left_out = kit.left_out(History(features=features))
    asks = sorted(
        name
        for name, tool in kit.tools.items()
        if name not in left_out
        and kit.policy.offers(tool, features)
        and kit.policy.judge(tool, name, situation).verdict is Verdict.ASK
    )
    outside = sorted(
        name
        for name, tool in kit.tools.items()
        if tool.effect is Effect.OUTSIDE and kit.policy.offers(tool, features) and name not in asks
    )
    said = []
    if asks:
        said.append(
            _("Rules that an answer here cannot lift still ask before these: %(tools)s.")
            % {"tools": ", ".join(asks)}
        )
    if outside:
        said.append(
            _("After untrusted content these ask until a person speaks again: %(tools)s.")
            % {"tools": ", ".join(outside)}
        )
    return {
        "holds": not asks and not outside,
        "asks_still": asks,
        "asks_after_untrusted_content": outside,
        "message": " ".join(said) or _("Nothing more is asked in this conversation."),
    }


def _decide(
    frame: ApprovalResponse, actor: User, approval: Approval, shown: CallFacts, *, key: str | None
) -> None:
    allow = frame.decision in (APPROVE, AUTO_APPROVE)  # of any type: no set
    # What the switch does not ask about, a rule does: it is told to let such calls pass here.
    by_rule = approval.may_be_settled and approval.rule_level != "conversation"
    # Where people are asked for, a service account's answer holds for one call.
    for_one_call = actor.is_service and approval.wants_people
    for_good = frame.decision == AUTO_APPROVE and by_rule and not for_one_call
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


def _plan(
    frame: PlanApproval, actor: User, conversation: Conversation, shown: Collection[str]
) -> list[Frame]:
    """The answer to a plan that waits, or to one that was only said. The first one counts; one that names no
    plan means one that its socket was sent."""
    approved = frame.decision == APPROVE
    feedback = frame.feedback.strip()
    with transaction.atomic():
        rest = _last_rest(conversation)
        if rest is None or (frame.request_id is not None and rest.uid != frame.request_id):
            raise Conflict(
                _("No such plan waits for an answer."),
                hint=_("Wait for `plan_ready`, or send a message."),
            )
        if approved and frame.request_id is None and rest.uid not in shown:
            raise Conflict(
                _("This answer names no plan, and this socket was not sent the last one: %(id)s.")
                % {"id": rest.uid},
                hint=_("Look at the plan, and send its `request_id`."),
            )
        plans = [call for call in _asked(conversation, rest.uid) if call.name == PLAN_TOOL]
        waiting = [call for call in plans if _waiting(conversation, call)]
        if plans and not waiting:
            raise AlreadyDecided(_("This plan was answered before."))
        if conversation.waits_for_person and waiting:
            if not approved and not feedback:
                # Nothing to revise it by: the turn ends, plan mode stays.
                event = messages.stop(actor=actor, conversation=conversation)
                said = _answered(frame, {"type": "plan_rejected", "feedback": ""})
                return [said, _accepted(frame, event)]
            event = decide_call(
                actor=actor,
                conversation=conversation,
                call_uid=waiting[0].uid,
                allow=approved,
                reason=feedback,
                shown=input_hash(waiting[0].input),
                seen_round=waiting[0].round,
            )
            return [_accepted(frame, event)]  # the log tells every socket of the decision
        goes_on = conversation.is_running or conversation.owes_run
        if not conversation.features.plan_mode or goes_on:
            raise Conflict(
                _("No plan waits for an answer."),
                hint=_("Wait for `plan_ready`, or send a message."),
            )
        return _plan_in_words(frame, approved, feedback, actor, conversation)


def _plan_in_words(
    frame: PlanApproval, approved: bool, feedback: str, actor: User, conversation: Conversation
) -> list[Frame]:
    """A plan that was only said, at the end of its turn: the answer is a message."""
    event: Event | None = None
    if approved:
        switched = messages.set_feature(
            actor=actor, conversation=conversation, feature="plan_mode", enabled=False
        )
        if switched is None:
            raise AlreadyDecided(_("This plan was answered before."))
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


def open_questions(
    conversation: Conversation, reader: User | None = None
) -> tuple[str, Sequence[CallFacts]]:
    """The id of the request that waits for a person, and its calls that nobody answered yet. `reader` as for
    `TableFacts`."""
    rest = _last_rest(conversation) if conversation.waits_for_person else None
    if rest is None:
        return "", ()
    asked = _asked(conversation, rest.uid, reader)
    return rest.uid, [call for call in asked if call.custom or _waiting(conversation, call)]


def _last_rest(conversation: Conversation) -> Event | None:
    rests = Event.objects.filter(conversation=conversation, type="session.status_idle")
    return rests.order_by("-seq").first()


def _asked(
    conversation: Conversation, request_id: str, reader: User | None = None
) -> Sequence[CallFacts]:
    """The calls a request is about: those its rest waits for. Raises `NotFound`."""
    rest = Event.objects.filter(
        conversation=conversation, uid=request_id.replace("\0", ""), type="session.status_idle"
    ).first()
    value: Any = rest.value if rest is not None else None
    if rest is None or not isinstance(value, SessionStatusIdle):
        raise NotFound(_("There is no such request."))
    if not isinstance(value.stop_reason, RequiresAction):
        return ()
    return TableFacts(conversation, reader=reader).asked(value.stop_reason.event_ids, rest.seq)


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
    if ignored := frame.ignored():
        said = {**said, "ignored": ignored}
    return said if frame.key is None else {**said, "key": frame.key}
