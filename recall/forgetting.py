"""Takes the words of a message out of what says why it recalled something; what was recalled stays, since
prompts have had it. A turn that is taken out itself is recalled no more."""

from __future__ import annotations

from conversations.forgetting import Removed
from harness.events import MessageEdited, UserMessage

from .models import Recall


def forget(removed: Removed) -> None:
    for uid, event in removed.of(UserMessage, MessageEdited).items():
        message = event.event_id if isinstance(event, MessageEdited) else uid
        found = Recall.objects.filter(conversation=removed.conversation, message_uid=message)
        for recall in found:
            recall.hits = [{**hit, "words": []} for hit in recall.hits]
            recall.passages = [{**each, "words": []} for each in recall.passages]
            recall.turns = [{**each, "words": []} for each in recall.turns]
            recall.save(update_fields=["hits", "passages", "turns"])
    gone = removed.uids
    for recall in Recall.objects.filter(conversation=removed.conversation).exclude(turns=[]):
        kept = [each for each in recall.turns if gone.isdisjoint((each["turn"], each["answer"]))]
        if kept != recall.turns:
            recall.turns = kept
            recall.save(update_fields=["turns"])
