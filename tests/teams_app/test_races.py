"""Numbers and claims are decided by the database, whichever process asks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.db import connection

from accounts.models import User
from agentsite.environment import BASE_DIR
from conversations.models import Share
from teams_app.models import Board

from .conftest import home

pytestmark = pytest.mark.django_db(transaction=True)


def begin(board: Board, user: User) -> subprocess.Popen[str]:
    name = str(connection.settings_dict["NAME"])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.teams_app.rush", name, str(board.pk), user.username],
        cwd=BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def rush(processes: list[subprocess.Popen[str]], what: str, times: int) -> list[list[int]]:
    """What each of them was given when all began at once."""
    for process in processes:
        process.stdin.write(f"{what} {times}\n")
        process.stdin.flush()
    return [json.loads(process.stdout.readline()) for process in processes]


def test_a_hundred_creations_give_a_hundred_numbers_and_of_fifty_claimants_one_has_it(
    board: Board, alice: User, bob: User
) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="writer")
    processes = [begin(board, alice), begin(board, bob)]
    try:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2

        alices, bobs = rush(processes, "create", 50)
        assert sorted(alices + bobs) == list(range(1, 101))
        assert sorted(board.tasks.values_list("number", flat=True)) == list(range(1, 101))

        claims = rush(processes, "claim", 25)
    finally:
        for process in processes:
            process.communicate()
    board.refresh_from_db()
    assert board.last_number == 100
    alices, bobs = claims
    winner, loser = (
        (alices, bobs) if board.tasks.get(number=1).owner_user == alice else (bobs, alices)
    )
    assert set(loser) == {0}
    # Whoever has it may say so again; nobody else was ever told that she had it.
    assert set(winner) == {1}
    told = home(board).events.filter(type="x.task_updated")
    assert [row.value.change for row in told] == ["claimed"]
