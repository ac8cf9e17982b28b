"""This moment, or none: what others write as a time or a day, read without an error of its own.

Nothing near the ends of time is a moment: there no clock of another zone can show it, and no sum with it
comes out. What is said of one that is none is the caller's.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime

from reading.digits import is_digits

YEARS = range(2, 9999)
LONGEST = 100
"""Characters; no way to write a time takes more."""
_WRONG = (ValueError, TypeError, OverflowError, OSError)


def moment_of(text: object) -> datetime | None:
    """A time in ISO 8601; naive where it says no offset."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    try:
        return _within(datetime.fromisoformat(text))
    except _WRONG:
        return None


def day_of(text: object) -> date | None:
    """A day in ISO 8601, in which a month or day may have one digit."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    parts = text.split("-")
    if len(parts) == 3 and all(is_digits(part) for part in parts):
        text = "-".join(part.zfill(2) for part in parts)
    try:
        day = date.fromisoformat(text)
    except _WRONG:
        return None
    return day if day.year in YEARS else None


def moment_at(seconds: float) -> datetime | None:
    """A time of the clock of Unix, in UTC."""
    try:
        return _within(datetime.fromtimestamp(seconds, UTC))
    except _WRONG:
        return None


def moment_in_mail(text: str) -> datetime | None:
    """As headers of mails and of HTTP have it; none where it says no offset."""
    if len(text) > LONGEST:
        return None
    try:
        moment = _within(parsedate_to_datetime(text))
    except _WRONG:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def is_moment(moment: datetime) -> bool:
    """Of one that somebody else read."""
    return moment.year in YEARS


def _within(moment: datetime) -> datetime | None:
    return moment if is_moment(moment) else None
