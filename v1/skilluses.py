"""Skills that agents name, on the wire and in their configuration.

The wire names a skill by its id and a version by its own, or `latest`; a configuration by their names, which
people read. Only the organisation's skills and the server's can be named: an agent works for many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.db.models import Q
from django.utils.translation import gettext as _
from pydantic import Field

from accounts.api.authentication import Caller
from agents.models import Agent
from harness.agentconfig import MOST_SKILLS, AgentConfig, SkillUse
from harness.errors import Invalid
from harness.faults import place
from skills_app.models import Channel, Skill, SkillVersion

from .door import Body

LATEST = "latest"


class SkillRef(Body):
    type: Literal["custom", "anthropic"]
    """Both mean the skill with this id; the second is what clients call those that come with a server."""
    skill_id: str = Field(max_length=64)
    version: str | None = Field(default=None, max_length=64)
    """A version's id or name, or a channel; None: `latest`."""


SkillRefs = Annotated[tuple[SkillRef, ...], Field(max_length=MOST_SKILLS)]


def uses_of(
    caller: Caller, refs: Sequence[SkillRef], *, before: AgentConfig | None = None
) -> tuple[SkillUse, ...]:
    """One that `before` has stays as it is, with what this wire cannot say of it.

    Raises Invalid, naming the place, for a skill or a version that the agent could not have.
    """
    held = {(use.name, use.version): use for use in before.skills} if before else {}
    uses = [_use(caller, ref, number) for number, ref in enumerate(refs)]
    return tuple(held.get((use.name, use.version), use) for use in uses)


def _use(caller: Caller, ref: SkillRef, number: int) -> SkillUse:
    seen = Skill.objects.visible_to(caller.user).usable_in(caller.organisation, None)
    uid = ref.skill_id.replace("\0", "")
    skill = seen.filter(uid=uid).first()
    field = place("skills", number)
    if skill is None:
        raise Invalid(
            _("No agent of this organisation can have a skill “%(id)s”.") % {"id": uid},
            field=f"{field}.skill_id",
            hint=_("GET /v1/skills lists those there are."),
        )
    nearer = seen.filter(name=skill.name, organisation__isnull=False).exclude(pk=skill.pk)
    if skill.organisation_id is None and nearer.exists():
        raise Invalid(
            _("The organisation has a skill “%(name)s” of its own.") % {"name": skill.name},
            field=f"{field}.skill_id",
            hint=_("Name that one."),
        )
    return SkillUse(name=skill.name, version=_version(caller, skill, ref, field))


def _version(caller: Caller, skill: Skill, ref: SkillRef, field: str) -> str:
    wanted = (ref.version or LATEST).replace("\0", "")
    if wanted in Channel.values:
        return wanted
    rows = SkillVersion.objects.visible_to(caller.user).filter(skill=skill)
    found = rows.filter(uid=wanted).first() or rows.filter(label=wanted).first()
    if found is None:
        raise Invalid(
            _("“%(name)s” has no version “%(version)s”.") % {"name": skill.name, "version": wanted},
            field=f"{field}.version",
            hint=_("GET /v1/skills/{id}/versions lists those there are."),
        )
    return found.label


def to_wire(agent: Agent, config: AgentConfig) -> list[dict[str, Any]]:
    """What is gone is told by its name. Two queries where the agent has skills, none where not."""
    if not config.skills:
        return []
    named = Skill.objects.filter(name__in=[use.name for use in config.skills], owner=None)
    rows = named.filter(Q(organisation=None) | Q(organisation=agent.organisation_id))
    # Of one name the organisation's comes last, and counts.
    skills = {skill.name: skill for skill in sorted(rows, key=lambda one: one.organisation_id or 0)}
    pinned = SkillVersion.objects.filter(skill__in=skills.values()).values_list(
        "skill__name", "label", "uid"
    )
    versions = {(name, label): uid for name, label, uid in pinned}
    return [
        {
            "type": "anthropic" if _is_shipped(skills.get(use.name)) else "custom",
            "skill_id": skills[use.name].uid if use.name in skills else use.name,
            "version": versions.get((use.name, use.version), use.version),
        }
        for use in config.skills
    ]


def _is_shipped(skill: Skill | None) -> bool:
    return skill is not None and skill.shipped
