"""The sections of a run's prompt that an agent's named prompts make, behind its instructions."""

from __future__ import annotations

from pathlib import Path

from conversations.kitparts import Part, Section
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from jobs.prepared import Prepared

from .choosing import choose
from .models import PromptSet, UsedPrompt

PLACE = 10
"""Before all that others add."""

_NEWEST = Prepared(
    lambda given: PromptSet.objects.filter(conversation=given.conversation).order_by("-since_seq")
)
_USED = Prepared(lambda given: UsedPrompt.objects.filter(set=given.set).order_by("id"))


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    """Nothing is asked where the agent names none. Before the first message they are what they would be."""
    if not config.prompts:
        return Part()
    newest = _NEWEST.first(conversation=conversation.pk)
    if newest is not None and newest.agent_version_id == conversation.agent_version_id:
        texts = [used.text for used in _USED.all(set=newest.pk)]
    else:
        texts = [each.text for each in choose(config.prompts, conversation)]
    return Part(sections=tuple(Section(PLACE, text, most=len(text)) for text in texts if text))
