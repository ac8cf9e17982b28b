"""The attacks on the site find nothing open; and on a site with its protections off, they do."""

from __future__ import annotations

import re
import subprocess
import sys

from agentsite.environment import BASE_DIR
from tests.attack_web import suite
from tests.attack_web.case import CASES
from tests.parts import part_of

SECONDS = 1_800


def attacked(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.attack_web", *options],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_nothing_is_open_to_an_attack(django_db_setup: None) -> None:
    done = attacked("--quick")
    last = done.stdout.strip().splitlines()[-1:]
    said = re.fullmatch(r"cases: (\d+), open: (\d+)", last[0] if last else "")
    assert said, done.stderr[-4000:]
    assert (said[2], done.returncode) == ("0", 0), done.stdout
    assert int(said[1]) >= suite.FEWEST_QUICK
    assert re.search(r"again: ATTACK_PART=\d", done.stdout)


def test_commits_try_other_parts_and_one_commit_always_the_same() -> None:
    many = suite.QUICK_STRIDE
    tried = [part_of(f"{number:08x}{'0' * 32}", many) for number in range(many)]
    assert sorted(tried) == list(range(many))
    assert part_of("", many) == 0


def test_every_subject_has_an_act_that_must_work() -> None:
    subjects = {one.subject for one in CASES}
    assert {one.subject for one in CASES if one.permitted} == subjects
    assert len(subjects) == len(suite.SUBJECTS)


def test_attacks_see_what_an_operator_has_opened() -> None:
    done = attacked("--opened", "--case", "webhook: loopback", "--case", "guessing on")
    assert done.stdout.strip().endswith("cases: 2, open: 2"), done.stdout + done.stderr[-4000:]
