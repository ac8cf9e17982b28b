"""A folder in which authors edit skills: each edit is a draft version for everybody, without a restart.

Who may write there is the operator's business; agents use drafts only where they name the channel `draft`.
What is looked at again and again are names, sizes and times; files are read when these changed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, RestrictedError

from harness.errors import AgentError, Declined

from .folder import SkillFolder
from .models import Skill, SkillVersion
from .names import SKILL
from .places import LEFT_OUT, MOST_ENTRIES, read_place
from .storing import store_version

logger = logging.getLogger(__name__)

KEPT = 20
"""Earlier drafts of a skill that stay, beside those that conversations use."""

Look = tuple[tuple[str, int, int, int, int], ...]

_seen: dict[Path, Look] = {}
"""What this process saw of each skill's folder when it last read it."""


def look_for_edits() -> None:
    """Store what changed in AGENTSITE_SKILLS_DIR since this process last looked; nothing if nothing did.

    A skill that cannot be read keeps the draft that it has, and says why.
    """
    if not settings.AGENTSITE_SKILLS_DIR:
        return
    for place in _skills_in(Path(settings.AGENTSITE_SKILLS_DIR)):
        with suppress(OSError):  # it goes away at this moment; the next look sees what is left
            look = tuple(_facts(place))
            if _seen.get(place) != look:
                _take(place)
                _seen[place] = look


def _skills_in(folder: Path) -> list[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
        return [folder / name for name in names if (folder / name / SKILL).exists()]
    return []


def _facts(folder: Path) -> Iterator[tuple[str, int, int, int, int]]:
    waiting, count = [folder], 0
    while waiting:
        place = waiting.pop()
        with os.scandir(place) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                count += 1
                if count > MOST_ENTRIES:
                    return
                if entry.name in LEFT_OUT:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                facts = entry.stat(follow_symlinks=False)
                yield (
                    entry.path, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns,
                )  # fmt: skip


def _take(place: Path) -> None:
    try:
        folder = read_place(place)
        with suppress(IntegrityError), transaction.atomic():  # another process is quicker
            _store(folder)
    except (Declined, AgentError) as problem:
        words = f"{problem.message} {getattr(problem, 'hint', '')}".strip()[:500]
        logger.warning("an edit of the skill %s is not taken: %s", place.name, words)
        Skill.objects.filter(organisation=None, name=place.name).update(edit_problem=words)


def _store(folder: SkillFolder) -> None:
    rows = Skill.objects.select_for_update(of=("self",), no_key=True).select_related("draft")
    skill = rows.filter(organisation=None, name=folder.name).first()
    if skill is None:
        skill = Skill.objects.create(name=folder.name, description=folder.description)
    if skill.draft is None or skill.draft.digest != folder.digest:
        newest = skill.versions.order_by("-number").first()
        number = newest.number + 1 if newest else 1
        label = f"{folder.manifest.version or '0'}.dev{number}"
        skill.draft = store_version(None, skill, folder, label=label)
        _clear(skill)
    skill.edit_problem = ""
    skill.save(update_fields=["draft", "edit_problem"])


def _clear(skill: Skill) -> None:
    drafts = skill.versions.filter(
        state=SkillVersion.State.DRAFT, created_by=None, label__contains=".dev"
    )
    for draft in drafts.order_by("-number")[KEPT + 1 :]:
        with suppress(ProtectedError, RestrictedError), transaction.atomic():
            draft.delete()
