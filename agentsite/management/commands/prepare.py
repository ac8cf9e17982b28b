"""`manage.py prepare`: what a release does once, before its processes start; safe to repeat."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from agentsite import startup
from agentsite.seeding import seed


class Command(BaseCommand):
    help = "Migrate the database, seed what is missing, print the set-up link if one is needed."

    def handle(self, *args: Any, **options: Any) -> None:
        applied = startup.migrate()
        self.stdout.write(f"The database is up to date ({applied} migrations applied).")
        seed()
        if words := startup.setup_words(settings.AGENTSITE_BASE_URL, startup.setup_path()):
            self.stdout.write(words)
