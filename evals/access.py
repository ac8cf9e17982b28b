"""The first step of every action on suites: may the actor do this there? A stranger finds nothing."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_manager
from accounts.staff import has_staff_permission
from harness.errors import NotFound

from .models import CHANGE_ANY, Evaluation, Suite


def require_suites_of(actor: User, organisation: Organisation) -> None:
    """Pass owners and administrators of it, and staff with the permission."""
    if not has_staff_permission(actor, CHANGE_ANY):
        require_manager(actor, organisation)


def held_suite(actor: User, suite: Suite) -> Suite:
    """The row as it is now, locked. Needs a transaction. NotFound, Forbidden."""
    rows = Suite.objects.filter(pk__in=Suite.objects.visible_to(actor).values("pk"))
    held = rows.select_for_update(of=("self",)).select_related("organisation").filter(pk=suite.pk)
    found = held.first()
    if found is None:
        raise NotFound(_("There is no such suite."))
    require_suites_of(actor, found.organisation)
    return found


def held_evaluation(actor: User, evaluation: Evaluation) -> Evaluation:
    """The same of one of its evaluations."""
    seen = Evaluation.objects.visible_to(actor).values("pk")
    held = Evaluation.objects.filter(pk__in=seen).select_for_update(of=("self",))
    rows = held.select_related("suite__organisation", "agent_version__agent", "root")
    found = rows.filter(pk=evaluation.pk).first()
    if found is None:
        raise NotFound(_("There is no such evaluation."))
    require_suites_of(actor, found.suite.organisation)
    return found
