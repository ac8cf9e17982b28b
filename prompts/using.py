"""Where a prompt is used, which texts a conversation was told, and how one gets there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent
from chat.commands import Command
from conversations.models import Conversation

from .models import Prompt, PromptSet, UsedPrompt

MOST_AGENTS = 1_000
"""That are asked whether they name a prompt."""
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class AgentUse:
    agent: str
    uid: str
    version: int
    wanted: str
    """The label or number by which it is named."""


def agents_with(prompt: Prompt, user: User | None = None) -> Iterator[AgentUse]:
    """Agents whose version in use names it, as far as she sees them; None: all."""
    rows = Agent.objects.all() if user is None else Agent.objects.visible_to(user)
    if prompt.organisation_id is not None:
        rows = rows.filter(organisation=prompt.organisation_id) | rows.filter(organisation=None)
    rows = rows.filter(archived_at=None, current__isnull=False)
    for agent in rows.select_related("current").order_by("name")[:MOST_AGENTS]:
        for use in agent.current.config.prompts if agent.current else ():
            if use.name == prompt.name and agent.current is not None:
                yield AgentUse(agent.name, agent.uid, agent.current.number, use.version)


def conversations_with(prompt: Prompt, user: User) -> list[UsedPrompt]:
    """The newest that she sees, with the version each was told."""
    rows = UsedPrompt.objects.filter(
        version__prompt=prompt, set__conversation__in=Conversation.objects.visible_to(user)
    )
    return list(rows.select_related("version", "set__conversation").order_by("-id")[:MOST_SHOWN])


def told(conversation: Conversation, seq: int | None = None) -> list[UsedPrompt]:
    """The texts that a request at that place of the log had; None: that the next one has."""
    sets = PromptSet.objects.filter(conversation=conversation)
    if seq is not None:
        sets = sets.filter(since_seq__lte=seq)
    newest = sets.order_by("-since_seq").first()
    if newest is None:
        return []
    return list(newest.used.select_related("version__prompt", "set").order_by("id"))


def commands(conversation: Conversation) -> Iterator[Command]:
    """Only where there are some."""
    if PromptSet.objects.filter(conversation=conversation).exists():
        address = reverse("prompts:told", args=[conversation.uid])
        yield Command("prompts", _("The prompts this conversation was told"), address=address)
