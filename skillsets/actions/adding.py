"""A person gives her conversation a skill that its agent does not name."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_conversation
from conversations.log import append
from conversations.models import Conversation
from harness.agentconfig import SkillUse
from harness.errors import Conflict, LimitReached, NotFound
from harness.history import Entry
from skills_app.choosing import choose, find_skill
from skills_app.models import Skill
from skillsets.events import SkillAdded
from skillsets.fixing import add
from skillsets.models import UsedSkill

MOST = 200
"""Skills that one conversation has."""


def add_skill(
    *, actor: User, conversation: Conversation, name: str, version: str = "stable"
) -> UsedSkill:
    """From its next turn on, with what the skill requires: her own, the organisation's or the server's.

    Raises NotFound for another's conversation and an unknown skill, Conflict for what is not offered and for
    one that is there, LimitReached.
    """
    with transaction.atomic():
        held = own_conversation(actor, conversation)
        skill = find_skill(name, held.organisation, actor)
        if not Skill.objects.visible_to(actor).filter(pk=skill.pk).exists():
            raise NotFound(_("There is no skill “%(name)s” here.") % {"name": name[:80]})
        there = UsedSkill.objects.filter(conversation=held)
        if there.filter(skill=skill).exists():
            raise Conflict(_("The conversation has the skill “%(name)s” already.") % {"name": name})
        chosen = choose(
            (SkillUse.model_construct(name=name, version=version),), held.organisation, actor
        )
        if chosen.problems:
            raise Conflict(chosen.problems[0])
        if there.count() + len(chosen.versions) > MOST:
            raise LimitReached(_("A conversation has at most %(most)d skills.") % {"most": MOST})
        add(held, chosen.versions, {name}, by=UsedSkill.By.PERSON)
        row = there.select_related("skill", "version").get(skill=skill)
        told = SkillAdded(
            skill_id=skill.uid,
            name=skill.name,
            version=row.version.label,
            digest=row.version.digest,
        )
        append(held.pk, [Entry.of(told)], actor=actor)
    return row
