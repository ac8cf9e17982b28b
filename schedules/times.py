"""When something is due: cron expressions in a time zone and single dates, and what becomes of due times
that nobody was there for.

Pure arithmetic: no table, no clock (the present is an argument), no randomness (jitter follows from the
order and the due time). What is done at a due time is `running`'s.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush, merge
from itertools import islice, takewhile
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.moments import is_moment

EXPRESSION_LIMIT = 200
MOST_DATES = 100
MOST_MISSED = 100
"""Missed due times that are made up for, whatever was asked for."""
MOST_COUNTED = 1_000
"""Skipped due times are counted up to here; more are "at least so many"."""
LARGEST_JITTER = 9 * 60
"""Seconds; the public API's, as is the share below."""
CHANGE = timedelta(hours=4)
"""More than any clock is set forward or back at once."""
JITTER_SHARE = 0.15
"""Of the time to the next due time: so starts keep the order of due times."""

Missed = Literal["skip", "once", "all"]

_ITEM = re.compile(
    r"(?:\*|(?:\d{1,2}|[A-Za-z]{3})(?:-(?:\d{1,2}|[A-Za-z]{3}))?)(?:/\d{1,2})?", re.ASCII
)
_NAMED_FIELDS = (3, 4)
"""Month and day of the week take names."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A five-field cron expression on the clocks of a time zone. Made by `read_cron`."""

    expression: str
    zone: str

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Each due time after `moment`, in UTC and in order, none twice.

        Clocks that change count as Debian's cron has it: what is due in an hour that is left out happens
        right after it, what is due in an hour that comes twice happens the first time; expressions whose
        minute or hour begins with `*` go by the time that passes.
        """
        last = moment
        for due in self._instants(moment):
            if due > last:
                last = due
                yield due

    def _instants(self, moment: datetime) -> Iterator[datetime]:
        """In order; some may come twice, and some lie before `moment`."""
        zone = ZoneInfo(self.zone)
        here = moment.astimezone(zone)
        around = [(moment + away).astimezone(zone) for away in (-CHANGE, CHANGE)]
        wall = here.replace(tzinfo=None, fold=0)
        if any(each.utcoffset() != here.utcoffset() for each in around):
            wall -= CHANGE
        minute, hour, *_days = self.expression.split()
        by_elapsed = minute.startswith("*") or hour.startswith("*")
        # The library counts on a clock that never changes; what changes is judged here.
        waiting: list[datetime] = []
        for due in CronSim(self.expression, wall):
            first = due.replace(tzinfo=zone)
            again = due.replace(tzinfo=zone, fold=1)
            at = first.astimezone(UTC)
            if at.astimezone(zone).replace(tzinfo=None) != due:
                if by_elapsed:
                    continue
                at = _behind_the_gap(due, zone)
            heappush(waiting, at)
            if by_elapsed and (repeated := again.astimezone(UTC)) != at:
                heappush(waiting, repeated)
            # The first instants of wall times are in order, so nothing earlier comes any more.
            while waiting and waiting[0] <= at:
                yield heappop(waiting)
        yield from sorted(waiting)


def _behind_the_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first minute that the clock shows after one that it leaves out."""
    while True:
        wall += timedelta(minutes=1)
        at = wall.replace(tzinfo=zone).astimezone(UTC)
        if at.astimezone(zone).replace(tzinfo=None) == wall:
            return at


def read_cron(expression: str, zone: str) -> Cron:
    """Raises Invalid naming `schedule.expression` or `schedule.timezone`."""
    if zone not in zones():
        raise Invalid(
            _("There is no time zone “%(name)s”.") % {"name": zone[:60]},
            field="schedule.timezone",
            hint=_("Give an IANA name such as Europe/Berlin, or UTC."),
        )
    fields = expression[:EXPRESSION_LIMIT].split()
    if len(expression) > EXPRESSION_LIMIT or len(fields) != 5:
        raise Invalid(
            _("A cron expression has five fields: minute, hour, day, month, day of the week."),
            field="schedule.expression",
            hint=_("“0 9 * * 1-5” is nine o'clock from Monday to Friday."),
        )
    for place, text in enumerate(fields):
        named = place in _NAMED_FIELDS
        read = all(_ITEM.fullmatch(item) for item in text.split(","))
        if not read or (not named and re.search("[A-Za-z]", text)):
            raise _unreadable(text)
    cron = Cron(" ".join(fields).upper(), zone)
    try:
        first = next(cron.after(datetime(2024, 1, 1, tzinfo=UTC)), None)
    except CronSimError:
        raise _unreadable(expression) from None
    if first is None:
        raise Invalid(
            _("“%(text)s” never comes.") % {"text": cron.expression},
            field="schedule.expression",
            hint=_("No month has that day."),
        )
    return cron


