"""Where skills are used, and which ones a conversation's composer offers behind a slash."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent
from chat.commands import Command
from conversations.models import Conversation
from skills_app.models import Skill
from skills_app.uses import Use
from tools_app.workspace import workspace_for

from .models import UsedSkill
from .reading import why_not
from .workspace import standing

MOST_SHOWN = 100


def is_used(skill: Skill) -> bool:
    return UsedSkill.objects.filter(skill=skill).exists()


def uses_of(user: User, skill: Skill) -> Iterator[Use]:
    """Agents that name it, and conversations that have it: as far as she sees these."""
    agents = Agent.objects.visible_to(user).filter(archived_at=None).select_related("current")
    for agent in agents.order_by("name")[:500]:
        for use in agent.current.config.skills if agent.current else ():
            if use.name == skill.name:
                yield Use("agent", agent.name, use.version)
    rows = UsedSkill.objects.filter(
        skill=skill, conversation__in=Conversation.objects.visible_to(user)
    )
    for used in rows.select_related("conversation", "version").order_by("-id")[:MOST_SHOWN]:
        conversation = used.conversation
        yield Use(
            "conversation",
            conversation.title or conversation.uid,
            used.version.label,
            conversation.get_absolute_url(),
        )


def addable(conversation: Conversation) -> list[Skill]:
    """What its owner may add, by name; of a long list the beginning."""
    rows = Skill.objects.visible_to(conversation.owner).usable_in(
        conversation.organisation, conversation.owner
    )
    had = UsedSkill.objects.filter(conversation=conversation).values("skill")
    return list(rows.on_offer().exclude(pk__in=had).order_by("name")[:MOST_SHOWN])


def commands(conversation: Conversation) -> Iterator[Command]:
    """Those it has put their name into the box; others of its owner's library are added first."""
    yield Command(
        "skills",
        _("See the skills of this conversation, and add one"),
        dialog=reverse("skillsets:skills", args=[conversation.uid]),
    )
    names: set[str] = set()
    for used in UsedSkill.objects.of(conversation).order_by("skill__name"):
        names.add(used.skill.name)
        if not why_not(used):
            text = _("Use the skill “%(name)s”: ") % {"name": used.skill.name}
            yield Command(used.skill.name, _short(used.version.description), text=text)
    for trusted in standing(conversation, workspace_for(conversation.uid), names):
        text = _("Use the skill “%(name)s”: ") % {"name": trusted.name}
        yield Command(trusted.name, _short(trusted.description), text=text)
    for skill in addable(conversation):
        address = reverse("skillsets:add", args=[conversation.uid, skill.name])
        yield Command(skill.name, _short(skill.description), dialog=address, owners_alone=True)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
