"""A conversation that rests is read for what is to be remembered: only what is new, each stretch at most
once, paid for as any call.

How the model is asked is `asking`'s part. Nobody acts here but the server, so nobody's permission is asked:
what is learned goes into the owner's own store alone, by the door that her agents use (`remember`).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from conversations.departures import has_left
from conversations.kits import Choice, choose_provider, current_texts, ready
from conversations.log import append
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig
from harness.errors import AgentError
from harness.events import SpanModelRequestEnd
from harness.history import Entry
from harness.messages import ModelRequest
from jobs.apart import each_apart
from jobs.dispatch import dispatch
from learning.events import MemoryLearned
from learning.models import Analysis, Learned
from learning.projection import READ
from learning.stretches import Said, amount_after, stretch_after
from learning.wanted import is_wanted
from learning.wording import Learning, learning_request, learnings_in
from memory.access import Author
from memory.actions.remembering import LEARNABLE, Source, own_store, remember
from memory.models import AuthorKind, Memory
from reading.foreignjson import Unreadable
from recall.strangers import has_strangers_words
from spending.beside import hold_back, lost, plan_call, record_end, rests, room_today

KNOWN = 40
"""Memories that the model is told to be known, the newest."""

Outcome = Analysis.Outcome


@dataclass(frozen=True, slots=True)
class Claim:
    """A model may now be asked: what it costs at most is held back."""

    row: int
    uid: str
    """Of the model call."""
    choice: Choice
    config: AgentConfig
    request: ModelRequest
    said: tuple[Said, ...]
    """As the model sees them numbered."""
    read: tuple[str, ...]
    """Ids of all the messages that it sees something of."""
    more: bool
    """There is more to read behind it."""


def begin(conversation_id: int) -> Claim | None:
    """Claim the next stretch; None where nobody is to be asked now. What is not read now is read after a
    later rest."""
    conversation = (
        Conversation.objects.select_related("owner", "organisation", "agent_version__agent")
        .filter(pk=conversation_id, parent=None, unlisted=False)
        .first()
    )
    if conversation is None or conversation.owner.is_service or has_left(conversation):
        return None
    if not is_wanted(conversation):
        return None
    choice = choose_provider(conversation.config, conversation.owner, conversation.organisation)
    model = settings.AGENTSITE_LEARNING_MODELS.get(choice.provider, "")
    rows = Analysis.objects.all()
    if (
        not model
        or choice.config is None
        or rests(rows, conversation.organisation_id, choice.provider, model)
    ):
        return None
    choice = ready(choice)
    with transaction.atomic():
        # Whoever writes to it, deletes it or takes something out waits for this row.
        held = (
            Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
        )
        if held is None or held.status != Conversation.Status.IDLE:
            return None
        row = rows.filter(conversation=held).first() or Analysis(
            conversation=held, outcome=Outcome.SHORT
        )
        if row.outcome == Outcome.ASKED:
            return None
        if not _may_be_enough(held, row):
            return None
        stretch = stretch_after(held, row.read_seq)
        if not _noted(row, stretch.through, stretch.size, has_person=stretch.has_person):
            return None
        request = learning_request(stretch, _known(held), texts=current_texts(), model=model)
        plan_call(row, request, choice.provider, server_keys=choice.server_keys)
        most = settings.AGENTSITE_LEARNING_TOKENS_PER_DAY
        room = room_today(held, rows, purpose=Analysis.PURPOSE, most=most)
        if room < row.prompt_tokens_at_most + row.output_tokens_at_most:
            return None
        before = row.read_seq, row.since_seq
        row.since_seq, row.read_seq = row.read_seq, stretch.through
        row.claimed_seq, row.at = held.last_seq, timezone.now()
        if not hold_back(held, row):
            row.read_seq, row.since_seq = before
            row.outcome = Outcome.NO_ROOM
            _save_anew(row)
            return None
        return Claim(
            row.pk,
            row.model_request_id or "",
            choice,
            held.config,
            request,
            stretch.said,
            stretch.uids,
            stretch.more,
        )


def _may_be_enough(conversation: Conversation, row: Analysis) -> bool:
    """By what came since somebody last looked: what has stayed too short is not read anew at each rest. Too
    much at most, since of what was counted before something may have been taken out."""
    rewound = Event.objects.filter(conversation=conversation, type="x.rewound")
    if row.looked_seq <= row.read_seq or rewound.filter(seq__gt=row.looked_seq).exists():
        row.looked_seq, row.looked_size, row.looked_person = row.read_seq, 0, False
    new = amount_after(conversation, row.looked_seq)
    has_person = row.looked_person or new.has_person
    return _noted(row, new.through, row.looked_size + new.size, has_person=has_person)


def _noted(row: Analysis, seq: int, size: int, *, has_person: bool) -> bool:
    """Whether that is enough; kept where it is not."""
    row.looked_seq, row.looked_size, row.looked_person = seq, size, has_person
    enough = has_person and size >= settings.AGENTSITE_LEARNING_CHARACTERS
    if not enough:
        row.save()
    return enough


def end(claim: Claim, ended: SpanModelRequestEnd, answer: str) -> None:
    """Record what the call used, and remember what was learned where that is still wanted. Nothing for one
    that has ended already."""
    with transaction.atomic():
        found = _asked(claim.row, claim.uid)
        if found is None:
            return
        held, row = found
        record_end(held, row, ended)
        row.outcome = _outcome(held, row, claim, ended, answer)
        row.save(update_fields=["outcome"])
        if claim.more and not ended.is_error:
            dispatch(READ, conversation_id=held.pk)


def lose(row: Analysis) -> None:
    """Count a call whose answer nobody will hear as what it has probably cost. It is not made again."""
    with transaction.atomic():
        found = _asked(row.pk, row.model_request_id or "")
        if found is not None:
            held, asked = found
            record_end(held, asked, asked.lost_end)
            asked.outcome = Outcome.LOST
            asked.save(update_fields=["outcome"])


def settle_lost() -> None:
    """Of what processes had asked that ended before the answer."""
    told = "the reading of a conversation %s could not be counted"
    each_apart(lose, lost(Analysis.objects.all()), told=told)


def _asked(pk: int, uid: str) -> tuple[Conversation, Analysis] | None:
    """It with its conversation, which is held, as long as that call has not ended."""
    asked = Analysis.objects.filter(pk=pk, model_request_id=uid, outcome=Outcome.ASKED)
    known = asked.values_list("conversation", flat=True).first()
    if known is None:
        return None
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=known).first()
    row = asked.first()
    return None if held is None or row is None else (held, row)


def _save_anew(row: Analysis) -> None:
    """After its storing was rolled back, which leaves it a key where it had none."""
    if row.pk is not None and not Analysis.objects.filter(pk=row.pk).exists():
        row.pk = None
        row.save(force_insert=True)
    else:
        row.save()


def _known(conversation: Conversation) -> list[Memory]:
    """What the person's agents may be told of her; what waits for her yes is not."""
    mine = Memory.objects.filter(
        store__owner=conversation.owner_id,
        store__organisation=conversation.organisation_id,
        store__main=True,
        kind__in=LEARNABLE,
    )
    return list(mine.trusted().true_at(timezone.now()).order_by("-updated_at", "-pk")[:KNOWN])


