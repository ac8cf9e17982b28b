"""Brings the skills we ship up to date at start-up: one whose text changed gets a further version.

They are the server's. What staff decided about them stays: a channel that they moved, a skill that they
stopped, one of their own that has the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from django.utils import timezone
from packaging.version import Version

from .folder import SkillFolder, read_folder
from .models import Skill, SkillVersion
from .storing import store_version

SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True, slots=True)
class Retired:
    """That a skill of ours goes: what takes its place, and the first day on which it is refused."""

    replacement: str
    removal_on: date


RETIRED = {"uptime-report": Retired("service-briefing", date(2027, 12, 1))}
"""Its folder stays until that day has come: agents that name it are warned before, and told why after."""


def seed_skills() -> None:
    """Idempotent; a second call with the same texts writes nothing. Needs a transaction."""
    for place in sorted(SHIPPED.iterdir()):
        if (place / "SKILL.md").is_file():
            _seed(shipped_folder(place))


def shipped_folder(place: Path) -> SkillFolder:
    files = {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    return read_folder(files, called=place.name)


def _seed(folder: SkillFolder) -> None:
    skill = Skill.objects.filter(organisation=None, name=folder.name).first()
    if skill is None:
        skill = Skill.objects.create(name=folder.name, description=folder.description, shipped=True)
    if not skill.shipped:
        return
    if not skill.versions.filter(digest=folder.digest).exists():
        _release(skill, folder)
    _deprecate(skill)


def _release(skill: Skill, folder: SkillFolder) -> None:
    before = skill.latest
    version = store_version(None, skill, folder, label=_label(skill, folder))
    version.state = SkillVersion.State.RELEASED
    version.save(update_fields=["state"])
    if skill.stable_id == (before.pk if before else None):
        skill.stable, skill.description = version, version.description
    skill.latest = version
    skill.save(update_fields=["stable", "latest", "description"])


def _deprecate(skill: Skill) -> None:
    """A day that staff set for a version of it stays."""
    retired = RETIRED.get(skill.name)
    if retired is None:
        return
    untold = skill.versions.filter(deprecated_at=None)
    if untold.exists():
        untold.update(
            deprecated_at=timezone.now(),
            replacement=retired.replacement,
            removal_on=retired.removal_on,
        )


def _label(skill: Skill, folder: SkillFolder) -> str:
    """Its own, unless an earlier text had the same."""
    wanted = folder.manifest.version or "1"
    taken = set(skill.versions.values_list("label", flat=True))
    found, number = Version(wanted), 1
    while str(found) in taken:
        found, number = Version(f"{wanted}.post{number}"), number + 1
    return str(found)
