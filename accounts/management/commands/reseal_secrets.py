"""`manage.py reseal_secrets`: after a new vault key. `accounts.actions.rotation` does it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.actions.rotation import reseal_secrets
from harness.errors import NotConfigured


class Command(BaseCommand):
    help = "Seal every stored secret under the first key of AGENTSITE_VAULT_KEY."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = reseal_secrets()
        except NotConfigured as error:
            raise CommandError(error.words) from None
        self.stdout.write(f"{count} secrets sealed anew.")
