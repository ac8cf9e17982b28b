"""What a start prepares, each step doing nothing when there is nothing to do.

Secrets are written earlier (`agentsite.environment`), serving comes after (`agentsite.server`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse

from accounts.actions.setup import issue_setup_link
from agentsite.environment import PRODUCTION


def missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def migrate() -> int:
    """Apply the migrations that are missing; how many there were. Raises `CommandError` for a database
    that was made before its tables belonged to their apps, from which no way leads here."""
    missing = missing_migrations()
    if missing:
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except InconsistentMigrationHistory as problem:
            raise CommandError(
                "This database was made by an earlier, unreleased version, and no way leads on from it.\n"
                "Keep it aside, name an empty one (AGENTSITE_DATABASE_URL, or another AGENTSITE_DATA_DIR)"
                " and start again; conversations that were exported stay readable."
            ) from problem
    return missing


def close_connections() -> None:
    """Before processes are started that must not share them."""
    connections.close_all()


def setup_path() -> str | None:
    """The path of a fresh one-time set-up link, or None once there is an administrator."""
    token = issue_setup_link()
    return reverse("accounts:setup", args=[token]) if token else None


def setup_words(address: str, path: str | None) -> str:
    """What a start says of the set-up link; empty without one.

    What a production server prints is kept in logs that more people read than may set it up, so there
    the link goes into a file that only the server's user reads, unless somebody sits at the terminal.
    """
    file = Path(settings.AGENTSITE_DATA_DIR) / "setup-link"
    file.unlink(missing_ok=True)
    if not path:
        return ""
    if settings.AGENTSITE_ENV != PRODUCTION or sys.stdout.isatty():
        return f"Create the first administrator with this link; it works once:\n  {address}{path}"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(f"{address}{path}\n")
    return f"The link that creates the first administrator, once, is in {file}."
