"""Passages of documents that a message may be about: found with what it recalls, and named in the prompt.

Never told there: what stands in documents is others' words, and what `read_passage` reads is marked as such.
The prompt has the name that a person gave the document, and the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from conversations.models import Conversation
from documents.models import Passage
from documents.searching import search_passages
from harness.policy import Policy
from memory.retrieval.question import read_question
from reading.digits import number_of

from .documenttools import READ_PASSAGE
from .reach import Reach, collections_for

MOST = 3
"""Passages that one message recalls."""
WORDS = 2
"""Of a message that a passage has to have, and half of them; of a question that it covers one is enough, and
none where its vector is near to the message's."""
STRONG = 0.6
"""Share of the best score that others need."""
LOOKED_AT = 10
HEADING = "Passages of documents that may be about it; read_passage reads one, search_documents finds others:"


def passages_for(conversation: Conversation, text: str) -> list[dict[str, Any]]:
    """Those that have what the text says, or are alike, as a row of it keeps them. If `has_passages`."""
    collections = collections_for(conversation)
    found = search_passages(conversation.owner, text, collections, limit=LOOKED_AT)
    best = max((hit.ranked.score for hit in found.hits), default=0.0)
    enough = max(WORDS, len(read_question(text).terms) / 2) if found.low else 1
    hits = [
        hit
        for hit in found.hits
        if hit.ranked.score >= STRONG * best
        and (len(hit.why) >= enough or (hit.likeness or 0.0) >= found.alike)
    ]
    return [
        {
            "passage": hit.passage.uid,
            "document": hit.passage.document.uid,
            "score": hit.ranked.score,
            "words": list(hit.why),
            "likeness": hit.likeness,
        }
        for hit in hits[:MOST]
    ]


def has_passages(conversation: Conversation, reach: Reach) -> bool:
    """Whether there are documents that its agent may read."""
    return reach.documents and _reads_passages(conversation)


def _reads_passages(conversation: Conversation) -> bool:
    try:
        config = conversation.config
    except ValidationError:  # its run says so; what a person wrote is stored all the same
        return False
    return Policy(config.tools).offers(READ_PASSAGE, conversation.features)


def lines_of(conversation: Conversation, recalls: Sequence[list[dict[str, Any]]]) -> dict[str, str]:
    """Those that its messages recalled and that may be read there now, by their ids."""
    wanted = {each["passage"] for found in recalls for each in found}
    if not wanted:
        return {}
    rows = Passage.objects.visible_to(conversation.owner).filter(
        document__collection__in=collections_for(conversation), uid__in=wanted
    )
    return {each.uid: f"- {each.uid} {_place(each)}" for each in rows.select_related("document")}


def _place(passage: Passage) -> str:
    name = f"“{passage.document.name}”".replace("<", "‹")  # which ends no section
    # What a sheet is called, and what else may stand in a page's place, are the document's words.
    number = number_of(passage.page.removeprefix("Page "))
    return name if number is None else f"{name}, Page {number}"
