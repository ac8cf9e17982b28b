"""Probes answer without Django's middleware, and say no with a reason."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.core.cache import cache
from django.db import connection

from agents import commandtrial
from agentsite import readiness, startup
from agentsite.asgi import application
from agentsite.local_services import free_port
from agentsite.probeport import serve_in_thread
from jobs.engine import engine
from jobs.hostreports import keep
from sandbox.contract import Capabilities
from tests.patience import PATIENCE
from tools_app import sandboxes

TOKEN = "operators-own"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def untried(monkeypatch, settings) -> None:
    """No trial of commands and no look at sandboxes of a test before counts."""
    settings.AGENTSITE_METRICS_TOKEN = TOKEN
    monkeypatch.setattr(sandboxes, "_found", {})
    monkeypatch.setattr(commandtrial, "_last", None)
    cache.delete(commandtrial.FOUND)


async def ask_as_operator(path: str) -> tuple[int, str]:
    return await ask(path, authorization=f"Bearer {TOKEN}")


async def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """As a probe does: by address, with a host name nobody configured."""
    given = {"host": "10.1.2.3", **headers}
    line = ApplicationCommunicator(
        application,
        {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        },
    )
    await line.send_input({"type": "http.request", "body": b""})
    start = await line.receive_output(15)
    body = await line.receive_output(15)
    return start["status"], body["body"].decode()


async def test_it_says_that_it_lives_and_is_ready():
    assert await ask("/healthz") == (200, "ok\n")
    status, body = await ask_as_operator("/readyz")
    assert status == 200
    assert json.loads(body) == {
        "status": "ready",
        "checks": {"process": "ok", "database": "ok", "migrations": "ok"},
    }


async def test_it_tells_what_was_found_of_the_sandboxes_and_is_ready_without_any(monkeypatch):
    found = {
        "bubblewrap": Capabilities("bubblewrap", available=False, problem="no such program"),
        "process": Capabilities("process", available=True),
    }
    monkeypatch.setattr(sandboxes, "_found", found)
    status, body = await ask_as_operator("/readyz")
    assert status == 200
    assert json.loads(body)["sandboxes"] == {"bubblewrap": "no such program", "process": "ok"}


async def test_redis_and_broker_out_of_reach_are_named_without_their_addresses(settings):
    settings.AGENTSITE_REDIS_URL = "redis://:secret-word@127.0.0.1:1"
    status, body = await ask_as_operator("/readyz")
    assert status == 503
    assert json.loads(body)["checks"]["redis"] == "out of reach (ConnectionError)"
    assert "secret-word" not in body
    assert (await ask("/healthz"))[0] == 200


async def test_missing_migrations_are_counted_with_their_remedy(monkeypatch):
    monkeypatch.setattr(readiness, "_are_migrated", False)
    monkeypatch.setattr(startup, "missing_migrations", lambda: 3)
    status, body = await ask_as_operator("/readyz")
    assert status == 503
    assert "3 missing: run `manage.py migrate`" in body


async def test_a_process_that_stops_is_not_ready(monkeypatch):
    monkeypatch.setattr(engine, "_draining", True)
    status, body = await ask_as_operator("/readyz")
    assert status == 503
    assert json.loads(body)["checks"]["process"] == "stopping"


@pytest.mark.parametrize("given", ["", "Bearer wrong"])
async def test_strangers_are_told_one_word_and_nothing_of_what_is_behind_it(
    monkeypatch, settings, given
):
    monkeypatch.setattr(
        sandboxes, "_found", {"process": Capabilities("process", available=False, problem="why")}
    )
    monkeypatch.setattr(commandtrial, "_last", commandtrial.Trial("no bwrap", "install it"))
    assert await ask("/readyz", authorization=given) == (200, '{"status": "degraded"}')
    settings.AGENTSITE_REDIS_URL = "redis://127.0.0.1:1"
    assert await ask("/readyz", authorization=given) == (503, '{"status": "unavailable"}')


async def test_operators_are_told_why_no_command_can_run_and_what_mends_it(monkeypatch):
    monkeypatch.setattr(commandtrial, "_last", commandtrial.Trial("no bwrap.", "install it"))
    status, body = await ask_as_operator("/readyz")
    assert status == 200
    told = json.loads(body)
    assert (told["status"], told["commands"]) == ("degraded", "no bwrap. Remedy: install it")


async def test_beside_workers_it_is_told_whether_any_of_their_hosts_runs_commands():
    assert await ask("/readyz") == (200, '{"status": "ready"}')
    await sync_to_async(keep)(commandtrial.FOUND, "one", ("no bwrap.", "install it"))
    told = json.loads((await ask_as_operator("/readyz"))[1])
    assert (told["status"], told["commands"]) == ("degraded", "no bwrap. Remedy: install it")
    await sync_to_async(keep)(commandtrial.FOUND, "other", ("", ""))
    told = json.loads((await ask_as_operator("/readyz"))[1])
    assert (told["status"], told["commands"]) == ("ready", "ok")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a server keeps its own files")
async def test_a_database_file_that_is_gone_or_another_one_is_noticed(monkeypatch, tmp_path):
    file = tmp_path / "db.sqlite3"
    file.touch()
    monkeypatch.setattr(readiness, "_database_file", lambda: file)
    assert (await ask_as_operator("/readyz"))[0] == 200
    file.rename(tmp_path / "away")
    status, body = await ask_as_operator("/readyz")
    assert status == 503
    assert "the database file is gone" in body
    file.touch()
    status, body = await ask_as_operator("/readyz")
    assert status == 503
    assert "another one" in body


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer wrong", "right-token-not"])
async def test_metrics_do_not_exist_without_the_token(settings, given):
    settings.AGENTSITE_METRICS_TOKEN = "right-token"
    assert (await ask("/metrics", authorization=given))[0] == 404


async def test_without_a_configured_token_nobody_gets_metrics(settings):
    settings.AGENTSITE_METRICS_TOKEN = ""
    assert (await ask("/metrics", authorization="Bearer "))[0] == 404


async def test_metrics_are_prometheus_text(settings):
    settings.AGENTSITE_METRICS_TOKEN = "right-token"
    status, body = await ask("/metrics", authorization="Bearer right-token")
    assert status == 200
    for name in (
        "agentsite_runs_at_work",
        "agentsite_runs_claimed",
        "agentsite_runs_lost_total",
        "agentsite_conversations_waiting",
        "agentsite_sockets_open",
        "agentsite_event_append_seconds_count",
    ):
        assert f"\n{name} " in body


async def test_nothing_is_changed_through_a_probe():
    assert (await ask("/healthz", method="POST"))[0] == 404


# --- a worker's own port --------------------------------------------------------------------------


@pytest.fixture
def port(settings) -> Iterator[int]:
    settings.AGENTSITE_HEAD_SECONDS = 5
    number = free_port()
    server = serve_in_thread(number)
    yield number
    server.should_exit = True


def fetched(port: int, path: str, **headers: str) -> tuple[int, str]:
    asked = Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refusal:
        return refusal.code, ""


def test_a_worker_answers_the_same_on_a_port_of_its_own(port):
    assert fetched(port, "/healthz") == (200, "ok\n")
    assert fetched(port, "/readyz") == (200, '{"status": "ready"}')
    assert fetched(port, "/metrics")[0] == fetched(port, "/accounts/login/")[0] == 404
    assert fetched(port, "/metrics", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_worker_s_port_waits_for_no_stranger_and_gives_him_no_thread(port):
    assert fetched(port, "/healthz")[0] == 200
    before = threading.active_count()
    with ExitStack() as stack:
        strangers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            for _ in range(40)
        ]
        for stranger in strangers:
            stranger.sendall(b"GET /healthz HTTP/1.1\r\nX-")
        assert fetched(port, "/healthz") == (200, "ok\n")
        assert threading.active_count() <= before
        # Cut, while he goes on saying nothing.
        assert all(b" 408 " in stranger.recv(1_000) for stranger in strangers)
