"""A store's rule for how memories in it fade: saved as a dry run, put in force, lifted.

Whoever writes in the store may: its owner, and of what is shared who manages it. What it does,
`actions.passes` does.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from decay.models import DecayRule, Step
from harness.errors import Conflict, Invalid, NotFound
from memory.access import Author, author_of, held_store, require_in_force
from memory.auditing import about_store
from memory.models import MemoryStore

LONGEST = 3_650
FIELDS = {Step.SUMMARY: "summary_days", Step.MARKER: "marker_days", Step.GONE: "gone_days"}


def save_rule(
    *,
    actor: User,
    store: MemoryStore,
    days: Mapping[Step, int | None],
    also_unconfirmed: bool = False,
) -> DecayRule:
    """Have it say this from now on, as a dry run, whatever it was before; the same again changes nothing.
    A step without days is left out.

    Raises NotFound, Forbidden, Conflict for an archived store, and Invalid for days that are not 1 to
    `LONGEST`, each later than the step before, and where there is no step at all.
    """
    given = {step: number for step, number in days.items() if number is not None}
    _check(given)
    with transaction.atomic():
        held = held_store(actor, store)
        require_in_force(held)
        rule = DecayRule.objects.filter(store=held).first()
        if rule is None:
            rule = DecayRule(store=held, version=0)
        elif (rule.days, rule.also_unconfirmed) == (given, also_unconfirmed):
            return rule
        for step, name in FIELDS.items():
            setattr(rule, name, given.get(step))
        rule.also_unconfirmed, rule.in_force_at = also_unconfirmed, None
        rule.version += 1
        rule.saved_by = actor
        rule.save()
        _tell(AuditEntry.Action.DECAY_SAVED, actor, rule)
    return rule


def put_in_force(
    *, actor: User, store: MemoryStore, version: int, author: Author | None = None
) -> DecayRule:
    """From a day later on memories fade. `version` is that of the rule that she looked at.

    Raises as `save_rule`, NotFound where there is no rule, and Conflict where another was saved meanwhile.
    """
    with transaction.atomic():
        rule = _held(actor, store)
        require_in_force(rule.store)
        if rule.version != version:
            raise Conflict(
                _("Somebody saved another rule meanwhile."), hint=_("Look at what it would do.")
            )
        if rule.in_force_at is None:
            by = author or author_of(actor)
            rule.in_force_at = timezone.now()
            rule.begun_kind, rule.begun_uid = by.kind, by.uid
            rule.save(update_fields=["in_force_at", "begun_kind", "begun_uid"])
            _tell(AuditEntry.Action.DECAY_BEGUN, actor, rule)
    return rule


def lift_rule(*, actor: User, store: MemoryStore) -> None:
    """From now on nothing fades by it; what has faded stays so. Raises NotFound, Forbidden."""
    with transaction.atomic():
        rule = _held(actor, store)
        _tell(AuditEntry.Action.DECAY_LIFTED, actor, rule)
        rule.delete()


def _check(days: Mapping[Step, int]) -> None:
    if not days:
        raise Invalid(
            _("It has no step."), field="summary_days", hint=_("Give days for one at least.")
        )
    before = 0
    for step, number in sorted(days.items()):
        if not 1 <= number <= LONGEST:
            raise Invalid(
                _("Give from 1 to %(most)d days.") % {"most": LONGEST},
                field=FIELDS[step],
                hint=_("A year is 365 of them."),
            )
        if number <= before:
            raise Invalid(
                _("It is not later than the step before."),
                field=FIELDS[step],
                hint=_("Give more days, or leave the step out."),
            )
        before = number


def _held(actor: User, store: MemoryStore) -> DecayRule:
    held = held_store(actor, store)
    rule = DecayRule.objects.filter(store=held).select_related("store__organisation").first()
    if rule is None:
        raise NotFound(_("There is no rule."))
    return rule


def _tell(action: AuditEntry.Action, actor: User, rule: DecayRule) -> None:
    days = {FIELDS[step]: number for step, number in rule.days.items()}
    about_store(action, actor, rule.store, **days, also_unconfirmed=rule.also_unconfirmed)
