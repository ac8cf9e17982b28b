"""Writes versions of skills and their files, and drops what no version holds any more.

Who may is asked by the actions; what a version may hold, by `folder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils.translation import gettext as _
from packaging.version import Version

from accounts.models import User
from harness.errors import Conflict, LimitReached, TooLarge
from wire.naming import one_line

from .folder import SkillFolder, sha256_of
from .models import Skill, SkillContent, SkillFile, SkillVersion

WORDS_LIMIT = 500


def store_version(
    actor: User | None, skill: Skill, folder: SkillFolder, note: str = "", *, label: str = ""
) -> SkillVersion:
    """A draft behind the newest version, for who has asked whether the actor may; None: nobody, it is ours.

    Raises Conflict for a label that is taken, TooLarge and LimitReached.
    """
    newest = skill.versions.order_by("-number").first()
    number = newest.number + 1 if newest else 1
    if skill.versions.count() >= settings.AGENTSITE_SKILL_VERSIONS:
        raise LimitReached(
            _("The skill has %(most)d versions already.")
            % {"most": settings.AGENTSITE_SKILL_VERSIONS},
            hint=_("Make another skill."),
        )
    _require_room(skill, folder.size)
    label = label or folder.manifest.version or str(Version(str(number)))
    if skill.versions.filter(label=label).exists():
        raise Conflict(
            _("There is a version %(version)s already.") % {"version": label},
            hint=_("Count up the version in agentsite.yaml."),
        )
    note = one_line(note)
    if len(note) > WORDS_LIMIT:
        raise TooLarge(
            _("The text is longer than %(limit)d characters.") % {"limit": WORDS_LIMIT},
            field="note",
            hint=_("Shorten it."),
        )
    version = SkillVersion.objects.create(
        skill=skill,
        number=number,
        label=label,
        digest=folder.digest,
        description=folder.description,
        front=dict(folder.front),
        requires=list(folder.manifest.requires),
        exposes=folder.manifest.exposes.model_dump(mode="json") if folder.manifest.tools else {},
        python=folder.python.model_dump() if folder.python.packages else {},
        warnings=list(folder.warnings),
        size=folder.size,
        note=note,
        created_by=actor,
    )
    _keep({sha256_of(data): data for data in folder.files.values()})
    SkillFile.objects.bulk_create(
        SkillFile(version=version, path=path, size=len(data), content_id=sha256_of(data))
        for path, data in sorted(folder.files.items())
    )
    return version


def _require_room(skill: Skill, size: int) -> None:
    if skill.organisation_id is None:
        return
    held = SkillVersion.objects.filter(skill__organisation=skill.organisation_id)
    total = held.aggregate(total=Sum("size"))["total"] or 0
    if total + size > settings.AGENTSITE_SKILLS_BYTES:
        raise LimitReached(
            _("The skills of an organisation hold %(most)d bytes at most.")
            % {"most": settings.AGENTSITE_SKILLS_BYTES},
            hint=_("Delete skills that nobody uses."),
        )


def _keep(contents: Mapping[str, bytes]) -> None:
    """Stored, and held until the transaction ends: nobody drops them before they are used."""
    while True:
        SkillContent.objects.bulk_create(
            [
                SkillContent(sha256=digest, content=data)
                for digest, data in sorted(contents.items())
            ],
            ignore_conflicts=True,
        )
        rows = SkillContent.objects.select_for_update(no_key=True).filter(pk__in=contents)
        if len(rows.order_by("pk").values_list("pk", flat=True)) == len(contents):
            return


def drop_unused(contents: set[str]) -> None:
    """What no version holds any more; what somebody takes up again at this moment stays."""
    with suppress(IntegrityError), transaction.atomic():
        still = SkillFile.objects.filter(content__in=contents).values_list("content_id", flat=True)
        SkillContent.objects.filter(pk__in=contents - set(still)).delete()
