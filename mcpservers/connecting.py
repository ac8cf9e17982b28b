"""Connections of people to MCP servers: which one a call uses, whose token is good now, what the server wants
on top. How one comes about is `actions.connections`'.
"""

from __future__ import annotations

from dataclasses import dataclass

from conversations.models import Conversation
from vaults.auth import details_of
from vaults.models import VaultCredential
from vaults.oauth import RefreshFailed, fresh_token

from .models import McpConnection, McpServer
from .whose import is_hers_alone

MOST_STEPS = 5
"""Times that a server may ask for more permissions of one connection."""
MOST_SCOPE = 2_000


class Lapsed(Exception):
    """There is a connection, and no token to be had by it."""


@dataclass(frozen=True, slots=True)
class Connected:
    connection_id: int
    credential_id: int
    scope: str


def is_answer_of(issuer: str, claimed: str, *, names_itself: bool) -> bool:
    """Whether it was that authorisation server that answered, by what it said of itself (RFC 9207), sign by
    sign: one that says nothing is believed where it never said that it would."""
    return claimed == issuer or not (claimed or names_itself)


def connection_of(
    server: McpServer, user_id: int, organisation_id: int | None
) -> McpConnection | None:
    """One in force, for where the server is now."""
    return (
        McpConnection.objects.filter(
            server=server,
            user=user_id,
            organisation=organisation_id,
            url=server.url,
            credential__in=VaultCredential.objects.in_force(),
        )
        .select_related("credential__vault")
        .first()
    )


def connected_in(conversation: Conversation, server: McpServer) -> Connected | None:
    """The owner's own, where nobody else writes: what others write has the agent act by it."""
    found = connection_of(server, conversation.owner_id, conversation.organisation_id)
    if found is None or not is_hers_alone(conversation):
        return None
    return Connected(found.pk, found.credential_id, found.scope)


async def token_of(connected: Connected, *, stale: str | None = None) -> str:
    """`stale`: one that was refused. Raises Lapsed."""
    try:
        return await fresh_token(connected.credential_id, stale=stale)
    except RefreshFailed:
        raise Lapsed from None


def want_more(connection_id: int, scope: str) -> bool:
    """Keep that the server wants these permissions as well; False: they were asked for before, or it has
    asked for more too often."""
    row = McpConnection.objects.filter(pk=connection_id).first()
    if row is None or len(scope) > MOST_SCOPE or not scope.isprintable():
        return False
    have = set(row.scope.split())
    more = [each for each in dict.fromkeys(scope.split()) if each not in have]
    if not more:
        return False
    wanted = " ".join(more)
    if wanted == row.wanted_scope:
        return True
    if row.steps >= MOST_STEPS:
        return False
    McpConnection.objects.filter(pk=row.pk).update(wanted_scope=wanted, steps=row.steps + 1)
    return True


def is_over(connection: McpConnection) -> bool:
    """Its token is, and there is no other to be had."""
    details = details_of(connection.credential)
    return details.refresh is None and details.is_over()
