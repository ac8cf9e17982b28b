"""The text of a person's own documents among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import User
from owndata.parts import File, as_lines, in_pages

from .models import Document, Passage


def files(user: User) -> Iterator[File]:
    mine = Document.objects.visible_to(user).filter(collection__owner=user)
    for document in in_pages(mine.select_related("collection")):
        yield File(f"documents/{document.uid}.jsonl", as_lines(_told(document)))


def _told(document: Document) -> Iterator[dict[str, Any]]:
    """What it is, then its passages in the order in which they were made, which is their own."""
    yield {
        "id": document.uid,
        "collection": document.collection.name,
        "name": document.name,
        "address": document.address or None,
    }
    found = Passage.objects.filter(document=document, edition=document.edition)
    for passage in in_pages(found, size=100):
        yield {name: getattr(passage, name) for name in ("number", "page", "heading", "text")}
