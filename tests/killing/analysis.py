"""What is read in the background and killed: a document that a person uploads, and a conversation that is
read for what is to be remembered once it rests; what must hold at the end."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from accounts.models import User
from conversations.models import Conversation, Event, Run
from documents.actions.collections import create_collection
from documents.models import Collection, Document, DocumentBody, Passage
from documents.searching import search_passages
from harness.content import Text
from harness.events import AgentMessage, UserMessage
from harness.messages import ModelRequest
from learning.models import Analysis
from memory.models import Memory
from providers.scripted import Answer, reply
from spending.models import Usage

SAID = "I drink tea, never coffee."
REPLY = "Noted."
AGAIN = 4
"""Times that it is said at most: what a killed process was about to read is read after the next rest."""
LEARNED = "She drinks tea, never coffee."
PREFERENCE = {"kind": "preference", "text": LEARNED, "key": "drinks", "message": 1}
NAME = "handbook.md"
PARAGRAPHS = 120
"""More passages than are written in one transaction."""
HANDBOOK = "\n\n".join(
    f"# Chapter {number}\n\nThe chapter {number} is about {'trains ' * 120}."
    for number in range(PARAGRAPHS)
)


def answer(request: ModelRequest) -> Answer:
    if request.purpose != Analysis.PURPOSE:
        return reply(REPLY)
    _note(request)
    return reply(json.dumps({"learnings": [PREFERENCE]}))


def _note(request: ModelRequest) -> None:
    """That a model was asked, and what: a stretch that is read twice is paid twice."""
    (message,) = request.messages
    said = "".join(part.text for part in message.parts if isinstance(part, Text))
    digest = hashlib.sha256(said.partition("<conversation>")[2].encode()).hexdigest()
    where = getattr(settings, "KILLING_EFFECTS")  # noqa: B009 - known to the matrix only
    file = os.open(where, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{digest}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def prepare(conversation: Conversation) -> None:
    create_collection(
        actor=conversation.owner, organisation=conversation.organisation, name="Handbooks"
    )


def collection() -> Collection:
    return Collection.objects.get()


def let_time_pass() -> None:
    """Leases of who died are over: nobody waits ten minutes for each point."""
    past = timezone.now() - timedelta(hours=1)
    Document.objects.filter(claimed_at__isnull=False).update(claimed_at=past)
    Analysis.objects.filter(outcome=Analysis.Outcome.ASKED).update(at=past)


def upload_is_there() -> bool:
    return Document.objects.exists()


def said(conversation: int) -> int:
    """How often a person said it."""
    rows = Event.objects.filter(conversation=conversation, type="user.message")
    return sum(isinstance(row.value, UserMessage) for row in rows)


def rests(conversation: int) -> bool:
    """All that was said is answered."""
    one = Conversation.objects.get(pk=conversation)
    running = Run.objects.filter(conversation=one, state=Run.State.RUNNING).exists()
    return one.status == Conversation.Status.IDLE and not one.owes_run and not running


def is_read(conversation: int) -> bool:
    """The conversation, as far as somebody began to."""
    row = Analysis.objects.filter(conversation=conversation).first()
    return row is not None and row.outcome not in {Analysis.Outcome.ASKED, Analysis.Outcome.SHORT}


def is_being_read(conversation: int) -> bool:
    asked = Analysis.objects.filter(outcome=Analysis.Outcome.ASKED)
    return asked.filter(conversation=conversation).exists()


def document_is_read() -> bool:
    return Document.objects.filter(state__in=["ready", "failed"]).exists()


def problems_of(conversation_id: int, effects: list[str], workspaces: Path) -> list[str]:
    conversation = Conversation.objects.get(pk=conversation_id)
    return [
        *_of_the_document(conversation.owner),
        *_of_the_reading(conversation, effects),
        *_of_the_log(conversation),
    ]


def _of_the_document(owner: User) -> Iterator[str]:
    """It is found whole, once, and nothing of an edition that was not finished is left."""
    states = list(Document.objects.values_list("name", "state", "progress"))
    if [(name, state) for name, state, _made in states] != [(NAME, "ready")]:
        yield f"{'lost' if len(states) < 2 else 'repeated'}: the documents are {states}"
        return
    document = Document.objects.get()
    numbers = list(Passage.objects.order_by("number").values_list("edition", "number"))
    if numbers != [(document.edition, place) for place in range(1, document.progress + 1)]:
        kind = "repeated" if len(numbers) > document.progress else "lost"
        yield f"{kind}: of {document.progress} passages there are {len(numbers)}"
    if DocumentBody.objects.exists():
        yield "lost: what was uploaded is kept though it was read"
    found = search_passages(owner, f"chapter {PARAGRAPHS - 1}", Collection.objects.all())
    if not any(f"chapter {PARAGRAPHS - 1} " in hit.passage.text for hit in found.hits):
        yield "lost: its last chapter is not found"


def _of_the_reading(conversation: Conversation, effects: list[str]) -> Iterator[str]:
    """Each stretch was asked about at most once, what was asked is counted once, and what was learned is
    remembered, unless the answer died with its process, which the row says."""
    for digest, count in Counter(effects).items():
        if count > 1:
            yield f"repeated: the stretch {digest[:8]} was read {count} times"
    counted = Usage.objects.filter(purpose=Analysis.PURPOSE).count()
    row = Analysis.objects.filter(conversation=conversation).first()
    outcome = None if row is None else row.outcome
    if not len(effects) <= counted <= len(effects) + 1:
        kind = "repeated" if counted > len(effects) else "lost"
        yield f"{kind}: {len(effects)} were asked, {counted} are counted"
    if outcome not in {Analysis.Outcome.LEARNED, Analysis.Outcome.NOTHING, Analysis.Outcome.LOST}:
        yield f"lost: the reading ended as {outcome}"
    kept = list(Memory.objects.values_list("content", flat=True))
    wanted = [] if outcome == Analysis.Outcome.LOST and not kept else [LEARNED]
    if kept != wanted:
        yield f"{'repeated' if len(kept) > 1 else 'lost'}: {kept} is remembered"


def _of_the_log(conversation: Conversation) -> Iterator[str]:
    rows = list(Event.objects.filter(conversation=conversation).order_by("seq"))
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        yield "lost: the sequence has gaps"
    if not any(isinstance(row.value, AgentMessage) for row in rows):
        yield "lost: nobody answered"
