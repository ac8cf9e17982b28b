"""What `conversations` itself keeps of an event beside the log, and that goes with it (`forgetting`): the
search's index, traces, links' titles, text that was still arriving, kept answers to requests, why runs broke
and how background commands ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from harness.events import BackgroundFinished, dump
from harness.events import Event as EventValue
from harness.redacted import redacted

from .forgetting import Removed
from .models import (
    BackgroundCommand,
    Link,
    ModelTrace,
    PartialBlock,
    RequestKey,
    Run,
    SearchEntry,
)

_TOLD = ("content", "description", "rubric", "deny_message")
"""Fields of an event in an answer that hold words, as the log names them."""
_SENT = "user."
"""How types of what programs send begin."""
_SENT_ALONG = ("x_files", "x_front_end")


def forget_own(removed: Removed) -> None:
    of_it = {"conversation": removed.conversation}
    for entry in removed.entries:
        SearchEntry.objects.filter(**of_it, seq=entry.seq).delete()
        PartialBlock.objects.filter(**of_it, uid=entry.uid).delete()
    PartialBlock.objects.filter(**of_it, continues=removed.subject).delete()
    for title in removed.titles:
        Link.objects.filter(**of_it, title=title).update(title="")
    ModelTrace.objects.filter(**of_it).delete()
    for ended in removed.of(BackgroundFinished).values():
        BackgroundCommand.objects.filter(**of_it, uid=ended.background_id).update(detail="")
    for run in Run.objects.filter(**of_it, error__contains=":"):
        # The kind of the error stays. Its words may be anybody's.
        Run.objects.filter(pk=run.pk).update(error=run.error.partition(":")[0])
    _forget_answers(removed)


def _forget_answers(removed: Removed) -> None:
    """In answers that are kept for requests that come again: the words alone, so that they stay answers."""
    events = {
        entry.uid: entry.event for entry in removed.entries if entry.event.type.startswith(_SENT)
    }
    kept = RequestKey.objects.filter(
        organisation=removed.conversation.organisation_id,
        created_at__gte=removed.conversation.created_at,
    ).exclude(status=0)
    # An answer names what it tells of; most tell of other conversations.
    words = kept.annotate(text=Cast("answer", TextField()))
    for uid in {removed.conversation.uid, *events}:
        for row in words.filter(text__contains=uid):
            for each in _objects(row.answer):
                _silence(each, events, removed)
            row.save(update_fields=["answer"])


def _silence(each: dict[str, Any], events: Mapping[str, EventValue], removed: Removed) -> None:
    """Take the words from this object of an answer, if it tells one of these events."""
    event = events.get(str(each.get("id")))
    if event is not None and each.get("type") == event.type:
        after = dump(redacted(event))
        for name in _TOLD:
            if name not in each or name not in after:
                continue
            if isinstance(each[name], dict):
                each[name]["content"] = after[name]  # a rubric is a text with a type
            else:
                each[name] = after[name]
        for name in _SENT_ALONG:
            each.pop(name, None)
    elif each.get("id") == removed.conversation.uid and each.get("title") in removed.titles:
        each["title"] = None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)
