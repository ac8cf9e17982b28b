"""Finds what a page is about. Somebody else's is *not found*."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.requests import SignedInRequest
from harness.errors import NotFound
from skills_app.models import Skill, SkillVersion


def find_skill(request: SignedInRequest, uid: str) -> Skill:
    rows = Skill.objects.visible_to(request.user).filter(uid=uid)
    found = rows.select_related("organisation", "owner", "stable", "canary", "latest").first()
    if found is None:
        raise NotFound(_("There is no such skill."))
    return found


def find_version(request: SignedInRequest, uid: str, label: str) -> SkillVersion:
    skill = find_skill(request, uid)
    rows = SkillVersion.objects.visible_to(request.user).filter(skill=skill, label=label)
    found = rows.select_related(
        "skill__organisation", "skill__owner", "created_by", "asked_by"
    ).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    return found
