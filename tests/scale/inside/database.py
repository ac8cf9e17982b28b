"""Run by `test_on_postgresql`: connections stay bounded, whatever the load."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from accounts.models import User
from jobs.engine import Engine

pytestmark = pytest.mark.django_db(transaction=True)


def our_connections() -> int:
    """Without the server's own: autovacuum looks into a database when it likes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def test_it_is_postgresql():
    assert connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert int(cursor.fetchone()[0]) >= 150_000


def slow_query() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.02)")


async def test_many_runs_at_once_hold_no_more_connections_than_the_pool():
    engine = Engine()
    seen: list[int] = []
    try:
        work = [asyncio.ensure_future(engine.in_database(slow_query)) for _ in range(300)]
        while not all(task.done() for task in work):
            seen.append(await sync_to_async(our_connections)())
        await asyncio.gather(*work)
    finally:
        await asyncio.to_thread(engine.stop)
    assert 1 < max(seen) <= settings.AGENTSITE_DATABASE_CONNECTIONS


async def test_many_requests_at_once_wait_for_a_connection_and_all_get_one():
    """More threads than connections: as when every open page asks at once."""

    def request() -> None:
        slow_query()
        connection.close()

    threads = [
        threading.Thread(target=request) for _ in range(3 * settings.AGENTSITE_DATABASE_CONNECTIONS)
    ]
    failed: list[object] = []
    threading.excepthook = lambda args: failed.append(args.exc_value)
    try:
        for thread in threads:
            thread.start()
        seen = await sync_to_async(our_connections)()
        for thread in threads:
            await asyncio.to_thread(thread.join)
    finally:
        threading.excepthook = threading.__excepthook__
    assert failed == []
    assert seen <= settings.AGENTSITE_DATABASE_CONNECTIONS


async def test_a_connection_that_the_database_closed_is_replaced_unseen():
    engine = Engine()
    try:
        await engine.in_database(slow_query)
        await sync_to_async(end_other_connections)()
        for _ in range(5):
            await engine.in_database(slow_query)
    finally:
        await asyncio.to_thread(engine.stop)


def end_other_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_time_is_the_databases(alice: User):
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        theirs = cursor.fetchone()[0]
    ours = User.objects.annotate(now=Now()).get(pk=alice.pk).now
    assert abs((ours - theirs).total_seconds()) < 1
