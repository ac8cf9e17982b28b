"""Documents that were read, whether a test's transaction never ends or jobs begin by themselves."""

from __future__ import annotations

from documents import indexing
from documents.actions.documents import add_document
from documents.models import Collection, Document
from tests.patience import until

READ = (Document.State.READY, Document.State.FAILED)


def added(actor, collection: Collection, data: bytes, name: str = "handbook.md") -> Document:
    """As it is once it was read."""
    document = add_document(actor=actor, collection=collection, name=name, data=data)
    indexing.index_document(document.pk)  # or the job was first
    until(lambda: Document.objects.filter(pk=document.pk, state__in=READ).exists())
    document.refresh_from_db()
    return document
