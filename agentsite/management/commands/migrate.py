"""Django's `migrate`, which makes the tables of an empty database at once (`agentsite.freshdatabase`)."""

from __future__ import annotations

from typing import Any

from django.core.management.base import no_translations
from django.core.management.commands import migrate
from django.db import connections

from agentsite.freshdatabase import make_all_tables

# Of these each asks for another thing than a database that is up to date.
NARROWED = (
    "app_label",
    "migration_name",
    "fake",
    "fake_initial",
    "plan",
    "check_unapplied",
    "prune",
)


class Command(migrate.Command):
    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        if not any(options[name] for name in NARROWED):
            connection = connections[options["database"]]
            connection.prepare_database()
            if make_all_tables(connection) and options["verbosity"] >= 1:
                self.stdout.write("  The database was empty: all tables were made at once.")
        super().handle(*args, **options)
