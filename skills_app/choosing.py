"""Which versions an agent's skills are, by name and version or channel, with what these require.

Rows only; `resolving` decides which go together. Who uses what came of it is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django.utils.translation import gettext as _
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from accounts.models import Organisation, User
from harness.agentconfig import SkillUse
from harness.errors import AgentError, Conflict, NotFound

from .models import Channel, Skill, SkillVersion
from .resolving import Candidate, Effort, Wanted, resolve

DRAFT = "draft"
"""Beside the channels: what stands in the folder that is watched (`watching`)."""


@dataclass(frozen=True, slots=True)
class Chosen:
    versions: tuple[SkillVersion, ...]
    """What is required stands before what requires it."""
    problems: tuple[str, ...]
    """Why some cannot be used, in words."""


def find_skill(name: str, organisation: Organisation, owner: User | None) -> Skill:
    """The one that this name means: her own before the organisation's, that before the server's.

    Raises NotFound for none.
    """
    rows = Skill.objects.usable_in(organisation, owner).filter(name=name)
    found = sorted(rows, key=lambda each: (each.owner_id is None, each.organisation_id is None))
    if not found:
        raise NotFound(
            _("There is no skill “%(name)s” here.") % {"name": name},
            hint=_("The library shows those there are."),
        )
    return found[0]


def version_for(skill: Skill, wanted: str) -> SkillVersion:
    """What a version or a channel of the skill means now. Raises Conflict for what is not offered."""
    if skill.killed_at is not None:
        raise Conflict(
            _("The skill “%(name)s” was stopped: %(why)s")
            % {"name": skill.name, "why": skill.killed_reason},
            hint=_("Leave it out."),
        )
    if wanted == DRAFT:
        if skill.draft is None:
            raise Conflict(
                _("The skill “%(name)s” has no draft.") % {"name": skill.name},
                hint=_("Drafts are what stands in the folder that the operator has watched."),
            )
        return skill.draft
    if wanted in Channel.values:
        found = skill.at(wanted) or (skill.stable if wanted == Channel.CANARY else None)
        if found is None:
            raise Conflict(
                _("No version of the skill “%(name)s” is %(channel)s.")
                % {"name": skill.name, "channel": wanted},
                hint=_("Name a version, or have one released."),
            )
    else:
        found = skill.versions.filter(label=wanted).first()
    if found is None or found.state != SkillVersion.State.RELEASED:
        raise Conflict(
            _("Version %(version)s of the skill “%(name)s” is not offered.")
            % {"name": skill.name, "version": wanted},
            hint=_("Its page shows those that are."),
        )
    if found.removed:
        raise Conflict(
            _("Version %(version)s of the skill “%(name)s” could be used until %(day)s.")
            % {"name": skill.name, "version": found.label, "day": found.removal_on},
            hint=_("Use %(other)s in its place.") % {"other": found.replacement}
            if found.replacement
            else _("Name another version."),
        )
    return found


def choose(uses: Sequence[SkillUse], organisation: Organisation, owner: User | None) -> Chosen:
    """The versions that these come to now; what cannot be used is said and left out."""
    named: dict[str, SkillVersion] = {}
    problems: list[str] = []
    for use in uses:
        try:
            found = version_for(find_skill(use.name, organisation, owner), use.version)
            _require_digest(found, use.digest)
            named[use.name] = found
        except AgentError as problem:
            problems.append(problem.words)
    effort = Effort()
    try:
        return Chosen(_with_required(named, organisation, owner, effort), tuple(problems))
    except AgentError as problem:
        problems.append(problem.message)
    alone: list[SkillVersion] = []
    for name, version in named.items():
        try:
            alone += _with_required({name: version}, organisation, owner, effort)
        except AgentError:
            continue
    first = {each.skill_id: each for each in reversed(alone)}
    return Chosen(tuple(each for each in alone if first[each.skill_id] is each), tuple(problems))


def _require_digest(version: SkillVersion, wanted: str) -> None:
    if wanted and wanted != version.digest:
        raise Conflict(
            _("Version %(version)s of the skill “%(name)s” is not the one that was locked.")
            % {"version": version.label, "name": version.skill.name},
            hint=_("Lock the agent’s skills anew."),
        )


def require_fitting(version: SkillVersion, owner: User | None) -> None:
    """Raises Conflict where what it requires cannot be had, or not together."""
    with_required(version, version.skill.organisation, owner)


def with_required(
    version: SkillVersion, organisation: Organisation | None, owner: User | None = None
) -> tuple[SkillVersion, ...]:
    """This version, released or not, and what it requires as that is had there now. Raises Conflict."""
    released = candidates_of(organisation, owner)
    name = version.skill.name
    own = _candidate(version)

    def versions_of(wanted: str) -> list[Candidate]:
        return [own] if wanted == name else released(wanted)

    found = resolve([Wanted(name, SpecifierSet(), exactly=version.pk)], versions_of)
    rows = SkillVersion.objects.select_related("skill").in_bulk([each.key for each in found])
    return tuple(rows[each.key] for each in found)


def candidates_of(
    organisation: Organisation | None, owner: User | None
) -> Callable[[str], list[Candidate]]:
    """By a skill's name, the versions that could be had there now."""
    return partial(_released, organisation=organisation, owner=owner)


def _with_required(
    named: dict[str, SkillVersion], organisation: Organisation, owner: User | None, effort: Effort
) -> tuple[SkillVersion, ...]:
    if not any(each.requires for each in named.values()):
        return tuple(named.values())
    wanted = [Wanted(name, SpecifierSet(), exactly=each.pk) for name, each in named.items()]

    released = candidates_of(organisation, owner)

    def versions_of(name: str) -> list[Candidate]:
        fixed = named.get(name)
        return [_candidate(fixed)] if fixed else released(name)

    found = resolve(wanted, versions_of, effort)
    rows = SkillVersion.objects.select_related("skill").in_bulk([each.key for each in found])
    return tuple(rows[each.key] for each in found)


def _released(
    name: str, *, organisation: Organisation | None, owner: User | None
) -> list[Candidate]:
    if organisation is None:
        skill = Skill.objects.filter(organisation=None, name=name).first()
    else:
        try:
            skill = find_skill(name, organisation, owner)
        except NotFound:
            skill = None
    if skill is None or skill.killed_at is not None:
        return []
    rows = skill.versions.filter(state=SkillVersion.State.RELEASED).select_related("skill")
    return [_candidate(each) for each in rows if not each.removed]


def _candidate(version: SkillVersion) -> Candidate:
    requires = tuple(version.requires)
    return Candidate(version.skill.name, Version(version.label), requires, version.pk)
