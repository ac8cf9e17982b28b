"""One command starts everything, and starting again changes nothing."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from agentsite import environment, startup
from agentsite.local_services import free_port
from tests.patience import PATIENCE

MANAGE = environment.BASE_DIR / "manage.py"


class Installation:
    """`manage.py` in a directory of its own, as a stranger's first checkout would run it."""

    def __init__(self, directory: Path) -> None:
        self.env_file = directory / ".env"
        self.port = free_port()
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "AGENTSITE_ENV_FILE": str(self.env_file),
            "AGENTSITE_DATA_DIR": str(directory / "data"),
            "PYTHONUNBUFFERED": "1",
        }

    def start(self) -> subprocess.Popen[str]:
        # Tests that a shell started in the background ignore Ctrl+C, and so would all they start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return subprocess.Popen(
            [sys.executable, str(MANAGE), "up", "--port", str(self.port)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def read_until_link(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if found := re.search(r"http://\S+/setup/\S+/", line):
                return found.group()
        raise AssertionError(f"The start ended without a link:\n{said}")

    def stop(self, process: subprocess.Popen[str], by: signal.Signals) -> None:
        """It ends by itself, and in order; where it had to end itself by force, it said why."""
        process.send_signal(by)
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said

    def status_of(self, address: str) -> int:
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


def test_it_prepares_serves_stops_and_starts_again_without_changing_anything(tmp_path):
    installation = Installation(tmp_path)

    with installation.start() as process:
        try:
            first_link = installation.read_until_link(process)
            assert stat.S_IMODE(installation.env_file.stat().st_mode) == 0o600
            before = installation.env_file.read_bytes()
            assert installation.status_of(f"http://127.0.0.1:{installation.port}/") == 200
            assert installation.status_of(first_link) == 200
            installation.stop(process, signal.SIGTERM)
        finally:
            process.kill()

    with installation.start() as process:
        try:
            second_link = installation.read_until_link(process)
            assert installation.env_file.read_bytes() == before
            assert installation.status_of(second_link) == 200
            assert installation.status_of(first_link) == 404
            installation.stop(process, signal.SIGINT)
        finally:
            process.kill()


def test_an_unsafe_production_start_is_refused_with_its_numbers(tmp_path):
    installation = Installation(tmp_path)
    installation.environment |= {"AGENTSITE_ENV": "production", "AGENTSITE_DEBUG": "true"}

    with installation.start() as process:
        said, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode != 0
    for number in ("E002", "E003", "E004", "E005", "E009"):
        assert f"agentsite.{number}" in said
    assert not installation.env_file.exists()


def test_a_taken_port_is_said_before_anything_is_done(db):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"127.0.0.1:{port}.*--port"):
            call_command("up", port=port)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "８０００"])
def test_what_is_no_port_is_refused(port):
    with pytest.raises(CommandError, match="1 to 65535"):
        call_command("up", f"--port={port}")


def test_nothing_is_migrated_when_there_is_nothing_to_migrate(db, django_assert_max_num_queries):
    with django_assert_max_num_queries(3):
        assert startup.migrate() == 0


def test_no_set_up_link_is_offered_once_there_is_an_administrator(staff):
    assert startup.setup_path() is None


def test_scripts_create_the_administrator_without_a_link(db, monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_USERNAME", "root")
    monkeypatch.setenv("DJANGO_SUPERUSER_EMAIL", "root@example.org")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "correct horse battery staple")

    call_command("createsuperuser", interactive=False, verbosity=0)

    user = get_user_model().objects.get(username="root")
    assert user.is_superuser
    assert user.check_password("correct horse battery staple")
    assert startup.setup_path() is None
