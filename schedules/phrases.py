"""Times as people write them ("every weekday at 8:30", "tomorrow at 9"), read as a cron expression or a date.

A small fixed grammar of English, no model: what it does not know it says, and what it read is shown and
confirmed before anything is saved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
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
_FILLING = frozenset({"at", "on", "the", "of", "and", "day", "a", "in", "o'clock"})
_REPEATING = frozenset({"every", "each", "daily"})
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
    said = _Said()
    for number, word in enumerate(words):
        _hear(said, words[:number], word, today=now.astimezone(place).date())
    return _reading(said, place, now)


@dataclass(slots=True)
class _Said:
    """What the words said, in their order."""

    times: list[tuple[int, int]] = field(default_factory=list)
    weekdays: list[str] = field(default_factory=list)
    month_days: list[int] = field(default_factory=list)
    days: list[date] = field(default_factory=list)
    monthly: bool = False
    weekly: bool = False
    repeats: bool = False


def _hear(said: _Said, before: list[str], word: str, *, today: date) -> None:
    plural = word.removesuffix("s")
    if word in _NAMED_TIMES:
        said.times.append(_NAMED_TIMES[word])
    elif plural in _DAYS or word in _SHORT:
        said.weekdays.append(str(_number_of(plural)))
    elif plural in _SETS:
        said.weekdays.append(_SETS[plural])
    elif found := _ORDINAL.fullmatch(word):
        said.month_days.append(_within(int(found[1]), 1, 31, word))
    elif word in {"today", "tomorrow"}:
        said.days.append(today + timedelta(days=word == "tomorrow"))
    elif _DATE.fullmatch(word):
        said.days.append(_date(word))
    elif (found := _TIME.fullmatch(word)) and _is_a_time(found, before):
        said.times.append(_time(found, word))
    elif word in {"monthly", "month"}:
        said.monthly = True
    elif word in {"weekly", "week"}:
        said.weekly = True
    elif word in _REPEATING:
        said.repeats = True
    elif word not in _FILLING:
        raise _unread(word)


def _is_a_time(found: re.Match[str], before: list[str]) -> bool:
    """A number alone is one behind “at” and behind another time; elsewhere it may count anything."""
    if found[2] or found[3]:
        return True
    behind = before[-2:] if before[-1:] == ["and"] else before[-1:]
    return bool(behind) and (behind[0] == "at" or _TIME.fullmatch(behind[0]) is not None)


def _reading(said: _Said, place: ZoneInfo, now: datetime) -> Reading:
    if not said.times:
        raise _refused(_("It does not say at what time of the day."))
    hours = sorted({hour for hour, _minute in said.times})
    minutes = {minute for _hour, minute in said.times}
    repeats = said.weekdays or said.month_days or said.monthly or said.weekly or said.repeats
    if said.days:
        if repeats or len(said.days) > 1 or len(set(said.times)) > 1:
            raise _refused(_("It says more than one date and time."))
        day, (hour, minute) = said.days[0], said.times[0]
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=place)
        if at <= now:
            raise _refused(_("That time is over."))
        return Reading(date=at.astimezone(UTC))
    if len(minutes) > 1:
        raise _refused(_("It says times of the day whose minutes differ."))
    if (said.weekdays or said.weekly) and (said.month_days or said.monthly):
        raise _refused(_("It says days of the week and of the month, of which one can be meant."))
    weekdays = said.weekdays or ["1"] * said.weekly
    month_days = said.month_days or [1] * said.monthly
    days = ",".join(map(str, sorted(set(month_days)))) or "*"
    at_hours = ",".join(map(str, hours))
    return Reading(
        cron=f"{minutes.pop()} {at_hours} {days} * {','.join(dict.fromkeys(weekdays)) or '*'}"
    )


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
    return _refused(_("“%(word)s” is not understood.") % {"word": word[:60]})


def _refused(words: str) -> Invalid:
    return Invalid(
        words,
        field="when",
        hint=_(
            "Write for example “every weekday at 8:30”, “every monday and thursday at 17:00”, “monthly on"
            " the 15th at 9”, “every 30 minutes”, “tomorrow at 9” or “2026-12-24 at 18:00”."
        ),
    )
