"""What the operators' page reads: what waits, runs, is put off and has failed, across organisations.

Every list is a keyset page and every figure stops counting at a bound, so that the page stays cheap
however much there is. Nothing here is what people wrote but titles and reasons of wakes, which the
page shows only to whoever may read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import models
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from conversations.claims import owing
from conversations.models import Activation, BackgroundCommand, Conversation, Event, Run, Wake
from deadletters.models import DeadLetter, DeadLetterQuerySet
from harness.errors import Invalid
from harness.events import RequiresAction, SessionError, SessionStatusIdle, load
from reading.digits import number_of
from reading.moments import moment_of
from reading.unseen import visible
from subagents.models import Subagent, Tree
from teams_app.members import Member
from teams_app.models import Team, Teammate

PAGE_SIZE = 25
COUNTED = 1_000
"""Figures end here; more is shown as “1000+”."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One page of a list; `after` continues it and is empty on the last page."""

    rows: Sequence[Any]
    after: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the page with what several tables say about it."""

    of: Any
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    number: int
    """COUNTED + 1 stands for more."""
    since: datetime | None = None
    """Since when the oldest of them is there."""

    @property
    def shown(self) -> str:
        return str(self.number) if self.number <= COUNTED else f"{COUNTED}+"


# --- figures --------------------------------------------------------------------------------------


def figures() -> dict[str, Figure]:
    """By section."""
    return {
        "backlog": _figure(owing(), "active_at"),
        "running": _figure(_running(), "started_at"),
        "rescheduling": _figure(_retries()),
        "waiting": _figure(_waiting(), "active_at"),
        "wakes": _figure(_wakes()),
        "background": _figure(_background(), "started_at"),
        "teams": _figure(_teams()),
        "subagents": _figure(_trees()),
        "letters": _figure(DeadLetter.objects.open(), "created_at"),
    }


def _figure(queryset: QuerySet[Any], since: str = "") -> Figure:
    number = queryset.order_by()[: COUNTED + 1].count()
    if not (number and since):
        return Figure(number)
    return Figure(number, queryset.order_by(since).values_list(since, flat=True)[0])


# --- lists ----------------------------------------------------------------------------------------


def backlog(after: str = "") -> Slice:
    """Conversations that owe a run and have none, the longest waiting first."""
    found = owing().select_related("organisation", "owner")
    return _by_time(found, "active_at", after)


def running(after: str = "") -> Slice:
    """Runs with their lease and the model requests they made so far."""
    page = _by_id(_running().select_related("conversation__organisation"), after)
    made = Event.objects.filter(
        run__in=[run.pk for run in page.rows], type="span.model_request_start"
    )
    steps = dict(made.order_by().values_list("run").annotate(Count("pk")))
    return Slice([Row(run, {"steps": steps.get(run.pk, 0)}) for run in page.rows], page.after)


def rescheduling(after: str = "") -> Slice:
    """Failed requests that are put off, with the error that caused it, the next due first."""
    found = _retries().select_related("conversation__organisation")
    page = _by_time(found, "due_at", after)
    causes = _errors_before([wake.event_uid for wake in page.rows])
    return Slice(
        [Row(wake, {"error": causes.get(wake.event_uid)}) for wake in page.rows], page.after
    )


def waiting(after: str = "") -> Slice:
    """Conversations that wait for people, with the tools whose calls ask, the longest waiting first."""
    rest = Event.objects.filter(conversation=OuterRef("pk"), type="session.status_idle")
    found = _waiting().select_related("organisation", "owner")
    last_rest = Subquery(
        rest.order_by("-seq").values("payload")[:1], output_field=models.JSONField()
    )
    page = _by_time(found.annotate(last_rest=last_rest), "active_at", after)
    asking = {row.pk: _asking(row.last_rest) for row in page.rows}
    calls = Event.objects.filter(uid__in=[uid for uids in asking.values() for uid in uids])
    names = {row.uid: row.payload.get("name", "") for row in calls.only("uid", "payload")}
    return Slice(
        [
            Row(row, {"tools": [names[uid] for uid in asking[row.pk] if uid in names]})
            for row in page.rows
        ],
        page.after,
    )


def wakes(after: str = "") -> Slice:
    """Agents' delayed wakes, the next due first."""
    return _by_time(_wakes().select_related("conversation__organisation"), "due_at", after)


def background(after: str = "") -> Slice:
    """Background commands that run, the longest running first."""
    return _by_time(_background().select_related("conversation__organisation"), "started_at", after)


def teams(after: str = "") -> Slice:
    """Teams with somebody who was not dismissed, and how each of these stands; the newest first."""
    page = _by_id(_teams().select_related("lead__organisation"), after, newest=True)
    there = Teammate.objects.active().filter(team__in=[team.pk for team in page.rows])
    members: dict[int, list[Member]] = {}
    for each in there.select_related("team", "conversation"):
        members.setdefault(each.team_id, []).append(Member(each.team, each.conversation, each))
    return Slice(
        [Row(team, {"members": members.get(team.pk, ())}) for team in page.rows], page.after
    )


