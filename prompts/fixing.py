"""Fixes which texts an agent's prompts are for one conversation: with its first message, and again when it
goes on with another version of its agent. Labels that move later change nothing.
"""

from __future__ import annotations

from pydantic import ValidationError

from conversations.models import Conversation, Event
from harness.events import Event as EventValue
from harness.events import SessionUpdated

from .choosing import choose
from .models import PromptSet, UsedPrompt


def fix(conversation: Conversation, row: Event, event: EventValue) -> None:
    """In the transaction of the message; for an agent without prompts it costs nothing. What cannot be had
    refuses the message."""
    if isinstance(event, SessionUpdated) and not event.overrides:
        return
    try:
        uses = conversation.config.prompts
    except ValidationError:  # its run says so
        return
    if not uses and not isinstance(event, SessionUpdated):
        return
    rows = PromptSet.objects.filter(conversation=conversation).order_by("-since_seq")
    newest = rows.first()
    if newest is None and not uses:
        return
    if newest is not None and newest.agent_version_id == conversation.agent_version_id:
        return
    if newest is None and _as_the_origin(conversation, row.seq):
        return
    chosen = choose(uses, conversation)
    made = PromptSet.objects.create(
        conversation=conversation,
        since_seq=row.seq,
        agent_version_id=conversation.agent_version_id,
    )
    UsedPrompt.objects.bulk_create(
        UsedPrompt(set=made, version=each.version, wanted=each.use.version, text=each.text)
        for each in chosen
    )


def _as_the_origin(conversation: Conversation, seq: int) -> bool:
    """A fork goes on with the texts of the conversation that its log begins with."""
    if conversation.origin_id is None:
        return False
    rows = PromptSet.objects.filter(conversation=conversation.origin_id).order_by("-since_seq")
    theirs = rows.first()
    if theirs is None or theirs.agent_version_id != conversation.agent_version_id:
        return False
    made = PromptSet.objects.create(
        conversation=conversation, since_seq=seq, agent_version_id=theirs.agent_version_id
    )
    UsedPrompt.objects.bulk_create(
        UsedPrompt(set=made, version_id=used.version_id, wanted=used.wanted, text=used.text)
        for used in theirs.used.all()
    )
    return True
