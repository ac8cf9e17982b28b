"""Times at the ends of time, and texts that are none."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from providers.failures import retry_after
from reading.moments import day_of, moment_at, moment_in_mail, moment_of

FAR = timezone(timedelta(hours=23, minutes=59))
NONE = (
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "9999-12-31",
    "0001-01-01",
    "99999-01-01T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-31T00:00:00+99:99",
    "2" * 5_000,
    "٢٠٢٦-٠١-٣١",
    "",
    None,
    7,
    ["2026-01-31"],
)


@pytest.mark.parametrize("text", NONE, ids=lambda text: repr(text)[:30])
def test_what_is_no_moment_is_none(text):
    assert moment_of(text) is None
    assert day_of(text) is None


def test_a_moment_can_be_shown_by_every_clock_and_counted_from():
    for text in ("0002-01-01T00:00:00+14:00", "9998-12-31T23:59:59-14:00"):
        moment = moment_of(text)
        assert moment is not None
        moment.astimezone(FAR)
        moment.astimezone(UTC) + timedelta(days=1)
    assert moment_of("2026-01-31T09:30:00Z") == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    assert day_of("2026-1-3") == date(2026, 1, 3)


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan"), -1e15, 10**400], ids=str)
def test_a_count_of_seconds_out_of_reach_is_no_moment(seconds):
    assert moment_at(seconds) is None
    assert moment_at(0) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 2026 00:00:00 +99999999999999999999",
        "Mon, 01 Jan 2026 00:00:00 -0000",
        "Mon, 01 Jan 9999 00:00:00 GMT",
        "9" * 5_000,
        "soon",
    ],
    ids=lambda text: text[:50],
)
def test_a_header_that_names_no_moment_asks_nobody_to_wait(text):
    assert moment_in_mail(text) is None
    if not text.isdigit():
        assert retry_after({"retry-after": text}) is None