def _outcome(
    held: Conversation, row: Analysis, claim: Claim, ended: SpanModelRequestEnd, answer: str
) -> str:
    if ended.is_error:
        return Outcome.LOST if ended.end == "lost" else Outcome.FAILED
    try:
        learnings = learnings_in(answer)
    except Unreadable:
        return Outcome.UNREADABLE
    if not learnings:
        return Outcome.NOTHING
    if not is_wanted(held) or _taken_out_since(held, row):
        return Outcome.DROPPED
    return Outcome.LEARNED if _keep(held, claim, learnings) else Outcome.NOTHING


def _taken_out_since(conversation: Conversation, row: Analysis) -> bool:
    """Whether words were taken out that the model may have read."""
    later = Event.objects.filter(conversation=conversation, seq__gt=row.claimed_seq)
    return later.filter(type="x.content_redacted").exists()


def _keep(conversation: Conversation, claim: Claim, learnings: list[Learning]) -> int:
    """How many are new, which the log is told."""
    untrusted = conversation.others_wrote or has_strangers_words(conversation)
    new: list[Memory] = []
    for learning in learnings:
        if not 1 <= learning.message <= len(claim.said):
            continue
        source = claim.said[learning.message - 1].uid
        try:
            with transaction.atomic():
                kept = _remember(conversation, learning, source, claim.read, untrusted=untrusted)
        except AgentError:
            continue  # a secret, a full or archived store: nothing to tell anybody
        if kept is not None:
            new.append(kept)
    if new:
        told = MemoryLearned(
            conversation_id=conversation.uid,
            count=len(new),
            waiting=sum(memory.waits for memory in new),
        )
        append(conversation.pk, [Entry.of(told)])
    return len(new)


def _remember(
    conversation: Conversation,
    learning: Learning,
    message_uid: str,
    read: tuple[str, ...],
    *,
    untrusted: bool,
) -> Memory | None:
    """None: it was known. It goes with each message that was `read`: the number that the model gave may be
    wrong, and it may have put words of several together."""
    agent = conversation.agent_version.agent.uid
    made = remember(
        actor=conversation.owner,
        store=own_store(actor=conversation.owner, organisation=conversation.organisation),
        text=learning.text,
        kind=learning.kind,
        key=learning.key,
        source=Source(conversation.uid, message_uid, agent, untrusted),
        author=Author(AuthorKind.SESSION, conversation.uid),
    )
    if made.new or made.changed:
        # The one that it named comes last, to which pages lead.
        uids = [*(each for each in read if each != message_uid), message_uid]
        Learned.objects.bulk_create(
            (
                Learned(conversation=conversation, message_uid=uid, memory_uid=made.memory.uid)
                for uid in uids
            ),
            ignore_conflicts=True,
        )
    return made.memory if made.new else None
