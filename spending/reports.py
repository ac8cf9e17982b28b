"""What was spent, summed up by day, model, purpose, conversation and person, from the usage rows.

Whose rows somebody may see is decided by whoever passes them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Organisation, User
from conversations.models import Conversation
from wire.spreadsheets import cell

from .amounts import money, number
from .models import Usage

LONGEST_DAYS = 366
MOST_CONVERSATIONS = 50
"""The dearest ones; the export holds all."""

_SUMS: dict[str, Any] = {
    "calls": Count("pk"),
    "fresh": Sum("input_tokens", default=0) + Sum("cache_creation_input_tokens", default=0),
    "cached": Sum("cache_read_input_tokens", default=0),
    "output": Sum("output_tokens", default=0),
    "unpriced": Count("pk", filter=Q(cost=None)),
    "cost": Sum("cost", default=Decimal(0)),  # last: from here on the name means the sum
}


@dataclass(frozen=True, slots=True)
class Line:
    """Sums of some model calls. `cost` is in US dollars and leaves out `unpriced` calls."""

    label: str
    calls: int
    fresh: int
    cached: int
    output: int
    cost: Decimal
    unpriced: int
    address: str = ""

    @property
    def tokens(self) -> int:
        return self.fresh + self.cached + self.output

    @property
    def fresh_text(self) -> str:
        return number(self.fresh)

    @property
    def cached_text(self) -> str:
        return number(self.cached)

    @property
    def output_text(self) -> str:
        return number(self.output)

    @property
    def cost_text(self) -> str:
        """Never a sum that hides calls of unknown cost."""
        if not self.unpriced:
            return money(self.cost)
        if self.unpriced == self.calls:
            return _("unknown")
        return ngettext(
            "%(cost)s and %(calls)s call without a price",
            "%(cost)s and %(calls)s calls without a price",
            self.unpriced,
        ) % {"cost": money(self.cost), "calls": number(self.unpriced)}


@dataclass(frozen=True, slots=True)
class Report:
    total: Line
    days: list[Line] = field(default_factory=list)
    models: list[Line] = field(default_factory=list)
    purposes: list[Line] = field(default_factory=list)
    conversations: list[Line] = field(default_factory=list)
    members: list[Line] = field(default_factory=list)

    @property
    def cached_percent(self) -> int:
        """Of the input tokens: what the cache saved from being paid in full."""
        everything = self.total.fresh + self.total.cached
        return 100 * self.total.cached // everything if everything else 0


@dataclass(frozen=True, slots=True)
class Span:
    """Whole days of the site's time zone, both included."""

    first: date
    last: date

    @classmethod
    def latest(cls, days: int = 30) -> Span:
        today = timezone.localdate()
        return cls(today - timedelta(days=days - 1), today)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def of(self, rows: QuerySet[Usage]) -> QuerySet[Usage]:
        after = self.last + timedelta(days=1)
        return rows.filter(created_at__gte=_midnight(self.first), created_at__lt=_midnight(after))


def rows_of_person(user: User, organisation: Organisation, span: Span) -> QuerySet[Usage]:
    return span.of(Usage.objects.filter(organisation=organisation, user=user))


def rows_of_organisation(organisation: Organisation, span: Span) -> QuerySet[Usage]:
    return span.of(Usage.objects.filter(organisation=organisation))


def report_of_person(rows: QuerySet[Usage]) -> Report:
    """A fixed number of queries, however many rows."""
    return Report(**_common(rows), conversations=list(_conversations(rows)))


def report_of_organisation(rows: QuerySet[Usage]) -> Report:
    """The same with its members instead of their conversations, which are their own."""
    return Report(**_common(rows), members=list(_members(rows)))


def _common(rows: QuerySet[Usage]) -> dict[str, Any]:
    rows = rows.order_by()
    by_day: Any = rows.annotate(day=TruncDate("created_at")).values("day").annotate(**_SUMS)
    by_model: Any = rows.values("provider", "model").annotate(**_SUMS)
    by_purpose: Any = rows.values("purpose").annotate(**_SUMS)
    return {
        "total": Line(_("Total"), **rows.aggregate(**_SUMS)),
        "days": [_line(row.pop("day").isoformat(), row) for row in by_day.order_by("-day")],
        "models": [
            _line(f"{row.pop('provider')}/{row.pop('model')}", row)
            for row in _dearest_first(by_model)
        ],
        "purposes": [_line(row.pop("purpose"), row) for row in _dearest_first(by_purpose)],
    }


def _conversations(rows: QuerySet[Usage]) -> Iterator[Line]:
    sums = rows.order_by().values("conversation").annotate(**_SUMS)
    dearest = list(_dearest_first(sums)[:MOST_CONVERSATIONS])
    known = Conversation.objects.in_bulk([row["conversation"] for row in dearest])
    for row in dearest:
        conversation = known.get(row.pop("conversation"))
        if conversation is None:
            yield _line(_("Deleted conversations"), row)
        else:
            label = conversation.title or _("Untitled")
            yield _line(label, row, conversation.get_absolute_url())


def _members(rows: QuerySet[Usage]) -> Iterator[Line]:
    sums = rows.order_by().values("user").annotate(**_SUMS)
    people = User.objects.in_bulk([row["user"] for row in sums])
    for row in _dearest_first(sums):
        person = people.get(row.pop("user"))
        yield _line(str(person) if person else _("Deleted people"), row)


def _dearest_first(sums: Any) -> Any:
    return sums.order_by("-cost", F("fresh").desc(), "-calls")


def _line(label: str, row: dict[str, Any], address: str = "") -> Line:
    return Line(label=label, address=address, **row)


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


# --- export ---------------------------------------------------------------------------------------

COLUMNS = (
    "time",
    "person",
    "conversation",
    "purpose",
    "provider",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_write_tokens",
    "cache_read_tokens",
    "cost_usd",
    "milliseconds",
)


EXPORT_PAGE = 2000
"""Rows of one query of the file: between two of them no cursor stays open."""


def export_lines(rows: QuerySet[Usage]) -> Iterable[list[str]]:
    """One line for each model call, oldest first; an unknown cost is empty."""
    yield list(COLUMNS)
    calls = rows.order_by("created_at", "pk").values_list(
        "pk",
        "created_at",
        "user__username",
        "conversation__uid",
        "purpose",
        "provider",
        "model",
        *Usage.TOKENS,
        "cost",
        "milliseconds",
    )
    page = list(calls[:EXPORT_PAGE])
    while page:
        for _pk, moment, *rest in page:
            yield [moment.isoformat(timespec="seconds"), *(cell(value) for value in rest)]
        last, at = page[-1][:2]
        later = Q(created_at=at, pk__gt=last) | Q(created_at__gt=at)
        # The first condition follows from the second; it is the one that an index can begin with.
        page = list(calls.filter(created_at__gte=at).filter(later)[:EXPORT_PAGE])
