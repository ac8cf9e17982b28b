"""Numbers and claims are decided by the database, whichever process asks. Run on PostgreSQL as well
(`tests/scale/test_on_postgresql.py`)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.db import connection

from accounts.models import User
from agentsite.environment import BASE_DIR
from conversations.models import Share
from teams_app.actions.tasks import create_task
from teams_app.models import Board, Task

pytestmark = pytest.mark.django_db(transaction=True)


def rush(board: Board, users: list[User], what: str, times: int) -> list[list[int]]:
    """What each of several processes, one for a user, was given when all began at once."""
    name = str(connection.settings_dict["NAME"])
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.teams_app.rush",
                name,
                str(board.pk),
                user.username,
                what,
                str(times),
            ],
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for user in users
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0]) for process in processes]


def test_a_hundred_creations_from_two_processes_are_given_a_hundred_numbers(
    board: Board, alice: User
) -> None:
    given = rush(board, [alice, alice], "create", 50)

    assert sorted(given[0] + given[1]) == list(range(1, 101))
    assert sorted(board.tasks.values_list("number", flat=True)) == list(range(1, 101))
    board.refresh_from_db()
    assert (board.last_number, board.version) == (100, 100)


def test_of_fifty_who_claim_a_task_from_two_processes_one_has_it(
    board: Board, alice: User, bob: User
) -> None:
    Share.objects.create(conversation=board.conversation, user=bob, role="writer")
    create_task(actor=alice, board=board, subject="The only one")

    given = rush(board, [alice, bob], "claim", 25)

    task = Task.objects.get()
    winner, loser = (given[0], given[1]) if task.owner_user == alice else (given[1], given[0])
    assert set(loser) == {0}
    # Whoever has it may say so again.
    assert set(winner) <= {0, 1}
    assert 1 in winner
    told = board.conversation.events.filter(type="x.task_updated")
    assert [row.value.change for row in told] == ["claimed"]
