"""What a start prepares, each step doing nothing when there is nothing to do.

Secrets are written earlier (`agentsite.environment`), serving comes after (`agentsite.server`).
"""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse

from accounts.actions.setup import issue_setup_link


def missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def migrate() -> int:
    """Apply the migrations that are missing; how many there were."""
    missing = missing_migrations()
    if missing:
        call_command("migrate", interactive=False, verbosity=0)
    return missing


def close_connections() -> None:
    """Before processes are started that must not share them."""
    connections.close_all()


def setup_path() -> str | None:
    """The path of a fresh one-time set-up link, or None once there is an administrator."""
    token = issue_setup_link()
    return reverse("accounts:setup", args=[token]) if token else None
