"""The library as a person sees it: which skills, in which order, and what a page tells of each."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from accounts.models import Organisation, User

from .access import manages
from .models import Skill, SkillVersion
from .packages import Packages, missing_of

SCOPES = ("own", "organisation", "server")
LONGEST_QUERY = 200
MOST_LOOKED_AT = 500
"""Versions with Python packages, the newest ones."""


def listed(
    user: User, organisation: Organisation, *, query: str = "", scope: str = ""
) -> QuerySet[Skill]:
    """Those that she sees and that work for this organisation may use, by name. Each word of the query
    stands in the name, the title or the description."""
    rows = Skill.objects.visible_to(user).usable_in(organisation, user)
    if scope == "own":
        rows = rows.filter(owner=user)
    elif scope == "organisation":
        rows = rows.filter(organisation=organisation, owner__isnull=True)
    elif scope == "server":
        rows = rows.filter(organisation__isnull=True)
    for word in query.replace("\0", "")[:LONGEST_QUERY].split():
        rows = rows.filter(
            Q(name__icontains=word) | Q(title__icontains=word) | Q(description__icontains=word)
        )
    return rows.select_related("stable", "latest", "canary", "organisation", "owner").order_by(
        "name", "pk"
    )


def waiting_for(user: User) -> QuerySet[SkillVersion]:
    """Versions that wait for a review, as far as she sees them."""
    rows = SkillVersion.objects.visible_to(user).filter(state=SkillVersion.State.WAITING)
    return rows.select_related("skill__organisation", "created_by", "asked_by").order_by("asked_at")


def lacking_packages(user: User) -> list[tuple[SkillVersion, Packages]]:
    """Versions that are or may be used without what their Python files need, as far as she manages them."""
    states = (SkillVersion.State.WAITING, SkillVersion.State.RELEASED)
    rows = SkillVersion.objects.visible_to(user).filter(state__in=states).exclude(python={})
    rows = rows.select_related("skill__organisation", "skill__owner").order_by("-pk")
    known: dict[tuple[int | None, int | None], bool] = {}
    found = []
    for each, packages in missing_of(rows[:MOST_LOOKED_AT]):
        place = each.skill.organisation_id, each.skill.owner_id
        if place not in known:
            known[place] = manages(user, each.skill)
        if known[place]:
            found.append((each, packages))
    return found


def names_beside(skill: Skill) -> list[str]:
    """Of the skills that could be taken for it where it is used; its own is none of them."""
    rows = Skill.objects.filter(owner=None)
    if skill.organisation is not None:
        rows = rows.usable_in(skill.organisation, None)
    return list(rows.exclude(pk=skill.pk).values_list("name", flat=True))
