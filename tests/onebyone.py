"""Migrate an empty database one operation at a time, by Django's own command, as if ours were not there.

    python -m tests.onebyone [--all]

Without `--all` only what has a history: apps of other packages, and of ours those with more than one
migration. All of them take half a minute of a processor, since nearly all models hang together.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django
from django.apps import apps
from django.core.management import call_command
from django.core.management.commands.migrate import Command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from agentsite.environment import BASE_DIR


def with_a_history() -> list[str]:
    loader = MigrationLoader(connection)
    return [
        label
        for label in sorted(loader.migrated_apps)
        if BASE_DIR not in Path(apps.get_app_config(label).path).parents
        or sum(app == label for app, _name in loader.disk_migrations) > 1
    ]


def main() -> None:
    django.setup()
    if "--all" in sys.argv:
        call_command(Command(), verbosity=0)
    else:
        for label in with_a_history():
            call_command(Command(), label, verbosity=0)


if __name__ == "__main__":
    main()
