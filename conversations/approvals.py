"""Approvals as the log opens and closes them, always in the transaction of the event.

A stored call that asks leaves one; its answer settles it, and a rest that does not wait for it makes
it needless. What people do with one is in `actions.approvals`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.dispatch import Signal
from django.utils import timezone

from accounts.models import User
from accounts.persons import persons_among
from harness.events import (
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
from harness.policy import UNKNOWN
from harness.rules import AskTerms
from jobs.prepared import Prepared

from . import audit, handouts
from .deciders import may_be_asked
from .models import Approval, ApprovalDecision, Conversation, Event
from .policyrules import root_of
from .touches import touched_by
from .webhooks import outbox

_WAITING = Prepared(
    lambda given: Approval.objects.filter(
        conversation=given.conversation, state=Approval.State.PENDING
    ).select_related("conversation")
)

changed = Signal()
"""Sent with `approval` whenever one was opened, voted on, assigned or closed, inside the transaction:
receivers that reach outside wait for its commit."""

NEW_ROUND = ("x.approval_requested", "x.outcome_unknown")
"""Events after which no earlier answer about a call counts. The first puts the next question too; the
second leaves that to the run, which alone knows on what terms the call is to be asked for."""


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
            asking = set(calls) - handouts.open_calls(conversation)
            _cancel(conversation, except_for=asking)
            _reopen(conversation, asking)
        case SessionStatusIdle() | SessionStatusTerminated():
            _cancel(conversation)
        case _:
            pass


def approval_of(conversation: Conversation, call_uid: str) -> Approval | None:
    """The approval of a call, also of one that was asked before approvals had rows."""
    found = Approval.objects.filter(conversation=conversation, call_uid=call_uid).first()
    if found is not None:
        return found
    call = Event.objects.filter(conversation=conversation, uid=call_uid).first()
    value = call.value if call else None
    if call is None or not isinstance(value, AgentToolUse | AgentMcpToolUse):
        return None
    later = list(
        Event.objects.filter(conversation=conversation, subject=call_uid)
        .exclude(pk=call.pk)
        .values_list("type", flat=True)
    )
    if {"user.tool_confirmation", "agent.tool_result", "agent.mcp_tool_result"} & set(later):
        return None
    asked = value.evaluated_permission == "ask"
    if not asked and "x.approval_requested" not in later:
        return None
    reason = UNKNOWN if "x.outcome_unknown" in later else value.reason
    return _open(conversation, call, value, value.terms or AskTerms(), reason, _rounds(call, value))


def propose(approval: Approval, given: dict[str, Any] | None) -> None:
    """Have the question be about this input in place of the agent's; None: about that one again."""
    approval.final_input = given
    approval.touches = _touches(approval)
    approval.save(update_fields=["final_input", "touches"])


# --- opening --------------------------------------------------------------------------------------


def _open(
    conversation: Conversation,
    call: Event,
    use: AgentToolUse | AgentMcpToolUse,
    terms: AskTerms,
    reason: str,
    rounds: int = 1,
) -> Approval:
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
    approval.touches = _touches(approval)
    _set_terms(approval, terms, reason)
    approval.save()
    audit.about_approval(audit.Action.ASKED, approval, reason=approval.reason, risk=approval.risk)
    outbox.announce_approval(approval)
    changed.send(Approval, approval=approval)
    return approval


def _rounds(call: Event, use: AgentToolUse | AgentMcpToolUse, up_to: Event | None = None) -> int:
    """How often the call had to be asked for, by the log."""
    anew = Event.objects.filter(
        conversation=call.conversation_id, subject=call.uid, type__in=NEW_ROUND
    )
    if up_to is not None:
        anew = anew.filter(seq__lte=up_to.seq)
    return anew.count() + (use.evaluated_permission == "ask")


def _ask_anew(conversation: Conversation, row: Event, request: ApprovalRequested) -> None:
    """The same call waits again, or on other terms; consent from before counts no more.

    With the input it had last: what a person put in the place of the agent's stays there.
    """
    call_uid, terms, reason = request.tool_use_id, request.terms, request.reason
    held = Approval.objects.filter(conversation=conversation, call_uid=call_uid).first()
    if held is None:
        call = Event.objects.filter(conversation=conversation, uid=call_uid).first()
        value = call.value if call else None
        if call is not None and isinstance(value, AgentToolUse | AgentMcpToolUse):
            rounds = _rounds(call, value, up_to=row)
            _open(conversation, call, value, terms, reason, rounds)
        return
    held.conversation = conversation
    held.round += 1
    held.state = Approval.State.PENDING
    held.closed_at = held.closed_by = None
    held.touches = _touches(held)
    _set_terms(held, terms, reason)
    held.save()
    audit.about_approval(audit.Action.ASKED, held, reason=held.reason, round=held.round)
    outbox.announce_approval(held)
    changed.send(Approval, approval=held)


def _void(conversation: Conversation, call_uid: str) -> None:
    """What allowed the call before allows it no more. Nobody is asked yet: an answer that came in
    before the question would be to none."""
    held = Approval.objects.filter(conversation=conversation, call_uid=call_uid).first()
    if held is None:
        return
    held.round += 1
    held.state = Approval.State.CANCELLED
    held.closed_at, held.closed_by = timezone.now(), None
    held.save(update_fields=["round", "state", "closed_at", "closed_by"])
    changed.send(Approval, approval=held)


def _touches(approval: Approval) -> dict[str, Any]:
    return touched_by(approval.conversation.uid, approval.tool, approval.effective_input)


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
            held.touches = _touches(held)
    else:
        held.state = Approval.State.EXPIRED if answer.expired else Approval.State.DENIED
    held.closed_at = row.created_at
    held.closed_by_id = row.actor_id
    held.save(update_fields=["state", "final_input", "touches", "closed_at", "closed_by"])
    outbox.announce_approval(held)
    changed.send(Approval, approval=held)


def _cancel(conversation: Conversation, except_for: Collection[str] = ()) -> None:
    """Nobody needs an answer any more: the call was answered otherwise or is given up."""
    for held in _WAITING.all(conversation=conversation.pk):
        if held.call_uid in except_for:
            continue
        held.state = Approval.State.CANCELLED
        held.closed_at = timezone.now()
        held.save(update_fields=["state", "closed_at"])
        audit.about_approval(audit.Action.CANCELLED, held)
        outbox.announce_approval(held)
        changed.send(Approval, approval=held)


def _reopen(conversation: Conversation, calls: Collection[str]) -> None:
    """A turn that was given up with its calls open goes on: the same questions wait again."""
    given_up = Approval.objects.filter(conversation=conversation, state=Approval.State.CANCELLED)
    for held in given_up.filter(call_uid__in=calls).select_related("conversation"):
        held.state = Approval.State.PENDING
        held.closed_at = None
        held.save(update_fields=["state", "closed_at"])
        audit.about_approval(audit.Action.ASKED, held, reason=held.reason, round=held.round)
        outbox.announce_approval(held)
        changed.send(Approval, approval=held)


def votes(approval: Approval) -> int:
    """How many people have allowed it, of those it needs."""
    consents = ApprovalDecision.objects.filter(
        approval=approval, round=approval.round, verdict=ApprovalDecision.Verdict.APPROVE
    ).select_related("by")
    return persons_among([each.by for each in consents if each.by is not None])
