"""What installing a skill would do, told before it is done: what comes, what changes against today, what it
brings with it. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from accounts.models import Organisation, User
from harness.errors import Conflict

from .choosing import candidates_of
from .comparing import FileChange, changes_between
from .files import files_of
from .folder import SkillFolder, faults_of
from .models import Skill, SkillVersion
from .packages import Packages, packages_for
from .resolving import Candidate, Wanted, resolve


@dataclass(frozen=True, slots=True)
class Plan:
    folder: SkillFolder
    skill: Skill | None
    """The one of this name and scope that is there already."""
    before: SkillVersion | None
    """Its version that is offered now, or the newest."""
    changes: tuple[FileChange, ...]
    """Against that one; against nothing where there is none."""
    brings: tuple[SkillVersion, ...]
    """What it requires, as it would be had now."""
    problem: str
    """Why what it requires cannot be had; empty: it can."""
    faults: tuple[str, ...]
    """What keeps it from being released, in words."""
    packages: Packages | None
    """What its Python files need from elsewhere; None: nothing."""

    @property
    def is_new(self) -> bool:
        return self.before is None or self.before.digest != self.folder.digest


def plan_installation(
    folder: SkillFolder, organisation: Organisation | None, owner: User | None
) -> Plan:
    """For the person's own, the organisation's, or without an organisation the server's skills."""
    skill = Skill.objects.filter(organisation=organisation, owner=owner, name=folder.name).first()
    before = None
    if skill is not None:
        before = skill.stable or skill.latest or skill.versions.order_by("-number").first()
    brings: tuple[SkillVersion, ...] = ()
    problem = ""
    try:
        brings = _brought(folder, candidates_of(organisation, owner))
    except Conflict as conflict:
        problem = conflict.message
    return Plan(
        folder=folder,
        skill=skill,
        before=before,
        changes=tuple(changes_between(files_of(before) if before else {}, folder.files)),
        brings=brings,
        problem=problem,
        faults=tuple(faults_of(folder)),
        packages=packages_for(folder.python) if folder.python.packages else None,
    )


def _brought(
    folder: SkillFolder, versions_of: Callable[[str], list[Candidate]]
) -> tuple[SkillVersion, ...]:
    if not folder.manifest.requires:
        return ()
    itself = Candidate(
        folder.name, Version(folder.manifest.version or "0"), folder.manifest.requires, key=folder
    )

    def offered(name: str) -> list[Candidate]:
        return [itself] if name == folder.name else versions_of(name)

    found = resolve([Wanted(folder.name, SpecifierSet(), exactly=folder)], offered)
    keys = [each.key for each in found if each is not itself]
    rows = SkillVersion.objects.select_related("skill").in_bulk(keys)
    return tuple(rows[key] for key in keys)
