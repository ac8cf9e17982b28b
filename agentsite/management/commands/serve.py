"""`manage.py serve`: pages and sockets with uvicorn, in one process or several. Prepares nothing."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentsite import server, startup
from agentsite.management.commands.up import PROCESSES, port_number


class Command(BaseCommand):
    help = "Serve a prepared installation (see `prepare`) with uvicorn."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=port_number, default=8000, help="port to listen on")
        parser.add_argument(
            "--workers", type=PROCESSES, default=1, help="processes behind the port"
        )

    def handle(self, *args: Any, host: str, port: int, workers: int, **options: Any) -> None:
        if workers > 1 and not settings.AGENTSITE_REDIS_URL:
            raise CommandError(
                "Several processes need AGENTSITE_REDIS_URL: without it, text that streams in one "
                "is not seen in the others."
            )
        try:
            server.require_free_port(host, port)
        except server.PortTaken as problem:
            raise CommandError(f"Cannot listen on {host}:{port}: {problem}.") from None
        missing = startup.missing_migrations()
        if missing:
            raise CommandError(f"{missing} migrations are missing: run `manage.py prepare` first.")
        startup.close_connections()
        self.stdout.write(f"Listening on {host}:{port}.")
        self.stdout.flush()
        server.serve_with_uvicorn(host, port, workers)
