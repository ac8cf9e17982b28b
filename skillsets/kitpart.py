"""Skills in a run: their names in the prompt, the tools that read them, the folders that commands see."""

from __future__ import annotations

import logging
from pathlib import Path

from django.db.models import Exists, OuterRef, Q

from conversations.kitparts import Part, Section
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.errors import AgentError
from harness.rules import LevelledRule
from jobs.prepared import Prepared
from sandbox.contract import Mount
from skills_app.files import empty, lay_out
from skills_app.installing import packages_folder
from skills_app.packages import place_of

from .composing import tools_of
from .models import SkillSet, TrustedSkill, UsedSkill
from .reading import EXTRA, FOLDER, READ, SEARCH, section_of, why_not
from .workspace import standing

logger = logging.getLogger(__name__)

PLACE = 60
"""Behind the instructions and a folder's, before the facts of the conversation."""

_USED = Prepared(
    lambda given: (
        UsedSkill.objects.filter(conversation=given.conversation)
        .select_related("skill", "version")
        .order_by("id")
    )
)
_SETS = Prepared(lambda given: SkillSet.objects.filter(pk=given.conversation))
_STOPPED = Prepared(
    lambda given: UsedSkill.objects.filter(
        conversation=given.conversation, skill__killed_at__isnull=False
    ).select_related("skill", "version")
)


def has_skills() -> Q:
    """Whether there is anything to tell of skills."""
    here = OuterRef("pk")
    return (
        Q(Exists(UsedSkill.objects.filter(conversation=here)))
        | Q(Exists(SkillSet.objects.filter(conversation=here)))
        | Q(Exists(TrustedSkill.objects.filter(conversation=here)))
    )


def uses_some() -> Exists:
    return Exists(UsedSkill.objects.filter(conversation=OuterRef("pk")))


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    used = _USED.all(conversation=conversation.pk)
    fixed = _SETS.first(conversation=conversation.pk)
    problems = fixed.problems if isinstance(fixed, SkillSet) else []
    trusted = standing(conversation, workspace, {each.skill.name for each in used})
    if not used and not problems and not trusted:
        return Part()
    text = section_of(used, problems, trusted)
    composed = {} if conversation.environment.has_workers else tools_of(used)
    return Part(
        tools={**composed, **{tool.name: tool for tool in (READ, SEARCH)}},
        extras={EXTRA: conversation.pk},
        sections=(_section(text),) if text else (),
    )


def _section(text: str) -> Section:
    return Section(
        PLACE, text, most=len(text), source="skills", reread="search_skills finds the others"
    )


def mounts(conversation: Conversation) -> tuple[Mount, ...]:
    """A folder for each skill that has more than its SKILL.md. One whose stored files are not what they were
    is left out, and told to the operator."""
    found = []
    for used in _USED.all(conversation=conversation.pk):
        if why_not(used):
            empty(used.version)
            continue
        try:
            folder = lay_out(used.version)
        except AgentError:
            logger.exception("the skill %s cannot be laid out", used.skill.uid)
            continue
        place = Path(FOLDER) / used.skill.name
        label = f"the skill {used.skill.name}"
        found.append(Mount(folder, place, writable=False, label=label))
        if (packages := place_of(used.version)) is not None:
            place, label = packages_folder(used.skill.name), f"the Python packages of {label}"
            found.append(Mount(packages, place, writable=False, label=label))
    return tuple(found)


def stop_what_was_stopped(conversation: Conversation) -> tuple[LevelledRule, ...]:
    """No rule: asked with the rules, before each call, so that commands find nothing of a stopped skill."""
    for used in _STOPPED.all(conversation=conversation.pk):
        empty(used.version)
    return ()