def _unreadable(text: str) -> Invalid:
    return Invalid(
        _("“%(text)s” is no part of a cron expression.") % {"text": text[:60]},
        field="schedule.expression",
        hint=_("Numbers, names of months and days, “*”, “-”, “,” and “/” are understood."),
    )


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    """The IANA names this machine knows."""
    return frozenset(available_timezones() - {"localtime", "posixrules", "Factory"})


@dataclass(frozen=True, slots=True)
class Timing:
    """All the times at which one order is due."""

    key: str
    """Whose they are: jitter follows from it."""
    cron: Cron | None = None
    dates: tuple[datetime, ...] = ()
    jitter: int = 0
    """Most seconds after its due time that a start is put off."""

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Each due time after `moment`, in UTC and in order, none twice."""
        dates = sorted({at.astimezone(UTC) for at in self.dates if at > moment})
        cron = self.cron.after(moment) if self.cron else iter(())
        last = moment
        for due in merge(dates, cron):
            if due > last:
                last = due
                yield due

    def upcoming(self, moment: datetime, count: int) -> list[datetime]:
        return list(islice(self.after(moment), count))

    def start_of(self, due: datetime) -> datetime:
        """When what is due then is begun: the same whoever asks, at most `jitter` seconds later and always
        before the next due time."""
        most = min(self.jitter, LARGEST_JITTER)
        following = next(self.after(due), None) if most else None
        if following is not None:
            most = min(most, int((following - due).total_seconds() * JITTER_SHARE))
        if not most:
            return due
        digest = hashlib.sha256(f"{self.key} {due.isoformat()}".encode()).digest()
        return due + timedelta(seconds=int.from_bytes(digest[:8], "big") % (most + 1))

    def next_after(self, handled: datetime) -> tuple[datetime, datetime] | None:
        """The next due time and its start; None: none comes any more."""
        due = next(self.after(handled), None)
        return None if due is None else (due, self.start_of(due))


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of due times that passed while nobody looked."""

    missed: Missed = "skip"
    most: int = 1
    """With `all`: the last so many."""
    grace: timedelta = timedelta(minutes=5)
    """What is no later than this is not missed, only late."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the clock found."""

    run: tuple[datetime, ...] = ()
    skipped: int = 0
    """At most MOST_COUNTED; then it is at least so many."""
    skipped_until: datetime | None = None
    """The last of them."""
    handled: datetime | None = None
    """The last due time that this look settled; the next look begins behind it. None: nothing was due."""


def look(timing: Timing, rule: Rule, *, handled: datetime, now: datetime) -> Look:
    """The due times behind `handled` whose start has come, sorted by the rule. Each due time is in exactly
    one look, however the looks lie and though the clock was set back in between."""
    found = list(islice(_begun(timing, handled, now), MOST_COUNTED + 1))
    total = len(found)
    if total > MOST_COUNTED:
        found = _last(timing, handled, now, _wanted(rule))
    if not found:
        return Look()
    late = [due for due in found if now - timing.start_of(due) > rule.grace]
    made_up = {"skip": 0, "once": 1, "all": min(rule.most, MOST_MISSED)}[rule.missed]
    run = [*(late[-made_up:] if made_up else ()), *found[len(late) :]]
    passed_over = late[: len(late) - made_up] if made_up else late
    return Look(
        run=tuple(run),
        skipped=MOST_COUNTED if total > MOST_COUNTED else total - len(run),
        skipped_until=passed_over[-1] if passed_over else None,
        handled=found[-1],
    )


def _wanted(rule: Rule) -> int:
    return max(rule.most, 1) + int(rule.grace.total_seconds() // 60) + 2


def _begun(timing: Timing, handled: datetime, now: datetime) -> Iterator[datetime]:
    return takewhile(lambda due: timing.start_of(due) <= now, timing.after(handled))


def _last(timing: Timing, handled: datetime, now: datetime, count: int) -> list[datetime]:
    """The last of very many, without walking through all of them: back from now, further each time."""
    width = timedelta(hours=1)
    while True:
        begin = max(handled, now - width)
        found = deque(_begun(timing, begin, now), maxlen=count)
        if len(found) == count or begin == handled:
            return list(found)
        width *= 4


def read_dates(dates: Sequence[datetime]) -> tuple[datetime, ...]:
    """Sorted and each once. Raises Invalid naming `dates`."""
    if len(dates) > MOST_DATES:
        raise Invalid(
            _("There are more than %(limit)d dates.") % {"limit": MOST_DATES},
            field="dates",
            hint=_("Say it as a cron expression, or make a second schedule."),
        )
    if any(at.tzinfo is None for at in dates):
        raise Invalid(
            _("A date has no offset."), field="dates", hint=_("Write it like 2026-01-31T09:30:00Z.")
        )
    if not all(is_moment(at) for at in dates):
        raise Invalid(
            _("A date is near the ends of the calendar."),
            field="dates",
            hint=_("Write it like 2026-01-31T09:30:00Z."),
        )
    return tuple(sorted({at.astimezone(UTC).replace(microsecond=0) for at in dates}))
