"""How many conversations of one person and of one organisation run at once, and who is next.

A claim takes a seat or leaves a row in the line; a release wakes whoever the free seat is for. Both
hold the organisation and the owner while they look, so that no seat is missed. Conversations that
agents started run beside the one that started them and take none: it may be waiting for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet

from accounts.models import Organisation, User
from jobs.prepared import Prepared

from .models import Conversation, Run, SeatWait

Waiting = tuple[int, int, int]
"""A conversation, its owner, its organisation."""

_ORGANISATION = Prepared(
    lambda given: (
        Organisation.objects.select_for_update(no_key=True)
        .order_by()
        .filter(pk=given.pk)
        .values_list("pk")
    )
)
_PERSON = Prepared(
    lambda given: User.objects.select_for_update(no_key=True).filter(pk=given.pk).values_list("pk")
)
_LINE = Prepared(lambda given: _waiting(Q(owner=given.owner) | Q(organisation=given.organisation)))
_RUNNING = Prepared(
    lambda given: _counted(
        Q(conversation__owner=given.owner) | Q(conversation__organisation=given.organisation)
    )
)
"""What `_running` asks for where one person's conversations of one organisation wait."""


def take(conversation: Conversation) -> bool:
    """Whether it may run now; if not, it stands in the line.

    In the claim's transaction, with the conversation locked and claimed by nobody.
    """
    if not _is_counted(conversation):
        return True
    hold_line(conversation)
    mine: Waiting = (conversation.pk, conversation.owner_id, conversation.organisation_id)
    line = _line(conversation.owner_id, conversation.organisation_id)
    stands_already = mine in line
    if not stands_already:
        line.append(mine)
    may_run = conversation.pk in _admitted(line)
    if may_run and stands_already:
        SeatWait.objects.filter(conversation=conversation).delete()
    elif not may_run and not stands_already:
        SeatWait.objects.create(
            conversation=conversation, owner_id=mine[1], organisation_id=mine[2]
        )
    return may_run


def hold_line(conversation: Conversation) -> None:
    """Lock what its seats are counted by, until the transaction ends; always in this order."""
    if not _is_counted(conversation):
        return
    if settings.AGENTSITE_RUNS_PER_ORGANISATION:
        _ORGANISATION.first(pk=conversation.organisation_id)
    if settings.AGENTSITE_RUNS_PER_PERSON:
        _PERSON.first(pk=conversation.owner_id)


def next_after(conversation: Conversation) -> list[int]:
    """Who may run now that this conversation's seat is free, oldest first. Hints: whoever is woken
    asks for its seat itself."""
    if not _is_counted(conversation):
        return []
    return _admitted(_line(conversation.owner_id, conversation.organisation_id))


def next_of_all() -> list[int]:
    """Everybody for whom there is a seat: for the sweep, should a hint have been lost."""
    return _admitted(list(_waiting(Q())))


def _is_counted(conversation: Conversation) -> bool:
    limited = settings.AGENTSITE_RUNS_PER_PERSON or settings.AGENTSITE_RUNS_PER_ORGANISATION
    return bool(limited) and conversation.parent_id is None


def _line(owner: int, organisation: int) -> list[Waiting]:
    return _LINE.all(owner=owner, organisation=organisation)


def _waiting(wanted: Q) -> QuerySet[SeatWait, Waiting]:
    rows = SeatWait.objects.filter(wanted).order_by("id")
    return rows.values_list("conversation_id", "owner_id", "organisation_id")


def _admitted(line: list[Waiting]) -> list[int]:
    """Those of the line, in its order, for whom there is a seat. One who finds none because of her
    own limit keeps nobody else waiting."""
    if not line:
        return []
    people, organisations = _running(line)
    admitted = []
    for conversation, owner, organisation in line:
        if _has_room(people[owner], settings.AGENTSITE_RUNS_PER_PERSON) and _has_room(
            organisations[organisation], settings.AGENTSITE_RUNS_PER_ORGANISATION
        ):
            people[owner] += 1
            organisations[organisation] += 1
            admitted.append(conversation)
    return admitted


def _has_room(running: int, limit: int) -> bool:
    return limit == 0 or running < limit


def _running(line: list[Waiting]) -> tuple[Counter[int], Counter[int]]:
    """How many seats are taken, by person and by organisation."""
    owners, organisations = {each[1] for each in line}, {each[2] for each in line}
    rows: Iterable[Waiting]
    if len(owners) == len(organisations) == 1:
        rows = _RUNNING.all(owner=min(owners), organisation=min(organisations))
    else:
        rows = _counted(
            Q(conversation__owner__in=owners) | Q(conversation__organisation__in=organisations)
        )
    by_owner: Counter[int] = Counter()
    by_organisation: Counter[int] = Counter()
    for owner, organisation, runs in rows:
        by_owner[owner] += runs
        by_organisation[organisation] += runs
    return by_owner, by_organisation


def _counted(wanted: Q) -> QuerySet[Run, Any]:
    """Owner, organisation, and how many of their conversations run."""
    return (
        Run.objects.filter(wanted, state=Run.State.RUNNING, conversation__parent=None)
        .order_by()
        .values_list("conversation__owner", "conversation__organisation")
        .annotate(runs=Count("pk"))
    )
