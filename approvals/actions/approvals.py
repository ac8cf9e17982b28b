"""What people do with approvals: decide, put aside, hand to somebody, and see them.

Every door answers a waiting call through `decide_approval`. The first answer wins; each is bound to
the exact input it was given for, and whatever comes late, twice or from elsewhere changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.persons import persons_behind
from accounts.reviewing import REVIEWING
from approvals.auditing import about_approval
from approvals.consents import Agreement, Consent, agreement, conditions_met
from approvals.deciders import may_be_asked, may_not_allow, may_not_decide, reviews
from approvals.models import Approval, ApprovalDecision
from approvals.projection import propose
from audit.models import AuditEntry
from conversations.actions.answering import REACH, Answer, Verdict, checked
from conversations.judging import history_of, kit_of
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.opencalls import open_call
from conversations.wakes import wake
from harness.errors import (
    AlreadyDecided,
    AskedAnew,
    Conflict,
    Expired,
    Forbidden,
    InputChanged,
    Invalid,
    InvalidToolInput,
    MayNotDecide,
    NotFound,
    NotWaiting,
)
from harness.events import ApprovalVoted, Scope, UserToolConfirmation
from harness.history import Entry
from harness.patterns import input_hash
from harness.policy import Verdict as Judged
from harness.tools import check_input
from tools_app.touches import names_more

from .grants import grant_rule, proposed_rule

logger = logging.getLogger(__name__)

EXPIRED = "Nobody answered in time."


def decide_approval(
    *,
    actor: User,
    approval: Approval,
    verdict: Verdict,
    input_hash: str,
    reason: str = "",
    edited_input: Mapping[str, Any] | None = None,
    scope: Scope = "once",
    pattern: str = "",
    key: str | None = None,
    seen_round: int | None = None,
) -> Approval:
    """Answer a waiting call; the approval as it is afterwards.

    `input_hash` is that of the input the actor saw (`Approval.effective_sha256`), and `seen_round` the
    number of the question (`Approval.round`): who allows a call allows exactly this. Denying needs
    neither. `edited_input` has the call run with it instead; it must fit the tool's schema, and rules
    that deny still hold. A `scope` beyond `once` saves the rule that `grants.proposed_rule` shows, for
    exactly this input or, with a `pattern`, for what that covers.
    `not_now` leaves it waiting and is kept. The same `key` twice is one decision.

    Raises NotFound (also for somebody else's), MayNotDecide, AlreadyDecided, Expired, NotWaiting,
    InputChanged, AskedAnew, and Invalid or TooLarge naming the field; each changes nothing.
    """
    answer = checked(
        actor=actor,
        verdict=verdict,
        input_hash=input_hash,
        reason=reason,
        edited_input=edited_input,
        scope=scope,
        pattern=pattern,
        key=key,
        seen_round=seen_round,
    )
    late = False
    with transaction.atomic():
        held = _held(actor, approval)
        if (known := _answered_with(held, answer)) is not None:
            return known
        if held.is_overdue and not _has_gone_on(held):
            _expire(held)
            late = True
        else:
            _require_waiting(held)
            _require_entitled(actor, held)
            if answer.verdict == "approve":
                _require_same_question(held, answer)
                _require_not_her_own(held, answer)
            _decide(held, answer)
    if late:
        raise Expired(
            _("Time ran out before this answer came; the call was denied."),
            hint=_("Ask the agent to try again."),
        )
    held.refresh_from_db()
    return held


def answer_as_shown(
    *,
    actor: User,
    approval: Approval,
    allow: bool,
    reason: str = "",
    key: str | None = None,
    shown: str = "",
    seen_round: int | None = None,
    edited_input: Mapping[str, Any] | None = None,
) -> Event:
    """`decide_approval` for a door that answers once, with a yes or a no; the event.

    `shown` is the hash of the input that the door shows; empty: of the one the agent asked with.
    Raises InputChanged for allowing, unseen, what another person has proposed to run it with. Who
    says in `edited_input` what exactly it shall run with need not have seen anything else.
    """
    seen = shown or approval.input_sha256
    decide_approval(
        actor=actor,
        approval=approval,
        verdict="approve" if allow else "deny",
        input_hash=seen if edited_input is None else approval.effective_sha256,
        reason="" if allow else reason,
        edited_input=edited_input,
        key=key,
        seen_round=seen_round,
    )
    return Event.objects.filter(
        conversation=approval.conversation_id,
        subject=approval.call_uid,
        type__in=["user.tool_confirmation", "x.approval_voted"],
    ).latest("seq")


def assign_approval(
    *, actor: User, approval: Approval, user: User | None = None, role: str = ""
) -> Approval:
    """Hand it to a person or a role to be asked first; to neither: to nobody in particular.

    Who may decide does not change by that. Raises NotFound, NotWaiting, Invalid for somebody who
    could not decide.
    """
    with transaction.atomic():
        held = _held(actor, approval)
        _require_waiting(held)
        if reviews(actor, held) is False and held.conversation.owner_id != actor.pk:
            raise Forbidden(_("You may not hand this to anybody."))
        if user is not None and not may_be_asked(user, held):
            raise Invalid(
                _("This person could not decide on it."),
                field="assignee",
                hint=_("Choose a reviewer of the organisation."),
            )
        if role and role not in {str(reviewing) for reviewing in REVIEWING}:
            raise Invalid(
                _("People of this role do not decide for others."),
                field="assignee",
                hint=_("Choose reviewer, admin or owner."),
            )
        held.assignee, held.assignee_role = user, role
        held.save(update_fields=["assignee", "assignee_role"])
        about_approval(AuditEntry.Action.ASSIGNED, held, actor=actor, to=user.uid if user else role)
    return held


def note_seen(*, actor: User, approval: Approval) -> None:
    """Keep in the audit log that somebody saw the question, once for each of its rounds."""
    held = Approval.objects.visible_to(actor).filter(pk=approval.pk).first()
    if held is None:
        raise NotFound(_("There is no such approval."))
    known = AuditEntry.objects.filter(
        approval_uid=held.uid, actor=actor, action=AuditEntry.Action.SEEN, details__round=held.round
    )
    if not known.exists():
        about_approval(AuditEntry.Action.SEEN, held, actor=actor, round=held.round)


def expire_approvals(limit: int = 200) -> int:
    """Deny what nobody answered in time; how many that were.

    Each for itself: one that fails is logged, is tried again the next time, and holds up no other.
    """
    overdue = Approval.objects.overdue().order_by("expires_at").values_list("pk", flat=True)
    expired = 0
    for pk in list(overdue):
        if expired == limit:
            break
        try:
            expired += _expire_if_overdue(pk)
        except Exception:
            logger.exception("approval %s could not be expired", pk)
    return expired


def log_consents_anew() -> int:
    """Say in the log how many people agree where that is not what was told last; in how many calls.

    Rights end without a word to what waits. Each for itself: one that fails is tried again the next time.
    """
    logged = 0
    for approval in list(Approval.objects.waiting().partly_allowed()):
        try:
            logged += _is_logged_wrongly(approval) and _log_anew(approval)
        except Exception:
            logger.exception("the consents to approval %s could not be told anew", approval.pk)
    return logged


# --- checking -------------------------------------------------------------------------------------


def _locked(approval: Approval | None) -> Approval | None:
    """The row as it is now, its conversation locked first, as for every append."""
    if approval is None:
        return None
    Conversation.objects.select_for_update(no_key=True).filter(pk=approval.conversation_id).first()
    return (
        Approval.objects.select_for_update(of=("self",), no_key=True)
        .select_related("conversation", "conversation__organisation", "organisation")
        .filter(pk=approval.pk)
        .first()
    )


def _held(actor: User, approval: Approval) -> Approval:
    visible = Approval.objects.visible_to(actor).filter(pk=approval.pk).first()
    held = _locked(visible)
    if held is None:
        raise NotFound(_("There is no such approval."))
    return held


def _answered_with(held: Approval, answer: Answer) -> Approval | None:
    """The approval, if this very answer came before under its key."""
    if answer.key is None:
        return None
    known = ApprovalDecision.objects.filter(approval=held, key=answer.key).first()
    if known is None:
        return None
    if known.by_id != answer.actor.pk or known.verdict != answer.verdict:
        raise Conflict(_("This key was used for another answer."), hint=_("Use a new key."))
    return held


def _require_waiting(held: Approval) -> None:
    State = Approval.State  # noqa: N806 - a name of the model's
    if held.state in {State.APPROVED, State.DENIED}:
        raise AlreadyDecided(_("This call was decided before."))
    if held.state == State.EXPIRED:
        raise Expired(_("Time ran out before this answer came; the call was denied."))
    if held.state == State.CANCELLED or held.conversation.status == "terminated":
        raise NotWaiting(_("This call does not wait for anybody any more."))
    if _has_gone_on(held):
        raise NotWaiting(_("This call has its answer already."))


def _has_gone_on(held: Approval) -> bool:
    """Whether the call was answered or began to run without waiting for this answer."""
    call = open_call(held.conversation_id, held.call_uid)
    return call is None or call.begun


def _require_entitled(actor: User, held: Approval) -> None:
    if why := may_not_decide(actor, held):
        raise MayNotDecide(why, hint=_("Ask somebody who may; it stays in the queue."))


def _require_same_question(held: Approval, answer: Answer) -> None:
    if answer.seen_round != held.round:
        raise AskedAnew(
            _("This call was asked about anew since: %(reason)s") % {"reason": held.reason},
            hint=_("Look at the call as it is now, and answer again."),
        )
    if answer.input_hash != held.effective_sha256:
        raise InputChanged(
            _("This answer is about another input than the call has."),
            hint=_("Look at the call as it is now, and answer again."),
        )


def _require_not_her_own(held: Approval, answer: Answer) -> None:
    given = answer.edited_input
    chosen = held.effective_sha256 if given is None else input_hash(given)
    if why := may_not_allow(answer.actor, held, chosen):
        raise MayNotDecide(
            why, hint=_("You may deny the call, or allow it with what the agent asked for.")
        )


def _require_reach(held: Approval, answer: Answer) -> None:
    """Who decides because the conversation is shared with her allows nothing beyond the turn."""
    if answer.scope != "run" and not _may_settle(answer.actor, held):
        raise MayNotDecide(
            _("In a conversation of somebody else you may allow this once, or for this run."),
            hint=_("Its owner can allow it for longer."),
        )


def _may_settle(actor: User, held: Approval) -> bool:
    return actor.pk == held.conversation.owner_id or reviews(actor, held)


def _reach_by_now(held: Approval, consent: Consent) -> Scope:
    """As far as she allowed it, and could allow it by now."""
    scope = _scope(consent.decision.scope)
    if REACH.index(scope) <= REACH.index("run") or _may_settle(consent.by, held):
        return scope
    return "run" if held.turn_uid else "once"


# --- deciding -------------------------------------------------------------------------------------


def _decide(held: Approval, answer: Answer) -> None:
    given = held.effective_input if answer.edited_input is None else answer.edited_input
    chosen = input_hash(given)
    consent = ApprovalDecision.Verdict.APPROVE
    is_repeated = False
    if answer.verdict == "approve":
        earlier = ApprovalDecision.objects.filter(
            approval=held, round=held.round, by=answer.actor, verdict=consent
        )
        if held.requester_may_not_decide:
            # What she proposed herself is no consent of hers: she may still agree to something else.
            earlier = earlier.filter(Q(edited_input__isnull=True) | Q(input_sha256=chosen))
        is_repeated = earlier.exists()
        if is_repeated and agreement(held, on=chosen).persons < held.needed:
            raise AlreadyDecided(
                _("You have allowed this call; somebody else must agree."),
                hint=_("You can still deny it."),
            )
        if answer.edited_input is not None:
            _require_fit(held, given)
            _require_seen(held, given)
        if answer.scope != "once":
            _require_settleable(held, answer)
            _require_reach(held, answer)
            # Before anything is kept: a pattern that cannot be a rule's is refused.
            proposed_rule(held, given, answer.pattern)
    if not is_repeated:
        ApprovalDecision.objects.create(
            approval=held,
            round=held.round,
            by=answer.actor,
            persons=sorted(persons_behind(answer.actor)),
            verdict=answer.verdict,
            reason=answer.reason,
            # Who names what was proposed before has written nothing.
            edited_input=answer.edited_input if chosen != held.effective_sha256 else None,
            input_sha256=chosen,
            scope=answer.scope,
            pattern=answer.pattern,
            key=answer.key,
        )
    agreed = agreement(held, on=chosen)
    _write_audit(held, answer, chosen, agreed)
    if answer.verdict == "deny":
        _deny(held, answer.actor, answer.reason)
    elif answer.verdict != "not_now":
        _consent(held, answer, given, chosen, agreed)


def _consent(
    held: Approval, answer: Answer, given: dict[str, Any], chosen: str, agreed: Agreement
) -> None:
    """With enough consent to this very input let the call run; else have it go on waiting."""
    final = given if chosen != held.input_sha256 else None
    if agreed.persons < held.needed:
        propose(held, final)
        _log_consents(held, agreed, answer.actor)
        return
    # Of several people's scopes the narrowest is what all of them agreed to.
    scope = min((_reach_by_now(held, one) for one in agreed.consents), key=REACH.index)
    if scope != "once":
        # Where they covered different calls, only this very one is in all of them.
        patterns = {one.decision.pattern for one in agreed.consents}
        pattern = patterns.pop() if len(patterns) == 1 else ""
        grant_rule(
            actor=answer.actor,
            approval=held,
            agreed=agreed,
            given=given,
            scope=scope,
            pattern=pattern,
        )
    event = UserToolConfirmation(
        tool_use_id=held.call_uid,
        result="allow",
        edited_input=final,
        input_sha256=chosen,
        scope=scope,
        met=conditions_met(held, agreed),
        service_accounts=tuple(sorted(one.by.uid for one in agreed.consents if one.by.is_service)),
    )
    _confirm(held, event, answer.actor)


def _log_consents(held: Approval, agreed: Agreement, actor: User | None) -> None:
    voted = ApprovalVoted(
        tool_use_id=held.call_uid,
        allowed=agreed.persons,
        needed=held.needed,
        edited_input=held.final_input,
    )
    append(held.conversation_id, [Entry.of(voted)], actor=actor)


def _is_logged_wrongly(approval: Approval) -> bool:
    logged = Event.objects.filter(
        conversation=approval.conversation_id, subject=approval.call_uid, type="x.approval_voted"
    ).order_by("-seq")
    last = logged.first()
    return last is not None and last.payload["allowed"] != agreement(approval).persons


@transaction.atomic
def _log_anew(approval: Approval) -> bool:
    held = _locked(approval)
    if held is None or not held.is_waiting or _has_gone_on(held) or not _is_logged_wrongly(held):
        return False
    _log_consents(held, agreement(held), None)
    return True


def _scope(name: str) -> Scope:
    return next(scope for scope in REACH if scope == name)


def _deny(held: Approval, actor: User | None, reason: str, *, expired: bool = False) -> None:
    event = UserToolConfirmation(
        tool_use_id=held.call_uid, result="deny", deny_message=reason or None, expired=expired
    )
    _confirm(held, event, actor)


def _confirm(held: Approval, event: UserToolConfirmation, actor: User | None) -> None:
    """Say it in the log, which settles the approval in the same transaction, and have a run go on."""
    append(held.conversation_id, [Entry.of(event)], actor=actor)
    wake(held.conversation_id)


@transaction.atomic
def _expire_if_overdue(pk: int) -> bool:
    held = _locked(Approval.objects.filter(pk=pk).first())
    if held is None or not held.is_overdue or _has_gone_on(held):
        return False
    _expire(held)
    return True


def _expire(held: Approval) -> None:
    ApprovalDecision.objects.create(
        approval=held, round=held.round, verdict=ApprovalDecision.Verdict.DENY, reason=EXPIRED
    )
    about_approval(AuditEntry.Action.EXPIRED, held, reason=EXPIRED)
    _deny(held, None, EXPIRED, expired=True)


def _require_seen(held: Approval, given: dict[str, Any]) -> None:
    """Another input would have the call act on what nobody was shown."""
    if input_hash(given) != held.effective_sha256 and names_more(
        held.conversation.uid, held.tool, given
    ):
        raise Invalid(
            _("What this call acts on would be something else than is shown here."),
            field="edited_input",
            hint=_("Deny it, and say in the reason what the agent shall ask for."),
        )


def _require_fit(held: Approval, given: dict[str, Any]) -> None:
    """An edited input is judged like the model's own: by the schema, and by what denies."""
    kit = kit_of(held.conversation)
    tool = kit.tools.get(held.tool)
    if tool is None:
        raise Invalid(_("There is no tool of this name any more."), field="edited_input")
    try:
        check_input(tool, given)
    except InvalidToolInput as problem:
        raise Invalid(
            problem.message, field="edited_input", hint=_("Change it to fit, or deny the call.")
        ) from problem
    judgement = kit.judge(held.tool, history_of(held.conversation), arguments=given)
    if judgement.verdict is Judged.DENY:
        raise Invalid(
            judgement.reason, field="edited_input", hint=_("Change it to fit, or deny the call.")
        )
    terms = judgement.terms
    if terms is not None and (
        (terms.two_people and held.needed < 2)
        or (terms.reviewers_only and not held.reviewers_only)
        or (terms.requester_may_not_decide and not held.requester_may_not_decide)
    ):
        raise Invalid(
            _("With this input another rule asks for more: %(reason)s")
            % {"reason": judgement.reason},
            field="edited_input",
            hint=_("Deny the call and have the agent ask anew."),
        )


def _require_settleable(held: Approval, answer: Answer) -> None:
    if answer.scope == "run" and not held.turn_uid:
        raise Invalid(
            _("It is not known which run this call belongs to."),
            field="scope",
            hint=_("Choose once."),
        )
    if answer.actor.is_service and held.wants_people:
        raise Invalid(
            _("Where people are asked for, the answer of a service account holds for one call."),
            field="scope",
            hint=_("Choose once."),
        )
    if not held.may_be_settled:
        raise Invalid(
            _("The rule that asks wants an answer for each single call."),
            field="scope",
            hint=_("Choose once."),
        )


def _write_audit(held: Approval, answer: Answer, chosen: str, agreed: Agreement) -> None:
    action = {
        "approve": AuditEntry.Action.ALLOWED,
        "deny": AuditEntry.Action.DENIED,
        "not_now": AuditEntry.Action.PUT_ASIDE,
    }[answer.verdict]
    about_approval(
        action,
        held,
        actor=answer.actor,
        reason=answer.reason,
        decided_on=chosen,
        edited_input=answer.edited_input,
        scope=answer.scope,
        **({"pattern": answer.pattern} if answer.pattern else {}),
        round=held.round,
        votes=agreed.persons,
        needed=held.needed,
    )
