"""The section of the prompt that a conversation has of its folder: what its log says it was told."""

from __future__ import annotations

from pathlib import Path

from django.db.models import Exists, OuterRef

from conversations.kitparts import Part, Section
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.estimates import CHARACTERS_PER_TOKEN
from jobs.prepared import Prepared

from .events import TYPE, FolderEntered
from .models import INSTRUCTIONS_LIMIT

PLACE = 50
"""Behind the agent's own instructions, before the facts of the conversation."""

_ENTERED = Prepared(
    lambda given: Event.objects.filter(conversation=given.conversation, type=TYPE).order_by("seq")
)


def entered() -> Exists:
    """Whether it was told of a folder."""
    return Exists(Event.objects.filter(conversation=OuterRef("pk"), type=TYPE))


def part(conversation: Conversation, config: AgentConfig, workspace: Path) -> Part:
    row = _ENTERED.first(conversation=conversation.pk)
    value = row.value if row is not None else None
    if not isinstance(value, FolderEntered):
        return Part()
    text = section_text(value.name, value.instructions)
    return Part(sections=(Section(PLACE, text, most=INSTRUCTIONS_LIMIT + 500),) if text else ())


def section_text(name: str, instructions: str) -> str:
    if not instructions:
        return ""
    return f"This conversation belongs to the folder “{name}”, which says:\n{instructions}"


def tokens_of(name: str, instructions: str) -> int:
    """About how many tokens of each request are the folder's."""
    return -(-len(section_text(name, instructions)) // CHARACTERS_PER_TOKEN)
