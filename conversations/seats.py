"""How many conversations of one person and of one organisation run at once, and who is next.

A claim takes a seat or leaves a row in the line; a release wakes whoever the free seat is for. Both
hold the organisation and the person while they look, so that no seat is missed. The person is the one
whose place the owner takes (`accounts.persons`). Conversations that
agents started run beside the one that started them and take none: it may be waiting for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet

from accounts.models import Organisation, User
from accounts.persons import place_of
from jobs.prepared import Prepared

from .models import Conversation, Run, SeatWait

Waiting = tuple[int, int, int]
"""A conversation, the person whose place its owner takes, its organisation."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What the seats of a conversation are counted by, held until the transaction ends."""

    person: int
    organisation: int


_ORGANISATION = Prepared(
    lambda given: (
        Organisation.objects.select_for_update(no_key=True)
        .order_by()
        .filter(pk=given.pk)
        .values_list("pk")
    )
)
_PERSON = Prepared(
    lambda given: (
        User.objects.select_for_update(no_key=True)
        .order_by()
        .filter(
            pk__in=Conversation.objects.order_by()
            .filter(pk=given.conversation)
            .values(person=place_of("owner"))
        )
        .values_list("pk")
    )
)
_QUEUE = Prepared(
    lambda given: _waiting(Q(person=given.person) | Q(organisation=given.organisation))
)
_RUNNING = Prepared(
    lambda given: _counted(
        Q(person=given.person) | Q(conversation__organisation=given.organisation)
    )
)
"""What `_running` asks for where one person's conversations of one organisation wait."""


def take(conversation: Conversation) -> bool:
    """Whether it may run now; if not, it stands in the line.

    In the claim's transaction, with the conversation locked and claimed by nobody.
    """
    if not _is_counted(conversation):
        return True
    locked = _lock(conversation)
    mine: Waiting = (conversation.pk, locked.person, locked.organisation)
    queue = _waiting_in(locked)
    stands_already = mine in queue
    if not stands_already:
        queue.append(mine)
    may_run = conversation.pk in _admitted(queue)
    if may_run and stands_already:
        SeatWait.objects.filter(conversation=conversation).delete()
    elif not may_run and not stands_already:
        SeatWait.objects.create(
            conversation=conversation,
            owner_id=conversation.owner_id,
            organisation_id=conversation.organisation_id,
        )
    return may_run


def lock_queue(conversation: Conversation) -> Queue | None:
    """Lock what its seat is counted by, until the transaction ends; None if it takes none."""
    return _lock(conversation) if _is_counted(conversation) else None


def next_after(queue: Queue | None) -> list[int]:
    """Who may run now that a seat of this line is free, oldest first. Hints: whoever is woken asks for
    its seat itself."""
    return _admitted(_waiting_in(queue)) if queue is not None else []


def next_of_all() -> list[int]:
    """Everybody for whom there is a seat: for the sweep, should a hint have been lost."""
    return _admitted(list(_waiting(Q())))


def _is_counted(conversation: Conversation) -> bool:
    limited = settings.AGENTSITE_RUNS_PER_PERSON or settings.AGENTSITE_RUNS_PER_ORGANISATION
    return bool(limited) and conversation.parent_id is None


def _lock(conversation: Conversation) -> Queue:
    """Always in this order."""
    if settings.AGENTSITE_RUNS_PER_ORGANISATION:
        _ORGANISATION.first(pk=conversation.organisation_id)
    found = _PERSON.first(conversation=conversation.pk)
    person: int = found[0] if found is not None else conversation.owner_id
    return Queue(person, conversation.organisation_id)


def _waiting_in(queue: Queue) -> list[Waiting]:
    return _QUEUE.all(person=queue.person, organisation=queue.organisation)


def _waiting(wanted: Q) -> QuerySet[SeatWait, Waiting]:
    rows = SeatWait.objects.annotate(person=place_of("owner")).filter(wanted).order_by("id")
    return rows.values_list("conversation_id", "person", "organisation_id")


def _admitted(queue: list[Waiting]) -> list[int]:
    """Those of the line, in its order, for whom there is a seat. One who finds none because of her
    own limit keeps nobody else waiting."""
    if not queue:
        return []
    people, organisations = _running(queue)
    admitted = []
    for conversation, person, organisation in queue:
        if _has_room(people[person], settings.AGENTSITE_RUNS_PER_PERSON) and _has_room(
            organisations[organisation], settings.AGENTSITE_RUNS_PER_ORGANISATION
        ):
            people[person] += 1
            organisations[organisation] += 1
            admitted.append(conversation)
    return admitted


def _has_room(running: int, limit: int) -> bool:
    return limit == 0 or running < limit


def _running(queue: list[Waiting]) -> tuple[Counter[int], Counter[int]]:
    """How many seats are taken, by person and by organisation."""
    people, organisations = {each[1] for each in queue}, {each[2] for each in queue}
    rows: Iterable[Waiting]
    if len(people) == len(organisations) == 1:
        rows = _RUNNING.all(person=min(people), organisation=min(organisations))
    else:
        rows = _counted(Q(person__in=people) | Q(conversation__organisation__in=organisations))
    by_person: Counter[int] = Counter()
    by_organisation: Counter[int] = Counter()
    for person, organisation, runs in rows:
        by_person[person] += runs
        by_organisation[organisation] += runs
    return by_person, by_organisation


def _counted(wanted: Q) -> QuerySet[Run, Any]:
    """Person, organisation, and how many of their conversations run."""
    return (
        Run.objects.annotate(person=place_of("conversation__owner"))
        .filter(wanted, state=Run.State.RUNNING, conversation__parent=None)
        .order_by()
        .values_list("person", "conversation__organisation")
        .annotate(runs=Count("pk"))
    )
