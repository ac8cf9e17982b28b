"""`manage.py up`: prepare what is missing, then serve, in one process; safe to repeat."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentsite import server, startup
from agentsite.seeding import seed
from reading.arguments import whole_number

port_number = whole_number(1, 65_535)
PROCESSES = whole_number(1, 1_000)


class Command(BaseCommand):
    help = "Prepare what is missing (database, seeds, set-up link) and serve the site."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=port_number, default=8000, help="port to listen on")

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        try:
            server.require_free_port(host, port)
        except server.PortTaken as problem:
            raise CommandError(_taken(host, port, str(problem))) from None
        applied = startup.migrate()
        if applied:
            self.stdout.write(f"Prepared the database ({applied} migrations).")
        seed()
        path = startup.setup_path()
        if not server.is_loopback(host):
            self._warn_about_hosts(host)
        if not server.serve(host, port, lambda: self._announce(host, port, path)):
            raise CommandError(_taken(host, port, "it was taken during the start"))
        self.stdout.write("Stopped.")

    def _announce(self, host: str, port: int, path: str | None) -> None:
        address = settings.AGENTSITE_BASE_URL or _address(host, port)
        self.stdout.write(f"Agentsite is at {address}/ (Ctrl+C stops it).")
        if words := startup.setup_words(address, path):
            self.stdout.write(f"\n{words}\n")
        self.stdout.flush()

    def _warn_about_hosts(self, host: str) -> None:
        if settings.DEBUG:
            self.stderr.write("Debug mode is on and other machines can reach this server.")
        named = ", ".join(settings.ALLOWED_HOSTS) or "none"
        self.stderr.write(
            f"Listening on {host}. Host names answered: {named}. "
            "Set AGENTSITE_ALLOWED_HOSTS to add the names others use."
        )


def _address(host: str, port: int) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _taken(host: str, port: int, why: str) -> str:
    return (
        f"Cannot listen on {host}:{port}: {why}. "
        f"Stop what uses it, or choose another port: manage.py up --port {port % 65535 + 1}"
    )
