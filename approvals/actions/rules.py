"""Rules for tools above and below an agent's own: who may make which, and take it back.

Staff with the permission make those of the server and of shared agents; who manages an organisation
makes its own; a person may tighten her own conversations. What is allowed for longer than one call
comes from an approval (`grants`).
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, User
from accounts.staff import has_staff_permission
from agents.models import Agent
from approvals.auditing import about_rule
from approvals.models import PolicyRule
from approvals.models.policyrule import CHANGE_RULES
from audit.models import AuditEntry
from conversations.actions.own import own_even_ended
from conversations.ancestry import ancestors
from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from harness.modelfaults import read_as

Scope = PolicyRule.Scope
NOTE_LIMIT = 500
MOST_RULES = 1_000
"""Active rules of one organisation, of the server, or of one conversation, beside what approvals saved."""


def save_rule(
    *,
    actor: User,
    level: str,
    rule: dict[str, Any],
    organisation: Organisation | None = None,
    agent: Agent | None = None,
    conversation: Conversation | None = None,
    note: str = "",
) -> PolicyRule:
    """Add a rule at a level; it counts from the next judgement on, also in runs under way.

    `rule` has the form of `harness.agentconfig.ToolRule`; unknown keys are refused. `level` is
    deployment, organisation (needs `organisation`), agent (needs `agent`; with `organisation` only
    there) or conversation (needs `conversation`, may only ask or deny). Raises Invalid naming the
    field, NotFound for what the actor may not see, Forbidden for a level she may not rule.
    """
    value = _checked(rule)
    if len(note) > NOTE_LIMIT:
        raise TooLarge(
            _("The note is longer than %(limit)d characters.") % {"limit": NOTE_LIMIT}, field="note"
        )
    scope = _scope(level)
    place = _place(actor, scope, value, organisation, agent, conversation)
    _require_accounts(value, place.get("organisation"))
    _require_person(value, place.get("organisation"))
    with transaction.atomic():
        # Permissions that people gave with answers do not count: nobody's leave others no room.
        if PolicyRule.objects.active().filter(**place, grant__isnull=True).count() >= MOST_RULES:
            raise Conflict(
                _("There are %(limit)d rules here already.") % {"limit": MOST_RULES},
                hint=_("Revoke some, or use one pattern for several."),
            )
        saved = PolicyRule.objects.create(
            **place,
            tool=value.tool,
            when=None if value.when is None else value.when.model_dump(exclude_none=True),
            permission=value.permission,
            options=value.options.model_dump(exclude_defaults=True),
            note=note.replace("\0", ""),
            made_by=actor,
        )
        about_rule(
            AuditEntry.Action.RULE_SAVED,
            saved,
            actor=actor,
            organisation=saved.organisation,
            reason=saved.note,
            options=saved.options,
        )
    return saved


_COPIED = ("scope", "tool", "when", "permission", "options")


def take_rules_along(actor: User, origin: Conversation, fork: Conversation) -> None:
    """A fork begins with what asks or denies in the conversation that it is of, and in those above, which
    are not above the fork; what was allowed there was allowed there alone. The copies are the actor's, as if
    she had made them in a conversation of her own. Whether she may fork it was asked before
    (`conversations.goingalong`)."""
    held = PolicyRule.objects.active().filter(
        scope=Scope.CONVERSATION, conversation__in=[origin.pk, *ancestors(origin)]
    )
    for rule in held.exclude(permission=PolicyRule.Permission.ALLOW).order_by("pk"):
        copied = PolicyRule.objects.create(
            conversation=fork,
            organisation_id=fork.organisation_id,
            made_by=actor,
            # Whoever only reads it was never told why.
            note=rule.note if origin.owner_id == actor.pk else "",
            **{name: getattr(rule, name) for name in _COPIED},
        )
        about_rule(
            AuditEntry.Action.RULE_SAVED,
            copied,
            actor=actor,
            organisation=fork.organisation,
            reason=copied.note,
            options=copied.options,
            copy_of=rule.uid,
        )


def revoke_rule(*, actor: User, rule: PolicyRule, reason: str = "") -> PolicyRule:
    """Take a rule back; what runs is judged without it from then on.

    Raises NotFound for a rule the actor may not see, Forbidden for one she may not take back,
    Conflict when it was revoked before.
    """
    with transaction.atomic():
        held = (
            PolicyRule.objects.visible_to(actor)
            .filter(pk__in=PolicyRule.objects.select_for_update().filter(pk=rule.pk))
            .first()
        )
        if held is None:
            raise NotFound(_("There is no such rule."))
        if not may_revoke(actor, held):
            raise Forbidden(
                _("This rule is not yours to revoke."),
                hint=_("Ask an administrator of the organisation."),
            )
        if held.revoked_at is not None:
            raise Conflict(_("This rule was revoked before."))
        held.revoked_at, held.revoked_by = timezone.now(), actor
        held.save(update_fields=["revoked_at", "revoked_by"])
        about_rule(
            AuditEntry.Action.RULE_REVOKED,
            held,
            actor=actor,
            organisation=held.organisation,
            reason=reason.replace("\0", "")[:NOTE_LIMIT],
        )
    return held


def may_revoke(actor: User, rule: PolicyRule) -> bool:
    """What only allows, the person it was allowed for may take back, and who allowed it; what asks or
    denies, only who could make it."""
    if has_staff_permission(actor, CHANGE_RULES):
        return True
    if rule.organisation is not None and _manages(actor, rule.organisation):
        return True
    own = rule.conversation is not None and rule.conversation.owner_id == actor.pk
    if rule.permission == PolicyRule.Permission.ALLOW:
        return own or actor.pk in {rule.for_user_id, rule.made_by_id}
    return own and rule.made_by_id == actor.pk


def _checked(rule: dict[str, Any]) -> ToolRule:
    return read_as(rule, ToolRule, at="rule")


def _scope(level: str) -> PolicyRule.Scope:
    levels = [Scope.DEPLOYMENT, Scope.ORGANISATION, Scope.AGENT, Scope.CONVERSATION]
    for scope in levels:
        if scope.value == level:
            return scope
    raise Invalid(
        _("There is no level “%(level)s”.") % {"level": str(level)[:40]},
        field="level",
        hint=_("Choose from: %(levels)s.") % {"levels": ", ".join(s.value for s in levels)},
    )


def _place(
    actor: User,
    scope: PolicyRule.Scope,
    rule: ToolRule,
    organisation: Organisation | None,
    agent: Agent | None,
    conversation: Conversation | None,
) -> dict[str, Any]:
    """The columns that say where the rule holds; raises for a place that is not the actor's."""
    staff = has_staff_permission(actor, CHANGE_RULES)
    seen = Organisation.objects.visible_to(actor)
    if organisation and not staff and not seen.filter(pk=organisation.pk).exists():
        raise NotFound(_("There is no such organisation."))
    match scope:
        case Scope.DEPLOYMENT:
            if not staff:
                raise Forbidden(_("Only staff make rules for the whole server."))
            return {"scope": scope}
        case Scope.ORGANISATION:
            if organisation is None:
                raise Invalid(_("Which organisation?"), field="organisation")
            _require_managing(actor, organisation, staff=staff)
            return {"scope": scope, "organisation": organisation}
        case Scope.AGENT:
            if agent is None:
                raise Invalid(_("Which agent?"), field="agent")
            if not staff and not Agent.objects.visible_to(actor).filter(pk=agent.pk).exists():
                raise NotFound(_("There is no such agent."))
            where = organisation or agent.organisation
            if where is None:
                if not staff:
                    raise Forbidden(
                        _("Only staff make rules for an agent of the whole server."),
                        hint=_("Name an organisation to rule it there."),
                    )
            else:
                _require_managing(actor, where, staff=staff)
            return {"scope": scope, "agent": agent, "organisation": where}
        case _:
            return _in_conversation(actor, rule, conversation)


