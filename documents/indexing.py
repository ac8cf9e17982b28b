"""Reads a document and makes its passages, in the background and in small transactions.

What was found before is found until the new edition is whole; then the old one goes, or what was made of the
new one where it could not be read to its end, and the claim with it. A process that dies in the midst leaves
a row that the sweep takes up again, a few times: the document may be what it died of.
At no time more than one document's text, whose length is bounded, and one batch of passages are held.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from harness.errors import AgentError, ToolError
from jobs.dispatch import dispatch
from memory.retrieval.words import indexed
from tools_app.documents import clean, opened_for

from .chunking import Chunk
from .fetching import fetch_document
from .models import Document, DocumentBody, Passage
from .reading import Read, read_document
from .vectors import passages_made

INDEX = "documents.index"
BATCH = 50
"""Passages of one transaction, so that nobody waits long for it."""
LEASE = timedelta(minutes=10)
"""After so long without a batch somebody else may read it."""
AT_ONCE = 20
"""Documents that one sweep takes up."""
TRIES = 3
"""Times that a document is begun with before it is taken for what ended its readers."""
NO_TEXT = "no_text"
UNREADABLE = "unreadable"
READERS_DIED = "readers_died"
State = Document.State
ENDED = [State.READY, State.FAILED]


def index_document(document_id: int) -> None:
    """Make it findable as it is now; nothing where somebody else is at it, or nothing is to be done."""
    since = _give_up(document_id) or _claim_ended(document_id)
    if since is not None:
        _clear(document_id, since)
        return
    claimed = _claim(document_id)
    if claimed is None:
        return
    try:
        with opened_for(("documents", claimed.collection.organisation_id)):
            read, digest, size = _read(claimed)
        made = _write(claimed, read)
    except Superseded:
        return
    except AgentError as failure:
        # What a tool would tell its model has no code of its own.
        code = UNREADABLE if isinstance(failure, ToolError) else failure.code
        _fail(claimed, code, failure.message)
        return
    if not made:
        _fail(claimed, NO_TEXT, "there is no text in it")
        return
    _end(
        claimed,
        state=State.READY,
        problem="",
        problem_code="",
        sha256=digest,
        size=size,
        cut=read.cut,
        edition=claimed.edition + 1,
    )
    passages_made()


def sweep(at_once: int = AT_ONCE) -> None:
    """Have read what waits and nobody reads: of everybody one, then of everybody the next. Have removed what
    was left of other editions."""
    for key in _with_others(timezone.now()).values_list("pk", flat=True)[:at_once]:
        dispatch(INDEX, document_id=key)
    stale = Q(claimed_at=None) | Q(claimed_at__lt=timezone.now() - LEASE)
    rows = Document.objects.filter(stale, state__in=[State.WAITING, State.READING])
    whose = [F("collection__organisation"), F("collection__owner")]
    turn = Window(RowNumber(), partition_by=whose, order_by="pk")
    keys = rows.annotate(turn=turn).order_by("turn", "pk").values_list("pk", flat=True)
    for key in keys[:at_once]:
        dispatch(INDEX, document_id=key)


def _with_others(now: datetime) -> QuerySet[Document]:
    """Those whose readers have ended, but did not remove the passages that nobody finds."""
    return Document.objects.filter(state__in=ENDED, claimed_at__lt=now - LEASE)


def _claim_ended(document_id: int) -> datetime | None:
    """Since when it is ours to clear; None: it is not."""
    now = timezone.now()
    return now if _with_others(now).filter(pk=document_id).update(claimed_at=now) else None


def _give_up(document_id: int) -> datetime | None:
    """Since when it is ours to clear, if it has been begun with too often; then it cannot be read."""
    now = timezone.now()
    left = Q(state=State.READING, claimed_at__lt=now - LEASE, tries__gte=TRIES)
    given_up = Document.objects.filter(left, pk=document_id).update(
        state=State.FAILED,
        problem="its reader ended each time before it was read",
        problem_code=READERS_DIED,
        claimed_at=now,
        updated_at=now,
    )
    return now if given_up else None


def _forget_unfinished(document_id: int) -> None:
    """What was made by one who died in the midst."""
    found = Passage.objects.filter(document=document_id, edition__gt=F("document__edition"))
    while keys := list(found.values_list("pk", flat=True)[:BATCH]):
        Passage.objects.filter(pk__in=keys).delete()


def _claim(document_id: int) -> Document | None:
    now = timezone.now()
    free = Q(state=State.WAITING) | Q(state=State.READING, claimed_at__lt=now - LEASE)
    taken = Document.objects.filter(free, pk=document_id).update(
        state=State.READING, claimed_at=now, progress=0, tries=F("tries") + 1
    )
    if not taken:
        return None
    found = Document.objects.select_related("collection").filter(pk=document_id).first()
    if found is not None:
        _forget_unfinished(found.pk)
    return found


def _read(document: Document) -> tuple[Read, str, int]:
    if document.address:
        got = fetch_document(document.address)
        data = got.body
        read = read_document(got.name or document.name, data, got.media_type, got.charset)
    else:
        body = DocumentBody.objects.filter(document=document).first()
        data = bytes(body.data) if body is not None else b""
        read = read_document(document.name, data)
    return read, hashlib.sha256(data).hexdigest(), len(data)


def _write(document: Document, read: Read) -> int:
    """How many passages there are. Raises AgentError where it was changed or deleted meanwhile."""
    made = 0
    for batch in _batches(read.chunks()):
        rows = [
            Passage(
                document=document,
                edition=document.edition + 1,
                number=made + place,
                heading=chunk.heading,
                page=chunk.page,
                text=clean(chunk.text),
                terms=indexed(f"{document.name} {chunk.heading}\n{chunk.text}"),
                audience=document.collection.audience,
            )
            for place, chunk in enumerate(batch, 1)
        ]
        made += len(rows)
        with transaction.atomic():
            _require_claim(document)
            Passage.objects.bulk_create(rows)
            now = timezone.now()
            Document.objects.filter(pk=document.pk).update(progress=made, claimed_at=now)
            document.claimed_at = now
    return made


def _batches(chunks: Iterator[Chunk]) -> Iterator[list[Chunk]]:
    while batch := list(itertools.islice(chunks, BATCH)):
        yield batch


def _mine(document: Document) -> Q:
    return Q(pk=document.pk, state=State.READING, claimed_at=document.claimed_at)


def _require_claim(document: Document) -> None:
    held = Document.objects.select_for_update(of=("self",), no_key=True).filter(_mine(document))
    if held.first() is None:
        raise Superseded("It was changed meanwhile.")


def _fail(document: Document, code: str, problem: str) -> None:
    _end(document, state=State.FAILED, problem=problem[:500], problem_code=code)


def _end(document: Document, **fields: object) -> None:
    """As long as it is still ours: who changed it meanwhile has it read anew. It stays claimed until passages
    of other editions are gone."""
    now = timezone.now()
    with transaction.atomic():
        ended = Document.objects.filter(_mine(document)).update(
            **fields, claimed_at=now, updated_at=now
        )
        if ended and fields["state"] == State.READY:
            DocumentBody.objects.filter(document=document).delete()
    if ended:
        _clear(document.pk, now)


def _clear(document_id: int, since: datetime) -> None:
    """Passages of other editions than that which is found, some at a time, until somebody reads it anew."""
    ours = Document.objects.filter(pk=document_id, state__in=ENDED, claimed_at=since)
    others = Passage.objects.filter(document__in=ours).exclude(edition=F("document__edition"))
    while keys := list(others.values_list("pk", flat=True)[:BATCH]):
        Passage.objects.filter(pk__in=keys).delete()
    ours.update(claimed_at=None)


class Superseded(AgentError):
    """Somebody changed the document while it was read."""

    code = "superseded"
