"""A member's own agent is offered to her organisation after somebody else looked at it.

Owners and administrators decide, and staff who may change agents; nobody about what she asked for
herself where the organisation has another person who can.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Membership, User
from accounts.permissions import may_manage
from accounts.persons import MANAGING, persons_behind
from accounts.staff import has_staff_permission
from agents.actions.agents import announce_agent, record_agent
from agents.actions.own import lock_own_agent, next_bound
from agents.holding import objection_to
from agents.models import Agent, AgentReview
from agents.models.review import DECIDE_ANY
from agents.narrowing import require_within
from audit import record as audit
from harness.errors import AlreadyDecided, Conflict, Forbidden, Invalid, MayNotDecide, NotFound
from wire.naming import one_line

WORDS_LIMIT = 500
"""Characters of a note and of a reason."""


def ask_for_review(*, actor: User, agent: Agent, note: str = "") -> AgentReview:
    """Ask that the organisation be offered the newest version of the actor's own agent. An earlier
    question about this agent that still waits is withdrawn.

    Raises NotFound, Forbidden for another's agent, Conflict for one that is archived or has nothing new,
    and Invalid for too long a note.
    """
    note = _words(note, "note")
    with transaction.atomic():
        held = lock_own_agent(actor, agent)
        newest = held.newest
        if held.archived_at is not None:
            raise Conflict(_("This agent is archived."), hint=_("Offer it again first."))
        if newest is None or not newest.draft:
            raise Conflict(
                _("The organisation is offered the newest version already."),
                hint=_("Change the agent first."),
            )
        for earlier in AgentReview.objects.waiting().filter(agent=held):
            _end(earlier, AgentReview.State.WITHDRAWN, actor)
        review = AgentReview.objects.create(
            agent=held,
            version=newest,
            shared_version=None if held.private else held.current,
            name=held.name,
            description=held.description,
            note=note,
            asked_by=actor,
        )
        record_agent(
            audit.Action.REVIEW_ASKED, held, actor, review=review.uid, version=newest.number
        )
    return review


def withdraw_review(*, actor: User, review: AgentReview) -> AgentReview:
    """Take back what one asked for. Raises NotFound, Forbidden for another's, AlreadyDecided."""
    with transaction.atomic():
        held = _lock(actor, review)
        if held.asked_by_id != actor.pk:
            raise Forbidden(_("Somebody else asked for this review."))
        _end(held, AgentReview.State.WITHDRAWN, actor)
        record_agent(
            audit.Action.REVIEW_WITHDRAWN,
            held.agent,
            actor,
            review=held.uid,
            version=held.version.number,
        )
    return held


def decide_review(
    *, actor: User, review: AgentReview, approve: bool, reason: str = ""
) -> AgentReview:
    """Offer the version to the organisation from now on, or say why not.

    Raises NotFound, Forbidden for who does not manage the organisation, MayNotDecide for who asked
    herself, AlreadyDecided, Invalid for a refusal without a reason, and Conflict where what was asked for
    is no longer what it was: another name, an archived agent, or a base that allows less by now.
    """
    reason = _words(reason, "reason")
    with transaction.atomic():
        held = _lock(actor, review)
        refusal = why_not(actor, held)
        if refusal is not None:
            raise refusal
        if approve:
            _release(held)
        elif not reason:
            raise Invalid(
                _("A refusal needs a reason."),
                field="reason",
                hint=_("Say what to change; the person who asked reads it."),
            )
        first = held.agent.private
        state = AgentReview.State.APPROVED if approve else AgentReview.State.REFUSED
        _end(held, state, actor, reason)
        action = audit.Action.REVIEW_APPROVED if approve else audit.Action.REVIEW_REFUSED
        details = {"review": held.uid, "version": held.version.number, "reason": reason}
        record_agent(action, held.agent, actor, **details)
        if approve:
            Agent.objects.filter(pk=held.agent_id).update(
                private=False, current=held.version, updated_at=timezone.now()
            )
            held.agent.private = False
            announce_agent(held.agent, "agent.created" if first else "agent.updated")
    return held


def why_not(actor: User, review: AgentReview) -> Forbidden | None:
    """What keeps the actor from deciding; None: nothing."""
    organisation = review.agent.organisation
    manages = organisation is not None and may_manage(actor, organisation)
    if not manages and not has_staff_permission(actor, DECIDE_ANY):
        return Forbidden(
            _("Only owners and administrators may do this."), hint=_("Ask one of them.")
        )
    if actor.is_service:
        return MayNotDecide(_("A person reviews agents."), hint=_("Ask one who manages."))
    asker = review.asked_by
    if asker is None or actor.pk not in persons_behind(asker):
        return None
    others = Membership.objects.filter(
        organisation=organisation,
        role__in=MANAGING,
        user__is_active=True,
        user__kind=User.Kind.PERSON,
    ).exclude(user=actor)
    if not asker.is_service:
        others = others.exclude(user=asker)
    if not others.exists():
        return None
    return MayNotDecide(
        _("You asked for this yourself."),
        hint=_("Another owner or administrator decides: %(names)s.")
        % {"names": ", ".join(str(each.user) for each in others.select_related("user")[:5])},
    )


def _release(review: AgentReview) -> None:
    agent, version = review.agent, review.version
    if agent.archived_at is not None:
        raise Conflict(_("This agent is archived."), hint=_("Refuse it, saying so."))
    if (agent.name, agent.description) != (review.name, review.description):
        raise Conflict(
            _("The agent has another name or description by now."),
            hint=_("Refuse it, and have it asked for again."),
        )
    try:
        require_within(version.config, next_bound(version).config)
    except Invalid as problem:
        raise Conflict(
            _("The agent it is based on allows less by now."),
            hint=_("Refuse it, and have it saved and asked for again."),
        ) from problem
    if why := objection_to(version):
        raise Conflict(why, hint=_("Try its suites, or refuse it, saying so."))
    version.draft = False
    version.save(update_fields=["draft"])


def _lock(actor: User, review: AgentReview) -> AgentReview:
    """As it is now, with its agent: whoever changes one of them comes before or after."""
    seen = AgentReview.objects.visible_to(actor).filter(pk=review.pk).first()
    if seen is None:
        raise NotFound(_("There is no such review."))
    Agent.objects.select_for_update(of=("self",)).filter(pk=seen.agent_id).first()
    rows = AgentReview.objects.select_for_update(of=("self",)).filter(pk=seen.pk)
    held = rows.select_related(
        "agent__organisation", "agent__current", "version__base__agent__current", "asked_by"
    ).get()
    if held.state != AgentReview.State.WAITING:
        raise AlreadyDecided(
            _("This was decided already: %(state)s.") % {"state": held.get_state_display()}
        )
    return held


def _end(review: AgentReview, state: AgentReview.State, actor: User, reason: str = "") -> None:
    review.state, review.reason = state, reason
    review.decided_by, review.decided_at = actor, timezone.now()
    review.save(update_fields=["state", "reason", "decided_by", "decided_at"])


def _words(text: str, field: str) -> str:
    text = one_line(text)
    if len(text) > WORDS_LIMIT:
        raise Invalid(
            _("The text is longer than %(limit)d characters.") % {"limit": WORDS_LIMIT},
            field=field,
            hint=_("Shorten it."),
        )
    return text
