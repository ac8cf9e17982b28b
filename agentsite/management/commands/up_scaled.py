"""`manage.py up_scaled`: what many machines run, on this one, in the foreground; Ctrl+C ends it all.

PostgreSQL, Redis, web processes, workers and the schedule, each a process of its own, from the same
code as `up`: only the three addresses differ.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentsite import environment, server
from agentsite.local_services import LocalPostgreSQL, LocalRedis, Unavailable
from agentsite.management.commands.up import PROCESSES, port_number

MANAGE = environment.BASE_DIR / "manage.py"


class Command(BaseCommand):
    help = "Start PostgreSQL, Redis, web processes, workers and the schedule on this machine."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=port_number, default=8000, help="port to listen on")
        parser.add_argument("--web", type=PROCESSES, default=2, help="web processes")
        parser.add_argument("--workers", type=PROCESSES, default=2, help="worker processes")

    def handle(
        self, *args: Any, host: str, port: int, web: int, workers: int, **options: Any
    ) -> None:
        try:
            server.require_free_port(host, port)
        except server.PortTaken as problem:
            raise CommandError(f"Cannot listen on {host}:{port}: {problem}.") from None
        directory = _directory()
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            postgresql, redis = LocalPostgreSQL(directory), LocalRedis()
            try:
                postgresql.start()
                redis.start()
                self._serve(postgresql.url, redis.url, host, port, web, workers)
            finally:
                redis.stop()
                postgresql.stop()
        except Unavailable as problem:
            raise CommandError(str(problem)) from None
        self.stdout.write("Stopped.")

    def _serve(
        self, database: str, redis: str, host: str, port: int, web: int, workers: int
    ) -> None:
        shared = {
            **os.environ,
            "AGENTSITE_DATABASE_URL": database,
            "AGENTSITE_REDIS_URL": f"{redis}/0",
            "AGENTSITE_BROKER_URL": f"{redis}/1",
            "AGENTSITE_BASE_URL": settings.AGENTSITE_BASE_URL or f"http://{host}:{port}",
        }
        manage = [sys.executable, str(MANAGE)]
        celery = [sys.executable, "-m", "celery", "-A", "agentsite"]
        subprocess.run([*manage, "prepare"], env=shared, check=True)
        serve = [*manage, "serve", "--host", host, "--port", str(port), "--workers", str(web)]
        commands = [serve]
        commands += [
            [*celery, "worker", "--hostname", f"worker{number}@%h"] for number in range(workers)
        ]
        commands.append([*celery, "beat"])
        # Sessions of their own: Ctrl+C reaches this process, which tells them in its own time.
        children = [
            subprocess.Popen(command, env=shared, cwd=environment.BASE_DIR, start_new_session=True)
            for command in commands
        ]
        self.stdout.write(f"Agentsite is at {shared['AGENTSITE_BASE_URL']}/ (Ctrl+C stops it).")
        self.stdout.flush()
        try:
            self._watch(children)
        except KeyboardInterrupt:
            self.stdout.write("Stopping: what runs gets a moment to come to a good place.")
        finally:
            self._stop(children)

    def _watch(self, children: list[subprocess.Popen[bytes]]) -> None:
        ended = threading.Event()
        while not ended.wait(0.5):
            for child in children:
                if child.poll() is not None:
                    raise CommandError(f"{child.args!r} ended with {child.returncode}.")

    def _stop(self, children: list[subprocess.Popen[bytes]]) -> None:
        for child in children:
            if child.poll() is None:
                child.terminate()
        for child in children:
            try:
                child.wait(settings.AGENTSITE_DRAIN_SECONDS + 15)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _directory() -> Path:
    """Of the database. Root's runs as another user, to whom the data directory is closed."""
    own = Path(settings.AGENTSITE_DATA_DIR) / "scaled"
    if os.geteuid() != 0:
        return own
    mark = hashlib.sha256(str(own).encode()).hexdigest()[:8]
    return Path("/var/lib") / f"agentsite-scaled-{mark}"
