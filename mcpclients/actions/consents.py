"""A person lets a client in: a token of hers for `/mcp` alone, and the code by which the client gets its
secrets. She ends it like every token of hers (`accounts.actions.tokens`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actions.tokens import create_token
from accounts.models import Organisation, User
from accounts.tokens import hash_token, new_token
from harness.errors import Forbidden, Invalid, NotFound
from mcpclients.models import AUDIENCE, Connection, McpClient
from mcpclients.redirects import fits, host_of, program_of
from mcpclients.scopes import OFFERED

CODE_SECONDS = 60
DAYS = (30, 90, 365)
_SHOWN = 38
"""Characters of each of the two halves of a token's name."""


def allow_client(
    *,
    actor: User,
    organisation: Organisation,
    client: McpClient,
    scopes: Iterable[str],
    days: int,
    redirect_uri: str,
    challenge: str,
) -> str:
    """The code, known only now. Raises what `create_token` does, NotFound where clients are not let in, and
    Forbidden for one that is blocked."""
    if not settings.AGENTSITE_MCP_OAUTH:
        raise NotFound(_("Clients are not let in here."))
    wanted = list(scopes)
    if not set(wanted) <= set(OFFERED) or days not in DAYS:
        raise Invalid(_("There is no such choice."), field="scopes" if days in DAYS else "days")
    if not any(fits(redirect_uri, each) for each in client.redirect_uris):
        raise Invalid(_("The client did not say that its answers go there."), field="redirect_uri")
    code = new_token()
    now = timezone.now()
    with transaction.atomic():
        held = McpClient.objects.select_for_update().filter(pk=client.pk).first()
        if held is None or held.blocked_at is not None:
            raise Forbidden(
                _("This client is blocked on this server."), hint=_("Ask its operator.")
            )
        issued = create_token(
            actor=actor,
            organisation=organisation,
            # With the host, since anybody may call a client anything.
            name=f"{client.name[:_SHOWN]} ({_shown_host(redirect_uri)})",
            scopes=wanted,
            expires_at=now + timedelta(seconds=CODE_SECONDS),
            audience=AUDIENCE,
        )
        Connection.objects.create(
            token=issued.token,
            client=held,
            ends_at=now + timedelta(days=days),
            code_hash=hash_token(code),
            redirect_uri=redirect_uri,
            challenge=challenge,
        )
    return code


def _shown_host(redirect_uri: str) -> str:
    """The half in which whose it is stands: a program's scheme begins with that, a host ends with it."""
    host = host_of(redirect_uri)
    return host[:_SHOWN] if program_of(redirect_uri) else host[-_SHOWN:]
