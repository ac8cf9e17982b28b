"""Numbers and claims are decided by the database, whichever process asks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest
from django.db import connection

from accounts.models import User
from conversations.models import Share
from harness.errors import Conflict
from jobs.engine import engine
from teams_app.actions.tasks import claim_task, create_task
from teams_app.models import Board
from teams_app.owners import Owner
from tests.killing.databases import release

from .conftest import home

pytestmark = pytest.mark.django_db(transaction=True)

forks = get_context("fork")


def once(board_pk: int, user_pk: int, what: str, _time: int) -> int:
    """The number of the task that was made or taken; 0 where somebody else has it."""
    try:
        board, user = Board.objects.get(pk=board_pk), User.objects.get(pk=user_pk)
        if what == "create":
            return create_task(actor=user, board=board, subject="One of many").number
        return claim_task(actor=user, board=board, number=1, claimant=Owner(user=user)).number
    except Conflict:
        return 0
    finally:
        connection.close()


def do_as_told(orders: Connection, board_pk: int, user_pk: int) -> None:
    """What a process does: things at a board in many threads at once, as often as it is told."""
    with ThreadPoolExecutor(10) as pool:
        while told := orders.recv():
            what, times = told
            each = partial(once, board_pk, user_pk, what)
            orders.send(list(pool.map(each, range(times))))


@contextmanager
def process(board: Board, user: User) -> Iterator[Connection]:
    """What it is told goes in, what came of each comes out."""
    engine.stop()
    release()
    ours, its = forks.Pipe()
    begun = forks.Process(target=do_as_told, args=(its, board.pk, user.pk))
    begun.start()
    its.close()
    try:
        yield ours
    finally:
        ours.send(None)
        begun.join()


def rush(processes: list[Connection], what: str, times: int) -> list[list[int]]:
    """What each of them was given when all began at once."""
    for each in processes:
        each.send((what, times))
    return [each.recv() for each in processes]


def test_a_hundred_creations_give_a_hundred_numbers_and_of_fifty_claimants_one_has_it(
    board: Board, alice: User, bob: User
) -> None:
    Share.objects.create(conversation=home(board), user=bob, role="writer")
    with process(board, alice) as hers, process(board, bob) as his:
        alices, bobs = rush([hers, his], "create", 50)
        assert sorted(alices + bobs) == list(range(1, 101))
        assert sorted(board.tasks.values_list("number", flat=True)) == list(range(1, 101))

        claims = rush([hers, his], "claim", 25)
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
