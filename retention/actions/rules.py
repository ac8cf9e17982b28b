"""An organisation's rule for how long it keeps conversations: saved as a dry run, put in force, lifted.

Owners and administrators may. What it deletes, `actions.deleting` does.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import Conflict, Invalid, NotFound
from retention.models import RetentionRule

LONGEST = 3_650


def save_rule(
    *, actor: User, organisation: Organisation, days: int, only_archived: bool = False
) -> RetentionRule:
    """Have it say this from now on, as a dry run, whatever it was before; the same again changes nothing.

    Raises NotFound for a stranger, Forbidden, and Invalid for days that are not 1 to `LONGEST`.
    """
    require_manager(actor, organisation)
    if not 1 <= days <= LONGEST:
        raise Invalid(
            _("Give from 1 to %(most)d days.") % {"most": LONGEST},
            field="days",
            hint=_("A year is 365 of them."),
        )
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        rule = RetentionRule.objects.filter(organisation=organisation).first()
        if rule is None:
            rule = RetentionRule(organisation=organisation, version=0)
        elif (rule.days, rule.only_archived) == (days, only_archived):
            return rule
        rule.days, rule.only_archived, rule.in_force_at = days, only_archived, None
        rule.version += 1
        rule.saved_by = actor
        rule.save()
        _tell(AuditEntry.Action.RETENTION_SAVED, actor, rule)
    return rule


def put_in_force(*, actor: User, organisation: Organisation, version: int) -> RetentionRule:
    """From a day later on it deletes. `version` is that of the rule that she looked at.

    Raises as `save_rule`, NotFound where there is no rule, and Conflict where another was saved meanwhile.
    """
    require_manager(actor, organisation)
    with transaction.atomic():
        rule = _held(organisation)
        if rule.version != version:
            raise Conflict(
                _("Somebody saved another rule meanwhile."), hint=_("Look at what it would delete.")
            )
        if rule.in_force_at is None:
            rule.in_force_at = timezone.now()
            rule.save(update_fields=["in_force_at"])
            _tell(AuditEntry.Action.RETENTION_BEGUN, actor, rule)
    return rule


def lift_rule(*, actor: User, organisation: Organisation) -> None:
    """From now on nothing is deleted by it. Raises as `put_in_force`."""
    require_manager(actor, organisation)
    with transaction.atomic():
        rule = _held(organisation)
        _tell(AuditEntry.Action.RETENTION_LIFTED, actor, rule)
        rule.delete()


def _held(organisation: Organisation) -> RetentionRule:
    rule = RetentionRule.objects.select_for_update().filter(organisation=organisation).first()
    if rule is None:
        raise NotFound(_("There is no rule."))
    return rule


def _tell(action: AuditEntry.Action, actor: User, rule: RetentionRule) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=rule.organisation_id,
        days=rule.days,
        only_archived=rule.only_archived,
    )