def subagents(after: str = "") -> Slice:
    """Conversations below which subagents are at work, and each of these; the newest first."""
    page = _by_id(_trees().select_related("root__organisation"), after, newest=True)
    live = Subagent.objects.live().filter(root__in=[tree.pk for tree in page.rows])
    orphans = set(live.orphaned().values_list("pk", flat=True))
    rows: dict[int, list[Row]] = {}
    for each in live.select_related("child").order_by("pk"):
        facts = {"kind": visible(each.kind), "orphan": each.pk in orphans}
        rows.setdefault(each.root_id, []).append(Row(each, facts))
    return Slice(
        [Row(tree.root, {"subagents": rows.get(tree.pk, ())}) for tree in page.rows], page.after
    )


def letters(after: str = "", **chosen: str) -> Slice:
    """Dead letters, newest first; `chosen` as `chosen_letters` takes it."""
    found = chosen_letters(**chosen).select_related(
        "conversation__organisation", "organisation", "closed_by"
    )
    return _by_id(found, after, newest=True)


def journal(after: str = "") -> Slice:
    """The latest of the journal of claims."""
    found = Activation.objects.select_related("conversation__organisation")
    return _by_id(found, after, newest=True)


def chosen_letters(
    *, state: str = "", code: str = "", cause: str = "", organisation: str = ""
) -> DeadLetterQuerySet:
    """Letters of a state (the open ones), a code, a class, an organisation's public id; each may be
    left out. Raises Invalid for a state or class that there is none of."""
    for name, value, known in (
        ("state", state, DeadLetter.State.values),
        ("cause", cause, DeadLetter.Cause.values),
    ):
        if value and value not in known:
            raise Invalid(
                _("There is no “%(value)s”.") % {"value": value},
                field=name,
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(known)},
            )
    found = DeadLetter.objects.filter(state=state or DeadLetter.State.OPEN)
    wanted = {"code": code, "cause": cause, "organisation__uid": organisation}
    return found.filter(**{name: value for name, value in wanted.items() if value})


LISTS: dict[str, Callable[..., Slice]] = {
    "backlog": backlog,
    "running": running,
    "rescheduling": rescheduling,
    "waiting": waiting,
    "wakes": wakes,
    "background": background,
    "teams": teams,
    "subagents": subagents,
    "letters": letters,
    "journal": journal,
}


# --- which rows -----------------------------------------------------------------------------------


def _running() -> QuerySet[Run]:
    return Run.objects.filter(state=Run.State.RUNNING)


def _retries() -> QuerySet[Wake]:
    return Wake.objects.waiting().filter(kind=Wake.Kind.RETRY)


def _wakes() -> QuerySet[Wake]:
    return Wake.objects.waiting().filter(kind=Wake.Kind.AGENT)


def _background() -> QuerySet[BackgroundCommand]:
    return BackgroundCommand.objects.running()


def _teams() -> QuerySet[Team]:
    return Team.objects.live()


def _trees() -> QuerySet[Tree]:
    return Tree.objects.filter(pk__in=Subagent.objects.live().order_by().values("root"))


def _waiting() -> QuerySet[Conversation]:
    return Conversation.objects.filter(
        status=Conversation.Status.IDLE, stop_reason="requires_action"
    )


def _errors_before(uids: Sequence[str]) -> dict[str, SessionError]:
    """The error stored right before each of these events, by the event's id."""
    places = {
        (row.conversation_id, row.seq - 1): row.uid
        for row in Event.objects.filter(uid__in=uids).only("uid", "conversation_id", "seq")
    }
    if not places:
        return {}
    places_before = reduce(or_, (Q(conversation_id=pk, seq=seq) for pk, seq in places))
    found = Event.objects.filter(places_before, type="session.error")
    return {
        places[row.conversation_id, row.seq]: value
        for row in found
        if isinstance(value := row.value, SessionError)
    }


def _asking(last_rest: Mapping[str, Any] | None) -> tuple[str, ...]:
    rest = load(last_rest) if last_rest else None
    if isinstance(rest, SessionStatusIdle) and isinstance(rest.stop_reason, RequiresAction):
        return rest.stop_reason.event_ids
    return ()


# --- pages ----------------------------------------------------------------------------------------


def _by_id(queryset: QuerySet[Any], after: str, *, newest: bool = False) -> Slice:
    if after:
        pk = number_of(after)
        if pk is None:
            raise _no_such_place()
        queryset = queryset.filter(**{"pk__lt" if newest else "pk__gt": pk})
    found = list(queryset.order_by("-pk" if newest else "pk")[: PAGE_SIZE + 1])
    rows = found[:PAGE_SIZE]
    return Slice(rows, str(rows[-1].pk) if len(found) > PAGE_SIZE else "")


def _by_time(queryset: QuerySet[Any], name: str, after: str) -> Slice:
    """In the order of a moment, `pk` making it total."""
    if after:
        text, _separator, key = after.partition("~")
        moment, pk = moment_of(text), number_of(key)
        if moment is None or moment.tzinfo is None or pk is None:
            raise _no_such_place()
        behind = Q(**{f"{name}__gt": moment}) | Q(**{name: moment, "pk__gt": pk})
        queryset = queryset.filter(behind)
    found = list(queryset.order_by(name, "pk")[: PAGE_SIZE + 1])
    rows = found[:PAGE_SIZE]
    last = f"{getattr(rows[-1], name).isoformat()}~{rows[-1].pk}" if rows else ""
    return Slice(rows, last if len(found) > PAGE_SIZE else "")


def _no_such_place() -> Invalid:
    return Invalid(
        _("This is not a place in the list."),
        field="after",
        hint=_("Begin again with the first page."),
    )
