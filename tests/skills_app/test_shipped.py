"""The skills that come with the product: sound, kept up to date, and left alone where staff decided."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.models import User
from agentsite.seeding import seed
from harness.agentconfig import SkillUse
from skills_app import seeding
from skills_app.actions.releases import deprecate_version, move_channel
from skills_app.choosing import choose
from skills_app.folder import faults_of
from skills_app.models import Skill, SkillVersion
from skills_app.seeding import RETIRED, SHIPPED, seed_skills, shipped_folder

NAMES = sorted(place.name for place in SHIPPED.iterdir() if (place / "SKILL.md").is_file())


def printed(name: str, script: str, *given: str) -> subprocess.CompletedProcess[str]:
    place = SHIPPED / name / "scripts" / script
    return subprocess.run(
        [sys.executable, "-I", place, *given], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", NAMES)
def test_what_we_ship_is_what_the_standard_wants(name):
    folder = shipped_folder(SHIPPED / name)
    assert faults_of(folder) == []
    assert folder.name == name
    assert len(folder.body) < 20_000


@pytest.mark.django_db
def test_every_skill_that_we_ship_is_offered_once_and_a_second_start_writes_nothing(acme):
    seed()
    assert list(Skill.objects.on_offer().values_list("name", flat=True)) == NAMES
    before = SkillVersion.objects.count()
    seed()
    assert SkillVersion.objects.count() == before == len(NAMES)
    chosen = choose((SkillUse(name="capacity-planner"),), acme, None)
    assert [each.skill.name for each in chosen.versions] == ["error-budget", "capacity-planner"]


@pytest.mark.django_db
def test_another_text_is_another_version_and_a_channel_that_staff_moved_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, staff: User
):
    staff.is_superuser = True
    staff.save()
    monkeypatch.setattr(seeding, "SHIPPED", tmp_path)
    text = tmp_path / "tidy" / "SKILL.md"
    text.parent.mkdir()
    for words in ("One.", "Two."):
        text.write_text(f"---\nname: tidy\ndescription: Tidies.\n---\n{words}")
        seed_skills()
    skill = Skill.objects.get()
    assert skill.stable is not None
    assert (skill.stable.label, skill.latest) == ("1.post1", skill.stable)
    first = skill.versions.get(label="1")
    move_channel(actor=staff, skill=skill, channel="stable", version=first)
    text.write_text("---\nname: tidy\ndescription: Tidies.\n---\nThree.")
    seed_skills()
    skill.refresh_from_db()
    assert skill.stable == first
    assert skill.latest is not None
    assert skill.latest.label == "1.post2"


def test_an_error_budget_is_computed_and_wrong_counts_are_refused():
    given = ["--window-days", "30", "--elapsed-days", "12", "--total", "8400000", "--bad", "6100"]
    found = json.loads(printed("error-budget", "budget.py", "--objective", "99.9", *given).stdout)
    assert found == {
        "allowed": 21_000.0,
        "used_share": 0.2905,
        "burn_rate": 0.7262,
        "days_left": 29.3,
    }
    for wrong in ("100", "nan", "x"):
        refused = printed("error-budget", "budget.py", "--objective", wrong, *given)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr


def test_capacity_is_planned_with_head_room_and_growth():
    given = ["--peak-rate", "420", "--seconds", "0.18", "--slots", "16", "--instances", "9"]
    found = json.loads(printed("capacity-planner", "capacity.py", *given, "--growth", "4").stdout)
    assert found == {
        "at_work_now": 75.6,
        "needed_now": 9,
        "needed_at_the_end": 13,
        "too_few_from_month": 3,
    }
    refused = printed("capacity-planner", "capacity.py", *given, "--growth", "1e9")
    assert refused.returncode == 2


PROBES = """time,service,ok,ms
2026-03-01T09:00:00+01:00,shop,yes,212
2026-03-01T08:05:00Z,shop,no,
2026-03-01T08:10:00Z,shop,no,
2026-03-01T08:15:00Z,shop,yes,1260
2026-03-01T08:00:00Z,mail,yes,40
2026-03-01T08:15:00Z,mail,no,
"""


def test_the_health_of_services_is_counted_from_probes_of_any_order_and_zone(tmp_path: Path):
    table = tmp_path / "probes.csv"
    table.write_text(PROBES)
    found = json.loads(printed("service-health", "health.py", str(table)).stdout)
    assert found["from"] == "2026-03-01T08:00:00Z"
    mail, shop = found["services"]
    assert mail["state"] == "down"
    assert mail["down_since"] == "2026-03-01T08:15:00Z"
    assert shop == {
        "service": "shop",
        "state": "slow",
        "probes": 4,
        "failed": 2,
        "availability": 50.0,
        "p95_ms": 1260.0,
        "longest_outage_minutes": 10.0,
        "down_since": None,
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2026-03-01T08:00:00,shop,yes,1", "Line 2 has a time without a zone"),
        ("yesterday,shop,yes,1", "Line 2 has no time"),
        ("2026-03-01T08:00:00Z,,yes,1", "Line 2 names no service"),
        ("2026-03-01T08:00:00Z,shop,perhaps,1", "Line 2 says neither yes nor no"),
        ("2026-03-01T08:00:00Z,shop,yes,nan", "Line 2 has no number of milliseconds"),
        ("2026-03-01T08:00:00Z,shop", "Line 2 says neither yes nor no"),
        ("", "no probe"),
    ],
)
def test_a_probe_that_says_nothing_is_refused_with_its_line(tmp_path: Path, line, words):
    table = tmp_path / "probes.csv"
    table.write_text(f"time,service,ok,ms\n{line}\n")
    refused = printed("service-health", "health.py", str(table))
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


def test_outages_that_overlap_count_once_in_an_uptime(tmp_path: Path):
    table = tmp_path / "outages.csv"
    spans = ("08:00:00Z,2026-03-01T09:00:00Z", "08:30:00Z,2026-03-01T09:30:00Z")
    table.write_text("start,end\n" + "\n".join(f"2026-03-01T{span}" for span in spans))
    given = (str(table), "--from", "2026-03-01T00:00:00Z", "--to")
    found = json.loads(printed("uptime-report", "uptime.py", *given, "2026-03-02T00:00:00Z").stdout)
    assert found == {"uptime": 93.75, "outage_minutes": 90.0, "outages": 1}
    refused = printed("uptime-report", "uptime.py", *given, "2026-02-02T00:00:00Z")
    assert "--from lies before --to" in refused.stderr


@pytest.mark.django_db
def test_a_skill_of_ours_that_goes_names_what_takes_its_place_and_when(acme, staff: User):
    staff.is_superuser = True
    staff.save()
    seed_skills()
    version = Skill.objects.get(name="uptime-report").stable
    assert version is not None
    retired = RETIRED["uptime-report"]
    assert (version.replacement, version.removal_on) == (retired.replacement, retired.removal_on)
    assert retired.replacement in NAMES
    later = timezone.now().date() + timedelta(days=400)
    deprecate_version(actor=staff, version=version, replacement="ours", removal_on=later)
    seed_skills()
    version.refresh_from_db()
    assert (version.replacement, version.removal_on) == ("ours", later), "staff's word stays"
    version.removal_on = timezone.now().date()
    version.save()
    (problem,) = choose((SkillUse(name="uptime-report"),), acme, None).problems
    assert "Use ours in its place" in problem
