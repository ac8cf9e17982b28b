"""What judges of a trial were shown of it: their logs repeat what it was asked and answered, and may quote
that in what they say."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.forgetting import Place, Removed, repeats
from conversations.models import Event
from harness.content import text_of
from harness.events import AgentMessage, UserMessage

from .checks.judges import enclosed
from .models import Judgement


def said_elsewhere(removed: Removed) -> Iterator[Place]:
    told = removed.of(UserMessage, AgentMessage).values()
    said = [enclosed(text_of(event.content)) for event in told]
    judged = Judgement.objects.filter(trial__conversation=removed.conversation)
    for judgement in judged.select_related("conversation") if said else ():
        log = Event.objects.filter(conversation=judgement.conversation_id).order_by("seq")
        asked = log.filter(type="user.message").first()
        value = asked.value if asked is not None else None
        if asked is None or not isinstance(value, UserMessage):
            continue
        if repeats(text_of(value.content), said):
            yield judgement.conversation, asked.subject
            for row in log.filter(type="agent.message"):
                yield judgement.conversation, row.subject
