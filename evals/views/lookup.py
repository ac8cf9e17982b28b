"""What the addresses of evals name, for the person who asks. Somebody else's does not exist."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent, AgentVersion
from evals.models import Case, Evaluation, Suite
from harness.errors import Invalid, NotFound


def find_suite(user: User, uid: str) -> Suite:
    rows = Suite.objects.visible_to(user).select_related("organisation")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such suite."))
    return found


def find_case(user: User, suite_uid: str, uid: str) -> Case:
    suite = find_suite(user, suite_uid)
    found = suite.cases.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such case."))
    found.suite = suite
    return found


def find_evaluation(user: User, uid: str) -> Evaluation:
    rows = Evaluation.objects.visible_to(user).select_related(
        "suite__organisation", "agent_version__agent__current", "environment", "started_by", "root"
    )
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such evaluation."))
    return found


def find_version(user: User, agent: Agent, number: int | None) -> AgentVersion:
    """Of that number, or the newest that the person may see. Invalid naming those there are."""
    seen = AgentVersion.objects.visible_to(user).filter(agent=agent).order_by("-number")
    found = seen.first() if number is None else seen.filter(number=number).first()
    if found is None:
        there = ", ".join(str(each) for each in seen.values_list("number", flat=True)[:20])
        raise Invalid(
            _("%(agent)s has no such version.") % {"agent": agent.name},
            field="version",
            hint=_("There are: %(numbers)s.") % {"numbers": there},
        )
    return found
