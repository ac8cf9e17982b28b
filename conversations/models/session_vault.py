"""Which vaults a conversation may draw on. Who may lend one is `actions.vaults`' question, which token a
request carries `bearers`'."""

from __future__ import annotations

from django.db import models

from vaults.models import Vault

from .conversation import Conversation


class SessionVault(models.Model):
    """A vault that a conversation, and those it starts, may draw on. The first that fits counts."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="session_vaults"
    )
    vault = models.ForeignKey(Vault, on_delete=models.CASCADE, related_name="session_vaults")
    place = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["conversation", "place"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "vault"], name="session_vault_once")
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id} {self.vault_id}"
