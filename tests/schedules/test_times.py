"""When schedules are due: a library's arithmetic against a minute-by-minute oracle, through a year in five
zones; and what becomes of due times that nobody was there for."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from harness.errors import Invalid
from schedules.times import (
    JITTER_SHARE,
    MOST_COUNTED,
    Cron,
    Look,
    Missed,
    Rule,
    Timing,
    look,
    read_cron,
    read_dates,
)

from .oracle import due_times

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
BEGIN = datetime(2027, 12, 20, tzinfo=UTC)
END = datetime(2028, 12, 28, tzinfo=UTC)
"""2028 has a 29 February."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def between(cron: Cron, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    for due in cron.after(begin):
        if due > end:
            break
        found.append(due)
    return found


def test_a_leap_day_comes_once_in_four_years() -> None:
    cron = read_cron("0 9 29 2 *", "Asia/Kathmandu")

    assert between(cron, BEGIN, at("2034-01-01T00:00:00+00:00")) == [
        at("2028-02-29T09:00:00+05:45"),
        at("2032-02-29T09:00:00+05:45"),
    ]


CHANGES = {
    "Europe/Berlin": ("2028-03-26", "2028-10-29"),
    "America/New_York": ("2028-03-12", "2028-11-05"),
    "Australia/Lord_Howe": ("2028-10-01", "2028-04-02"),
    "Asia/Kathmandu": ("2028-02-29", "2028-12-31"),
    "UTC": ("2028-02-29", "2028-12-31"),
}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression",
    [
        "0 2 * * *",
        "0,30 2 * * *",
        "*/20 2 * * *",
        "59 1 * * *",
        "0 */2 * * *",
        "5 * * * *",
        "*/15 * * * *",
        "0 0-6/2 * * *",
        "30 1,2,3 29 FEB *",
        "0 3 1-7 * SUN",
    ],
)
def test_on_days_when_clocks_change_nothing_is_due_twice_or_forgotten(
    zone: str, expression: str
) -> None:
    for day in CHANGES[zone]:
        begin = at(f"{day}T00:00:00+00:00") - timedelta(days=1, hours=12)
        end = begin + timedelta(days=3)
        wanted = due_times(expression, zone, begin, end)
        assert between(read_cron(expression, zone), begin, end) == wanted
        # From wherever one begins to look, the same times lie ahead: also inside the doubled hour.
        for minutes in range(0, 60 * 72, 197):
            start = begin + timedelta(minutes=minutes)
            rest = [due for due in wanted if due > start]
            assert between(read_cron(expression, zone), start, end) == rest


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("* * * *", "schedule.expression"),
        ("@daily", "schedule.expression"),
        ("0 0 * * * *", "schedule.expression"),
        ("60 * * * *", "schedule.expression"),
        ("0 0 L * *", "schedule.expression"),
        ("0 0 * * 5L", "schedule.expression"),
        ("0 0 * * 1#2", "schedule.expression"),
        ("0 0 30 2 *", "schedule.expression"),
        ("0 0 ? * 1", "schedule.expression"),
        ("5-1 * * * *", "schedule.expression"),
        ("*/0 * * * *", "schedule.expression"),
        ("٣ * * * *", "schedule.expression"),
        ("0 0 * * " + "1," * 200 + "1", "schedule.expression"),
    ],
)
def test_what_no_clock_can_follow_is_refused_with_the_field(expression: str, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read_cron(expression, "UTC")

    assert refusal.value.field == field
    assert refusal.value.hint


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../../etc/passwd", "localtime"])
def test_a_zone_that_there_is_not_is_refused(zone: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read_cron("0 9 * * *", zone)

    assert refusal.value.field == "schedule.timezone"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_date_at_an_end_of_time_is_refused(moment):
    with pytest.raises(Invalid, match="ends of the calendar"):
        read_dates([datetime.fromisoformat(moment)])


def test_dates_are_due_once_each_beside_a_cron_expression() -> None:
    dates = read_dates([at("2028-05-01T07:00:00+00:00"), at("2028-05-01T09:30:00+02:00")] * 2)
    timing = Timing("one", read_cron("0 7 * * *", "UTC"), dates)

    assert timing.upcoming(at("2028-04-30T08:00:00+00:00"), 3) == [
        at("2028-05-01T07:00:00+00:00"),
        at("2028-05-01T07:30:00+00:00"),
        at("2028-05-02T07:00:00+00:00"),
    ]


# --- what is missed -------------------------------------------------------------------------------


HOURLY = Timing("one", Cron("0 * * * *", "UTC"))
NOON = at("2028-05-01T12:00:30+00:00")


def hours(look: Look) -> list[int]:
    return [due.hour for due in look.run]


@pytest.mark.parametrize(
    ("missed", "most", "run", "skipped"),
    [("skip", 1, [12], 5), ("once", 1, [11, 12], 4), ("all", 3, [9, 10, 11, 12], 2)],
)
def test_what_passed_while_nobody_looked_is_skipped_made_up_once_or_several_times(
    missed: Missed, most: int, run: list[int], skipped: int
) -> None:
    found = look(HOURLY, Rule(missed, most), handled=at("2028-05-01T06:00:00+00:00"), now=NOON)

    assert (hours(found), found.skipped) == (run, skipped)
    assert found.handled == at("2028-05-01T12:00:00+00:00")
    assert look(HOURLY, Rule(missed, most), handled=found.handled, now=NOON) == Look()


def test_a_clock_that_was_set_back_makes_nothing_due_again() -> None:
    found = look(HOURLY, Rule(), handled=at("2028-05-01T11:00:00+00:00"), now=NOON)
    assert found.handled is not None

    back = NOON - timedelta(hours=3)
    assert look(HOURLY, Rule("all", 9), handled=found.handled, now=back) == Look()


def test_a_server_that_was_away_for_years_makes_up_the_last_and_counts_the_rest() -> None:
    timing = Timing("one", Cron("* * * * *", "UTC"))
    found = look(timing, Rule("all", 2), handled=NOON - timedelta(days=900), now=NOON)

    assert found.skipped == MOST_COUNTED
    assert found.run[-1] == NOON.replace(second=0)
    gaps = {later - earlier for earlier, later in zip(found.run, found.run[1:], strict=False)}
    assert gaps == {timedelta(minutes=1)}
    late = [due for due in found.run if NOON - due > Rule().grace]
    assert len(late) == 2


def test_jitter_is_the_same_for_everybody_and_never_reaches_the_next_due_time() -> None:
    cron = Cron("*/10 * * * *", "UTC")
    timings = [Timing(f"depl_{n}", cron, jitter=540) for n in range(40)]
    offsets = {
        (timing.start_of(NOON.replace(second=0)) - NOON.replace(second=0)) for timing in timings
    }

    assert len(offsets) > 10
    assert max(offsets) <= timedelta(minutes=10) * JITTER_SHARE
    assert timings[0].start_of(NOON) == Timing("depl_0", cron, jitter=540).start_of(NOON)


@pytest.mark.parametrize("seed", range(5))
def test_in_a_year_with_outages_and_clocks_set_back_each_due_time_is_settled_once(
    seed: int,
) -> None:
    chosen = random.Random(seed)
    zone = ZONES[seed]
    expression = chosen.choice(["30 2 * * *", "0 */6 * * *", "15 1-3 * * *", "0 9 * * 1-5"])
    rule = Rule(chosen.choice(["skip", "once", "all"]), chosen.randint(1, 4))
    timing = Timing(f"depl_{seed}", read_cron(expression, zone), jitter=chosen.choice([0, 300]))
    wanted = due_times(expression, zone, BEGIN, END + timedelta(days=8))
    starts = {due: timing.start_of(due) for due in wanted}

    now = handled = BEGIN
    ran: list[datetime] = []
    skipped = 0
    expected: list[datetime] = []
    while now < END:
        # Mostly every few hours; sometimes it is down for a week, sometimes somebody sets it back.
        step = chosen.choices(
            [timedelta(minutes=3), timedelta(hours=9), timedelta(days=7), -timedelta(hours=2)],
            [60, 30, 2, 8],
        )[0]
        now = now + step
        open_ones = [due for due in wanted if due > handled and starts[due] <= now]
        late = [due for due in open_ones if now - starts[due] > rule.grace]
        kept = {"skip": 0, "once": 1, "all": rule.most}[rule.missed]
        expected += late[len(late) - min(kept, len(late)) :]
        expected += [due for due in open_ones if due not in late]
        found = look(timing, rule, handled=handled, now=now)
        ran += found.run
        skipped += found.skipped
        handled = found.handled or handled

    settled = [due for due in wanted if due <= handled]
    assert ran == expected
    assert len(ran) == len(set(ran))
    assert len(ran) + skipped == len(settled)
    assert not [due for due in wanted if due not in settled and starts[due] <= now]