def _in_conversation(
    actor: User, rule: ToolRule, conversation: Conversation | None
) -> dict[str, Any]:
    if conversation is None:
        raise Invalid(_("Which conversation?"), field="conversation")
    own = own_even_ended(actor, conversation)
    if rule.permission == "always_allow":
        raise Invalid(
            _("In a conversation a rule may only ask or deny."),
            field="rule.permission",
            hint=_("To allow calls for longer, say so where one of them asks."),
        )
    return {"scope": Scope.CONVERSATION, "conversation": own, "organisation": own.organisation}


def _require_accounts(rule: ToolRule, organisation: Organisation | None) -> None:
    """What the rule names are service accounts that could answer where it holds."""
    for uid in rule.options.service_accounts:
        found = User.objects.filter(uid=uid, kind=User.Kind.SERVICE, is_active=True)
        if organisation is not None:
            found = found.filter(memberships__organisation=organisation)
        if not found.exists():
            raise Invalid(
                _("There is no service account “%(uid)s” here.") % {"uid": uid[:40]},
                field="rule.options.service_accounts",
                hint=_("Name those of the organisation by their ids, or leave them out."),
            )


def _require_person(rule: ToolRule, organisation: Organisation | None) -> None:
    """Who is to be asked first is a person who is known where the rule holds."""
    kind, _colon, uid = rule.options.ask_first.partition(":")
    if kind != "person":
        return
    found = User.objects.filter(uid=uid, kind=User.Kind.PERSON, is_active=True)
    if organisation is not None:
        found = found.filter(memberships__organisation=organisation)
    if not found.exists():
        raise Invalid(
            _("There is no person “%(uid)s” here.") % {"uid": uid[:40]},
            field="rule.options.ask_first",
            hint=_("Name a member of the organisation by her id, or a role."),
        )


def _manages(actor: User, organisation: Organisation) -> bool:
    role = Membership.objects.role_in(organisation, actor)
    return role is not None and role.manages


def _require_managing(actor: User, organisation: Organisation, *, staff: bool) -> None:
    if not staff and not _manages(actor, organisation):
        raise Forbidden(_("Only who manages the organisation makes rules for it."))
