"""Tickets for sockets: made for whoever may read the conversation, taken once and soon.

Only for clients that cannot send a header, a subprotocol or a first frame; all others show their
token there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from accounts.tokens import hash_token, new_token
from conversations.actions.own import require_readable
from conversations.models import Conversation, SocketTicket

LIFETIME = timedelta(seconds=30)
"""Enough to open the socket right after asking."""


@dataclass(frozen=True, slots=True)
class IssuedTicket:
    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Admission:
    """Whom a ticket let in, and by which token or session, which must go on being valid."""

    user_id: int
    token_uid: str
    session_key: str


def issue_ticket(
    *, actor: User, conversation: Conversation, token_uid: str = "", session_key: str = ""
) -> IssuedTicket:
    """A ticket for this conversation's socket. Raises NotFound."""
    require_readable(actor, conversation)
    secret = new_token()
    now = timezone.now()
    with transaction.atomic():
        SocketTicket.objects.filter(expires_at__lt=now).delete()
        SocketTicket.objects.create(
            digest=hash_token(secret),
            user=actor,
            conversation=conversation,
            token_uid=token_uid,
            session_key=session_key,
            expires_at=now + LIFETIME,
        )
    return IssuedTicket(secret, now + LIFETIME)


def take_ticket(secret: str, *, conversation_uid: str) -> Admission | None:
    """Use the ticket up; None if there is no such one for this conversation, or no longer."""
    found = SocketTicket.objects.filter(
        digest=hash_token(secret),
        conversation__uid=conversation_uid,
        expires_at__gt=timezone.now(),
    ).first()
    if found is None:
        return None
    taken, _each = SocketTicket.objects.filter(pk=found.pk).delete()
    if not taken:
        return None  # somebody else was first
    return Admission(found.user_id, found.token_uid, found.session_key)
