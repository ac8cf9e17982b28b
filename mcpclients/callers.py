"""Whom a client speaks for that shows its access token, at `/mcp` and nowhere else."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from accounts.api.authentication import Caller, caller_of_token, caller_with
from accounts.tokens import hash_token

from .exchange import ACCESS_PREFIX, LONGEST_SECRET
from .models import Connection


@sensitive_variables("secret")
def caller_at_mcp(secret: str) -> Caller | None:
    """By a person's token or a client's, as `caller_with`."""
    if not secret.startswith(ACCESS_PREFIX):
        return caller_with(secret)
    if not settings.AGENTSITE_MCP_OAUTH or len(secret) > LONGEST_SECRET or not secret.isascii():
        return None
    now = timezone.now()
    rows = Connection.objects.in_force(now).filter(
        access_hash=hash_token(secret), access_ends_at__gt=now
    )
    uid = rows.values_list("token__uid", flat=True).first()
    return caller_of_token(uid) if uid else None
