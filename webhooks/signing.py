"""Secrets of endpoints, and the three headers of Standard Webhooks made with them.

A secret is shown once, to whoever made it; at rest it is sealed by `accounts.vault`.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime

from django.views.decorators.debug import sensitive_variables
from standardwebhooks import Webhook

from accounts import vault

from .models import WebhookSecret

SECRET_BYTES = 32
PREFIX = "whsec_"


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


@sensitive_variables("opened")
def headers(
    event_id: str, body: str, *, at: datetime, valid: Sequence[WebhookSecret]
) -> dict[str, str]:
    """`webhook-id`, `-timestamp` and `-signature` with one signature for each valid secret.

    Raises NotConfigured when one of them cannot be opened.
    """
    opened = [Webhook(vault.open_sealed(secret.sealed)) for secret in valid]
    signatures = [one.sign(event_id, at, body) for one in opened]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def reseal_all() -> int:
    """Seal every secret under the first vault key; how many. In the caller's transaction."""
    count = 0
    for row in WebhookSecret.objects.select_for_update():
        row.sealed = vault.reseal(row.sealed)
        row.save(update_fields=["sealed"])
        count += 1
    return count
