"""Brings the skills we ship up to date at start-up: one whose text changed gets a further version.

They are the server's. What staff decided about them stays: a channel that they moved, a skill that they
stopped, one of their own that has the name.
"""

from __future__ import annotations

from pathlib import Path

from packaging.version import Version

from .folder import SkillFolder, read_folder
from .models import Skill, SkillVersion
from .storing import store_version

SHIPPED = Path(__file__).parent / "shipped"


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
    if not skill.shipped or skill.versions.filter(digest=folder.digest).exists():
        return
    before = skill.latest
    version = store_version(None, skill, folder, label=_label(skill, folder))
    version.state = SkillVersion.State.RELEASED
    version.save(update_fields=["state"])
    if skill.stable_id == (before.pk if before else None):
        skill.stable, skill.description = version, version.description
    skill.latest = version
    skill.save(update_fields=["stable", "latest", "description"])


def _label(skill: Skill, folder: SkillFolder) -> str:
    """Its own, unless an earlier text had the same."""
    wanted = folder.manifest.version or "1"
    taken = set(skill.versions.values_list("label", flat=True))
    found, number = Version(wanted), 1
    while str(found) in taken:
        found, number = Version(f"{wanted}.post{number}"), number + 1
    return str(found)
