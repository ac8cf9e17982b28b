"""What a version of a prompt would say in a conversation, before anybody is told it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.versiondiff import Line, lines_between
from conversations.models import Conversation
from harness.estimates import CHARACTERS_PER_TOKEN

from .choosing import facts_of
from .filling import filled, missing_values, places_in
from .models import PromptVersion
from .using import told


@dataclass(frozen=True, slots=True)
class Preview:
    text: str
    tokens: int
    """About how many of each request are its."""
    missing: tuple[str, ...]
    """Variables that neither a value nor a default fills in."""
    untouched: tuple[str, ...]
    """Names in double braces that are no variables and stay as they stand."""
    told: str
    """What the conversation was told of this prompt; "" where nothing was."""
    changes: tuple[Line, ...]
    """From what it was told to this."""


def preview(
    version: PromptVersion,
    values: Mapping[str, str],
    conversation: Conversation | None = None,
) -> Preview:
    """Without a conversation the places of its facts stay as they are; with one, what is not given has the
    value that its agent gives."""
    facts = facts_of(conversation) if conversation else {}
    given = dict(values)
    said = ""
    if conversation is not None:
        for use in conversation.config.prompts:
            if use.name == version.prompt.name:
                given = {**use.values, **given}
        before = [
            used for used in told(conversation) if used.version.prompt_id == version.prompt_id
        ]
        said = before[0].text if before else ""
    text = filled(version.text, version.variables, given, facts)
    declared = {each.name for each in version.variables}
    return Preview(
        text=text,
        tokens=-(-len(text) // CHARACTERS_PER_TOKEN),
        missing=tuple(missing_values(version.variables, given)),
        untouched=tuple(
            name for name in places_in(version.text) if name not in declared and name not in facts
        ),
        told=said,
        changes=tuple(lines_between(said, text)) if said and said != text else (),
    )
