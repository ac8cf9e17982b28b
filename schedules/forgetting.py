"""Takes out of runs and of a queue's items what was taken out of the conversation of a run."""

from __future__ import annotations

from conversations.actions.stored_files import forget_copies, remove_files
from conversations.forgetting import Removed
from conversations.models import Event, StoredFile
from harness.content import Text, text_of
from harness.events import (
    AgentMessage,
    SessionStatusIdle,
    SpanOutcomeEvaluationEnd,
    UserDefineOutcome,
    UserMessage,
)
from harness.redacted import REMOVED

from .models import Arrival, OrderRun, QueueItem
from .projection import NOT_MET, first_lines
from .queueing import item_text
from .results import forget_files
from .templates import strangers_of


def forget(removed: Removed) -> None:
    runs = OrderRun.objects.filter(conversation=removed.conversation)
    said = [event for event in removed.of(UserMessage).values() if isinstance(event, UserMessage)]
    # Whoever settles a run's end copies its words, and whoever stores its answer that, under this lock.
    held = list(runs.select_for_update(no_key=True).order_by("pk"))
    if removed.of(AgentMessage):
        forget_files(removed.conversation)
    if has_criteria(removed):
        runs.filter(error=NOT_MET).update(words=REMOVED)
        QueueItem.objects.filter(run__in=held, run__error=NOT_MET).update(words=REMOVED)
    for run in held:
        if words := _words_of(run, removed):
            QueueItem.objects.filter(run=run, words=words).update(words=REMOVED)
            OrderRun.objects.filter(pk=run.pk, words=words).update(words=REMOVED)
        if run.payload is not None and any(strangers_of(run) in each.untrusted_by for each in said):
            _forget_attachments(run)
            OrderRun.objects.filter(pk=run.pk).update(payload=None, attachments=[])
            Arrival.objects.filter(run=run).update(sender=REMOVED, subject="")
        for item in QueueItem.objects.filter(run=run):
            asked = Text(text=item_text(item))
            if any(asked in each.content for each in said):
                QueueItem.objects.filter(pk=item.pk).update(text=REMOVED)


def _forget_attachments(run: OrderRun) -> None:
    """What came with a mail was stored for this run alone, and so were its copies in the workspace: what they
    are called are a stranger's words as well."""
    uids = [uid for uid, _path in run.attachments]
    if run.conversation is not None:
        forget_copies(run.conversation, uids)
    remove_files(StoredFile.objects.filter(uid__in=uids, owner=run.order.owner_id))


def has_criteria(removed: Removed) -> bool:
    """Whether criteria go that runs, and who tells of them, repeat as not met (`NOT_MET`)."""
    return bool(removed.of(UserDefineOutcome, SpanOutcomeEvaluationEnd))


def words_told(removed: Removed) -> set[str]:
    """What runs were told of with words that are taken out."""
    runs = OrderRun.objects.filter(conversation=removed.conversation)
    return {words for run in runs if (words := _words_of(run, removed))}


def _words_of(run: OrderRun, removed: Removed) -> str:
    """How the run ended, if that is what an event says that is taken out: its answer, or its error."""
    if run.ended_at is None:
        return ""
    log = Event.objects.filter(conversation=removed.conversation)
    rest = log.filter(created_at=run.ended_at, type="session.status_idle").order_by("-seq").first()
    if rest is None:
        return ""
    if run.state == OrderRun.State.FAILED:
        ended = removed.of(SessionStatusIdle).get(rest.uid)
        return ended.stop_details.message[:500] if ended and ended.stop_details else ""
    last = log.filter(type="agent.message", seq__lt=rest.seq).order_by("-seq").first()
    answer = removed.of(AgentMessage).get(last.uid) if last is not None else None
    return first_lines(text_of(answer.content))[:500] if answer is not None else ""
