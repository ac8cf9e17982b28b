"""Times as people write them ("every weekday at 8:30", "tomorrow at 9"), read as a cron expression or a date.

A small fixed grammar of English, no model: what it does not know it says, and what it read is shown and
confirmed before anything is saved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.digits import is_digits, number_of
from reading.moments import day_of

LONGEST = 200
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORT = frozenset(name[:3] for name in _DAYS)
_SETS = {"weekday": "1-5", "workday": "1-5", "weekend": "0,6"}
_FILLING = frozenset({"at", "on", "the", "of", "and", "every", "each", "day", "a", "in", "o'clock"})
_EVERY = {"minute": 60, "hour": 24}
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_NAMED_TIMES = {"noon": (12, 0), "midday": (12, 0), "midnight": (0, 0)}
_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?(am|pm)?", re.ASCII)
_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reading:
    """One of both."""

    cron: str = ""
    date: datetime | None = None


def read_phrase(text: str, *, zone: str, now: datetime) -> Reading:
    """Raises Invalid naming `when`, with the word that was not understood."""
    words = text[:LONGEST].lower().replace(",", " ").split()
    words = _joined(words)
    if not words:
        raise _unread(text)
    repeated = _interval(words)
    if repeated is not None:
        return repeated
    place = ZoneInfo(zone)
    if words[0] == "in":
        return Reading(date=now + _distance(words[1:], text))
    time, weekdays, month_days, day, monthly, others = None, [], [], None, False, []
    for word in words:
        plural = word.removesuffix("s")
        if word in _NAMED_TIMES:
            time = _NAMED_TIMES[word]
        elif plural in _DAYS or word in _SHORT:
            weekdays.append(str(_number_of(plural)))
        elif plural in _SETS:
            weekdays.append(_SETS[plural])
        elif found := _ORDINAL.fullmatch(word):
            month_days.append(_within(int(found[1]), 1, 31, word))
        elif word in {"today", "tomorrow"}:
            day = now.astimezone(place).date() + timedelta(days=word == "tomorrow")
        elif found := _DATE.fullmatch(word):
            day = _date(word)
        elif found := _TIME.fullmatch(word):
            time = _time(found, word)
        elif word in {"monthly", "month"}:
            monthly = True
        elif word in {"weekly", "week"}:
            others.append("week")
        elif word not in _FILLING and word != "daily":
            raise _unread(word)
    if time is None:
        raise Invalid(
            _("It does not say at what time of the day."),
            field="when",
            hint=_("Write for example “every weekday at 8:30”."),
        )
    hour, minute = time
    if day is not None:
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=place)
        return Reading(date=at.astimezone(UTC))
    if not weekdays and "week" in others:
        weekdays = ["1"]
    if monthly and not month_days:
        month_days = [1]
    days = ",".join(map(str, sorted(set(month_days)))) or "*"
    return Reading(cron=f"{minute} {hour} {days} * {','.join(dict.fromkeys(weekdays)) or '*'}")


def _joined(words: list[str]) -> list[str]:
    """`9 am` as `9am`."""
    joined: list[str] = []
    for word in words:
        if word in {"am", "pm"} and joined and is_digits(joined[-1][-1:]):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _interval(words: list[str]) -> Reading | None:
    """`hourly`, `every hour`, `every 15 minutes`."""
    if words == ["hourly"]:
        return Reading(cron="0 * * * *")
    if words[0] not in {"every", "each"} or words[-1].removesuffix("s") not in _EVERY:
        return None
    unit = words[-1].removesuffix("s")
    count = 1
    if len(words) == 3 and is_digits(words[1]):
        count = number_of(words[1], most=60) or 0
    elif len(words) != 2:
        return None
    if count < 1 or _EVERY[unit] % count:
        raise Invalid(
            _("“%(phrase)s” does not divide evenly.") % {"phrase": " ".join(words)[:60]},
            field="when",
            hint=_("Choose 5, 10, 15, 20 or 30 minutes, or 2, 3, 4, 6, 8 or 12 hours."),
        )
    step = "*" if count == 1 else f"*/{count}"
    return Reading(cron=f"{step} * * * *" if unit == "minute" else f"0 {step} * * *")


def _distance(words: list[str], text: str) -> timedelta:
    if len(words) == 2 and (number := number_of(words[0], most=999)) is not None:
        unit = _UNITS.get(words[1].removesuffix("s"))
        if unit is not None:
            return number * unit
    raise _unread(text)


def _number_of(name: str) -> int:
    return next(number for number, day in enumerate(_DAYS) if day[:3] == name[:3])


def _time(found: re.Match[str], word: str) -> tuple[int, int]:
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half:
        hour = _within(hour, 1, 12, word) % 12 + 12 * (half == "pm")
    return _within(hour, 0, 23, word), _within(minute, 0, 59, word)


def _date(word: str) -> date:
    day = day_of(word)
    if day is None:
        raise _unread(word)
    return day


def _within(value: int, least: int, most: int, word: str) -> int:
    if not least <= value <= most:
        raise _unread(word)
    return value


def _unread(word: str) -> Invalid:
    return Invalid(
        _("“%(word)s” is not understood.") % {"word": word[:60]},
        field="when",
        hint=_(
            "Write for example “every weekday at 8:30”, “every monday and thursday at 17:00”, “monthly on"
            " the 15th at 9”, “every 30 minutes”, “tomorrow at 9” or “2026-12-24 at 18:00”."
        ),
    )
