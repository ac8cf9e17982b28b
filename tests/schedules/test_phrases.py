"""Times in people's words become what the clock can follow, or are refused with the word."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.errors import Invalid
from schedules.phrases import Reading, read_phrase
from schedules.times import read_cron

NOW = datetime(2028, 5, 1, 22, 30, tzinfo=UTC)
ZONE = "Europe/Berlin"


@pytest.mark.parametrize(
    ("words", "cron"),
    [
        ("every day at 9", "0 9 * * *"),
        ("Daily at 9:30", "30 9 * * *"),
        ("every weekday at 8:30 am", "30 8 * * 1-5"),
        ("every Monday and Thursday at 17:00", "0 17 * * 1,4"),
        ("mondays, at noon", "0 12 * * 1"),
        ("fri at 4pm", "0 16 * * 5"),
        ("weekends at 10", "0 10 * * 0,6"),
        ("weekly at 7", "0 7 * * 1"),
        ("monthly at 6", "0 6 1 * *"),
        ("on the 1st and 15th of every month at midnight", "0 0 1,15 * *"),
        ("hourly", "0 * * * *"),
        ("every hour", "0 * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("every 6 hours", "0 */6 * * *"),
        ("every minute", "* * * * *"),
        ("daily at 12am", "0 0 * * *"),
        ("every day at 9 and 17", "0 9,17 * * *"),
        ("every weekday at 8:30, 12:30 and 16:30", "30 8,12,16 * * 1-5"),
    ],
)
def test_what_repeats_is_a_cron_expression(words: str, cron: str) -> None:
    assert read_phrase(words, zone=ZONE, now=NOW) == Reading(cron=cron)
    read_cron(cron, ZONE)


@pytest.mark.parametrize(
    ("words", "date"),
    [
        # It is half past midnight in Berlin.
        ("tomorrow at 9", "2028-05-03T07:00:00+00:00"),
        ("today at 18:15", "2028-05-02T16:15:00+00:00"),
        ("2028-12-24 at 6pm", "2028-12-24T17:00:00+00:00"),
        ("in 2 hours", "2028-05-02T00:30:00+00:00"),
        ("in 3 days", "2028-05-04T22:30:00+00:00"),
    ],
)
def test_what_happens_once_is_a_date_on_the_persons_clock(words: str, date: str) -> None:
    found = read_phrase(words, zone=ZONE, now=NOW).date
    assert found == datetime.fromisoformat(date)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", ""),
        ("whenever you like", "whenever"),
        ("every day", "time of the day"),
        ("every 7 minutes", "7"),
        ("every 0 minutes", "0"),
        ("daily at 25", "25"),
        ("daily at 13pm", "13pm"),
        ("on the 32nd at 9", "32nd"),
        ("2028-02-30 at 9", "2028-02-30"),
        ("in a while", "in a while"),
        ("every fortnight at 9", "fortnight"),
        ("money at 9", "money"),
        ("every ² hours", "²"),
        ("9999-12-31 at 23", "9999-12-31"),
        ("0001-01-01 at 0", "0001-01-01"),
        ("every day at 9 and 17:30", "minutes differ"),
        ("every 2nd monday at 9", "one can be meant"),
        ("monthly on monday at 9", "one can be meant"),
        ("weekly on the 3rd at 9", "one can be meant"),
        ("tomorrow at 9 every monday", "more than one date"),
        ("today and tomorrow at 9", "more than one date"),
        ("tomorrow at 9 and 17", "more than one date"),
        ("every 3 mondays at 9", "3"),
        ("today at 0:15", "is over"),
        ("2028-05-01 at 9", "is over"),
    ],
)
def test_what_is_not_understood_is_named(words: str, named: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read_phrase(words, zone=ZONE, now=NOW)
    assert refusal.value.field == "when"
    assert named in refusal.value.message
