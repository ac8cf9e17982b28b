"""Approvals as the log opens and closes them, always in the transaction of the event.

A stored call that asks leaves one; its answer settles it, and a rest that does not wait for it makes
it needless. What people do with one is in `actions.approvals`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils import timezone

from accounts.models import User
from approvals.auditing import about_approval
from audit import record as audit
from conversations import projections
from conversations.ancestry import root_of
from conversations.models import Conversation, Event
from harness.events import (
    VOIDS_ANSWERS,
    AgentMcpToolUse,
    AgentToolUse,
    ApprovalRequested,
    OutcomeUnknown,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusTerminated,
    UserToolConfirmation,
)
from harness.events import Event as EventValue
from harness.patterns import input_hash
from harness.rules import AskTerms
from jobs.prepared import Prepared
from tools_app.touches import for_others, taken_out, told_to_keep

from .deciders import may_be_asked
from .models import Approval
from .requesters import also_requesting, having_told
from .webhookevents import announce_approval

_WAITING = Prepared(
    lambda given: Approval.objects.filter(
        conversation=given.conversation, state=Approval.State.PENDING
    ).select_related("conversation")
)

FOLLOWED = (
    AgentToolUse,
    AgentMcpToolUse,
    ApprovalRequested,
    OutcomeUnknown,
    UserToolConfirmation,
    SessionStatusIdle,
    SessionStatusTerminated,
)


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    """Carry one event over to the approvals of its conversation."""
    match event:
        case AgentToolUse() | AgentMcpToolUse() if event.evaluated_permission == "ask":
            _open(conversation, row, event, event.terms or AskTerms(), event.reason)
        case ApprovalRequested():
            _ask_anew(conversation, row, event)
        case OutcomeUnknown():
            _void(conversation, event.tool_use_id)
        case UserToolConfirmation():
            _settle(conversation, row, event)
        case SessionStatusIdle(stop_reason=RequiresAction(event_ids=calls)):
            asking = set(calls) - projections.carried_out_elsewhere(conversation)
            _cancel(conversation, except_for=asking)
            _reopen(conversation, asking)
        case SessionStatusIdle() | SessionStatusTerminated():
            _cancel(conversation)
        case _:
            pass


def approval_of(conversation: Conversation, call_uid: str) -> Approval | None:
    return Approval.objects.filter(conversation=conversation, call_uid=call_uid).first()


def told_of(conversation: int, call_uid: str) -> dict[str, Any]:
    """What its question showed beside the arguments; empty: nobody was asked."""
    rows = Approval.objects.filter(conversation=conversation, call_uid=call_uid)
    return rows.values_list("touches", flat=True).first() or {}


def told_to(
    reader: User, conversation: int, call_uids: Collection[str]
) -> dict[str, Mapping[str, Any]]:
    """The same of several calls, by their ids, for one who reads their conversation."""
    rows = Approval.objects.filter(conversation=conversation, call_uid__in=call_uids)
    hers = Approval.objects.visible_to(reader).filter(pk=OuterRef("pk"))
    return {
        uid: touches if seen else for_others(touches)
        for uid, touches, seen in rows.order_by().values_list("call_uid", "touches", Exists(hers))
    }


def forget_told(organisation: int, uid: str) -> None:
    """What questions there showed of the thing with this id is taken out of them."""
    told = Approval.objects.filter(organisation=organisation).exclude(acts_on="")
    told.filter(acts_on__contains=uid).update(touches=taken_out(), acts_on="")


def propose(approval: Approval, given: dict[str, Any] | None) -> None:
    """Have the question be about this input in place of the agent's; None: about that one again. About the
    same as before it shows the same as before: that is what others have allowed."""
    if approval.final_input == given:
        return
    approval.final_input = given
    _tell(approval)
    approval.save(update_fields=["final_input", *_TOLD])


# --- opening --------------------------------------------------------------------------------------


def _open(
    conversation: Conversation,
    call: Event,
    use: AgentToolUse | AgentMcpToolUse,
    terms: AskTerms,
    reason: str,
    rounds: int = 1,
) -> None:
    approval = Approval(
        round=rounds,
        organisation_id=conversation.organisation_id,
        conversation=conversation,
        root_id=root_of(conversation),
        call_uid=call.uid,
        tool=use.name[:128],
        input=call.payload["input"],
        input_sha256=input_hash(call.payload["input"]),
        requested_by_id=conversation.owner_id,
    )
    _tell(approval)
    _set_terms(approval, terms, reason)
    approval.save()
    _name_authors(conversation, approval)
    about_approval(audit.Action.ASKED, approval, reason=approval.reason, risk=approval.risk)
    announce_approval(approval)


def _rounds(call: Event, use: AgentToolUse | AgentMcpToolUse, up_to: Event) -> int:
    """How often the call had to be asked for, by the log up to this event."""
    anew = Event.objects.filter(
        conversation=call.conversation_id, subject=call.uid, type__in=VOIDS_ANSWERS
    )
    return anew.filter(seq__lte=up_to.seq).count() + (use.evaluated_permission == "ask")


def _ask_anew(conversation: Conversation, row: Event, request: ApprovalRequested) -> None:
    """The same call waits again, or on other terms; consent from before counts no more.

    With the input it had last: what a person put in the place of the agent's stays there.
    """
    call_uid, terms, reason = request.tool_use_id, request.terms, request.reason
    held = approval_of(conversation, call_uid)
    if held is None:
        call = Event.objects.filter(conversation=conversation, uid=call_uid).first()
        value = call.value if call else None
        if call is not None and isinstance(value, AgentToolUse | AgentMcpToolUse):
            rounds = _rounds(call, value, row)
            _open(conversation, call, value, terms, reason, rounds)
        return
    held.conversation = conversation
    held.round += 1
    held.state = Approval.State.PENDING
    held.closed_at = held.closed_by = None
    _tell(held)
    _set_terms(held, terms, reason)
    held.save()
    _name_authors(conversation, held)
    about_approval(audit.Action.ASKED, held, reason=held.reason, round=held.round)
    announce_approval(held)


def _name_authors(conversation: Conversation, approval: Approval) -> None:
    """Those who stand as its requester beside the person that its agent works for."""
    approval.conversation = conversation
    people = also_requesting(approval)
    if approval.requester_may_not_decide:
        people |= having_told(approval)
    if others := people - {approval.requested_by_id}:
        approval.also_requested_by.set(others)


def _void(conversation: Conversation, call_uid: str) -> None:
    """What allowed the call before allows it no more. Nobody is asked yet: an answer that came in
    before the question would be to none."""
    held = approval_of(conversation, call_uid)
    if held is None:
        return
    held.round += 1
    held.state = Approval.State.CANCELLED
    held.closed_at, held.closed_by = timezone.now(), None
    held.save(update_fields=["round", "state", "closed_at", "closed_by"])


_TOLD = ("touches", "acts_on")


def _tell(approval: Approval) -> None:
    touches = told_to_keep(approval.conversation.uid, approval.tool, approval.effective_input)
    approval.acts_on = " ".join(touches.pop("about", ()))
    approval.touches = touches


def _set_terms(approval: Approval, terms: AskTerms, reason: str) -> None:
    now = timezone.now()
    approval.asked_at = now
    approval.effect = terms.effect
    approval.destructive = terms.destructive
    approval.tainted = terms.tainted
    approval.rule_level = terms.level
    approval.rule_uid = terms.rule
    approval.reason = reason
    approval.risk = Approval.Risk(terms.risk)
    approval.needed = 2 if terms.two_people else 1
    approval.reviewers_only = terms.reviewers_only
    approval.requester_may_not_decide = terms.requester_may_not_decide
    approval.service_accounts = list(terms.service_accounts)
    approval.may_be_settled = terms.may_be_settled
    approval.turn_uid = terms.turn
    approval.host = terms.host
    seconds = terms.expires_seconds
    approval.expires_at = now + timedelta(seconds=seconds) if seconds else None
    kind, _colon, named = terms.ask_first.partition(":")
    if kind == "person":
        # Named by a rule that may be older than her leaving: then it is for all who may answer.
        person = User.objects.filter(uid=named).first()
        fits = person is not None and may_be_asked(person, approval)
        approval.assignee, approval.assignee_role = person if fits else None, ""
    elif kind == "role":
        approval.assignee, approval.assignee_role = None, named
    elif terms.reviewers_only:
        approval.assignee_role = "reviewer"


# --- closing --------------------------------------------------------------------------------------


def _settle(conversation: Conversation, row: Event, answer: UserToolConfirmation) -> None:
    """Only the first answer counts, as in the log itself."""
    held = Approval.objects.filter(
        conversation=conversation, call_uid=answer.tool_use_id, state=Approval.State.PENDING
    ).first()
    if held is None:
        return
    if answer.result == "allow":
        held.state = Approval.State.APPROVED
        if held.final_input != answer.edited_input:
            held.final_input = answer.edited_input
            _tell(held)
    else:
        held.state = Approval.State.EXPIRED if answer.expired else Approval.State.DENIED
    held.closed_at = row.created_at
    held.closed_by_id = row.actor_id
    held.save(update_fields=["state", "final_input", *_TOLD, "closed_at", "closed_by"])
    announce_approval(held)


def _cancel(conversation: Conversation, except_for: Collection[str] = ()) -> None:
    """Nobody needs an answer any more: the call was answered otherwise or is given up."""
    for held in _WAITING.all(conversation=conversation.pk):
        if held.call_uid in except_for:
            continue
        held.state = Approval.State.CANCELLED
        held.closed_at = timezone.now()
        held.save(update_fields=["state", "closed_at"])
        about_approval(audit.Action.CANCELLED, held)
        announce_approval(held)


def _reopen(conversation: Conversation, calls: Collection[str]) -> None:
    """A turn that was given up with its calls open goes on: the same questions wait again."""
    given_up = Approval.objects.filter(conversation=conversation, state=Approval.State.CANCELLED)
    for held in given_up.filter(call_uid__in=calls).select_related("conversation"):
        held.state = Approval.State.PENDING
        held.closed_at = None
        held.save(update_fields=["state", "closed_at"])
        about_approval(audit.Action.ASKED, held, reason=held.reason, round=held.round)
        announce_approval(held)
