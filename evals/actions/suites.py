"""Suites and their cases come into being, are changed and imported. How suites go is `deleting`'s.

What was tried stays with its evaluations: a change of a case is for those that begin from now on.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.persons import hold_names
from agents.seeding import digest
from audit.models import AuditEntry
from evals.access import held_suite, require_suites_of
from evals.auditing import about_suite
from evals.checks.spec import CaseSpec, SuiteSpec
from evals.models import Case, Suite
from harness.errors import Conflict, Invalid, LimitReached, NotFound
from wire.naming import named

MOST_SUITES = 500
"""Of one organisation."""
MOST_CASES = 2_000
"""Of one suite."""
DESCRIPTION = 2_000


def create_suite(
    *, actor: User, organisation: Organisation, name: str, description: str = ""
) -> Suite:
    """Raises NotFound for a stranger, Forbidden, Invalid for the name, Conflict for one that is taken,
    LimitReached."""
    require_suites_of(actor, organisation)
    name, description = _named(name, description)
    with transaction.atomic():
        hold_names(organisation)
        _require_free(organisation, name)
        if Suite.objects.filter(organisation=organisation).count() >= MOST_SUITES:
            raise LimitReached(
                _("There are %(limit)d suites here already.") % {"limit": MOST_SUITES},
                hint=_("Delete one first."),
            )
        suite = Suite.objects.create(
            organisation=organisation, name=name, description=description, created_by=actor
        )
        about_suite(AuditEntry.Action.SUITE_MADE, actor, suite)
    return suite


def change_suite(
    *,
    actor: User,
    suite: Suite,
    name: str,
    description: str = "",
    judge_provider: str = "",
    judge_model: str = "",
    judges: int = 1,
) -> Suite:
    """Raises as `create_suite`, and Invalid for another number of judges than one or two."""
    name, description = _named(name, description)
    if judges not in {1, 2}:
        raise Invalid(_("One judge is asked, or two."), field="judges", hint=_("Give 1 or 2."))
    with transaction.atomic():
        hold_names(suite.organisation)
        held = held_suite(actor, suite)
        if name != held.name:
            _require_free(held.organisation, name)
        held.name, held.description = name, description
        held.judge_provider = judge_provider.strip()[:50]
        held.judge_model = judge_model.strip()[:100]
        held.judges = judges
        held.save()
        about_suite(AuditEntry.Action.SUITE_CHANGED, actor, held)
    return held


def save_case(
    *, actor: User, suite: Suite, spec: CaseSpec, case: Case | None = None, source: str = ""
) -> Case:
    """Make a case, or make `case` say this from now on. `source` is the conversation it was made of.

    Raises NotFound, Forbidden, Conflict for a name that another case has, LimitReached.
    """
    with transaction.atomic():
        held = held_suite(actor, suite)
        saved = _save(held, spec, actor, case=case, source=source)
        about_suite(AuditEntry.Action.SUITE_CHANGED, actor, held, case=spec.name)
    return saved


def delete_case(*, actor: User, case: Case) -> None:
    """Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_suite(actor, case.suite)
        about_suite(AuditEntry.Action.SUITE_CHANGED, actor, held, case_deleted=case.name)
        Case.objects.filter(pk=case.pk).delete()


def import_suite(*, actor: User, organisation: Organisation, spec: SuiteSpec) -> Suite:
    """Make the suite of this name what the file says: cases that it does not name go, those that say the
    same stay as they are. Raises as `create_suite`."""
    require_suites_of(actor, organisation)
    with transaction.atomic():
        hold_names(organisation)
        suite = Suite.objects.filter(organisation=organisation, name=spec.name.strip()).first()
        if suite is None:
            suite = create_suite(
                actor=actor,
                organisation=organisation,
                name=spec.name,
                description=spec.description,
            )
        held = held_suite(actor, suite)
        known = {case.name: case for case in held.cases.all()}
        for each in spec.cases:
            _save(held, each, actor, case=known.pop(each.name, None))
        Case.objects.filter(pk__in=[case.pk for case in known.values()]).delete()
        held.description = spec.description
        held.save(update_fields=["description", "updated_at"])
        about_suite(AuditEntry.Action.SUITE_CHANGED, actor, held, imported=len(spec.cases))
    return held


def spec_of(suite: Suite) -> SuiteSpec:
    """The suite as a file says it."""
    cases: Iterable[Case] = suite.cases.order_by("id")
    return SuiteSpec(
        name=suite.name,
        description=suite.description,
        cases=tuple(case.spec for case in cases),
    )


def digest_of(spec: CaseSpec) -> str:
    return digest(_stored(spec))


def _stored(spec: CaseSpec) -> dict[str, object]:
    stored: dict[str, object] = spec.model_dump(mode="json", by_alias=True)
    return stored


def _save(
    suite: Suite, spec: CaseSpec, actor: User, *, case: Case | None, source: str = ""
) -> Case:
    if case is not None and case.suite_id != suite.pk:
        raise NotFound(_("There is no such case."))
    others = suite.cases.all() if case is None else suite.cases.exclude(pk=case.pk)
    if others.filter(name=spec.name).exists():
        raise Conflict(
            _("Another case of this suite is called “%(name)s”.") % {"name": spec.name},
            hint=_("Give it another name."),
        )
    fresh = digest_of(spec)
    if case is not None and case.digest == fresh:
        return case
    if case is None:
        if suite.cases.count() >= MOST_CASES:
            raise LimitReached(
                _("A suite has at most %(limit)d cases.") % {"limit": MOST_CASES},
                hint=_("Make another suite."),
            )
        case = Case(suite=suite, created_by=actor, source_uid=source)
    case.name, case.stored_spec, case.digest = spec.name, _stored(spec), fresh
    case.save()
    return case


def _named(name: str, description: str) -> tuple[str, str]:
    name, description = named(name, description, missing=_("A suite needs a name."))
    return name, description[:DESCRIPTION]


def _require_free(organisation: Organisation, name: str) -> None:
    if Suite.objects.filter(organisation=organisation, name=name).exists():
        raise Conflict(
            _("There is a suite “%(name)s” already.") % {"name": name},
            hint=_("Give it another name, or change that one."),
        )
