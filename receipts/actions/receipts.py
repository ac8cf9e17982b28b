"""A conversation's receipt is made for its owner: the log as a chain, and what is stated beside it."""

from __future__ import annotations

import secrets
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import require_own
from conversations.models import Conversation, Event
from harness.errors import Conflict, LimitReached
from harness.events import dump
from receipts.signing import current_key, sign
from receipts.statements import statements_of
from receipts.verifying import (
    FORMAT,
    canonical,
    commitment_of,
    link,
    redacted,
    root_of,
    start_of,
)

MOST_EVENTS = 50_000
SALT = 16
"""Bytes of each leaf's own salt: what was taken out cannot be guessed by trying."""
KEPT_TYPES = ("session.status_", "session.usage", "span.", "x.input_taken")
"""How the types of events begin that say what happened and nothing of what was said."""


def make_receipt(*, actor: User, conversation: Conversation, words: bool = True) -> bytes:
    """The receipt of a conversation of the actor's as it stands. Without `words`, what was said, called and
    answered is taken out of it, and which files and inputs there were.

    Raises NotFound, Forbidden, Conflict while it works, LimitReached for a log that is too long, and
    NotConfigured where the server has no vault key.
    """
    require_own(actor, conversation)
    conversation.refresh_from_db()
    if conversation.is_running:
        raise Conflict(_("This conversation is at work."), hint=_("Wait until it rests."))
    rows = list(
        Event.objects.filter(conversation=conversation, seq__lte=conversation.last_seq)
        .select_related("actor")
        .order_by("seq")[: MOST_EVENTS + 1]
    )
    if len(rows) > MOST_EVENTS:
        raise LimitReached(
            _("The log has more than %(limit)d events.") % {"limit": MOST_EVENTS},
            hint=_("Export it in another form."),
        )
    key = current_key()
    events = [_leaf(_of_event(row)) for row in rows]
    by_uid = {row.uid: row for row in rows}
    said = statements_of(conversation, [row.entry() for row in rows], by_uid)
    statements = {name: _leaf(value) for name, value in said.items()}
    chain = start_of(conversation.uid)
    for number, leaf in enumerate(events, start=1):
        chain = link(chain, number, commitment_of(leaf["salt"], leaf["value"]))
    head: dict[str, object] = {
        "format": FORMAT,
        "conversation": conversation.uid,
        "made_at": timezone.now().isoformat(),
        "key": key.fingerprint,
        "events": len(events),
        "chain": chain,
        "statements": root_of(
            {name: commitment_of(leaf["salt"], leaf["value"]) for name, leaf in statements.items()}
        ),
    }
    whole = canonical(
        {
            "head": head,
            "events": events,
            "statements": statements,
            "signature": sign(key, head),
        }
    )
    return whole if words else without_words(whole)


def without_words(receipt: bytes) -> bytes:
    """Without what was said, called and answered; the types of all else tell what happened."""
    return redacted(
        receipt,
        events=lambda event: not str(event["type"]).startswith(KEPT_TYPES),
        statements=("inputs", "files", "prompt"),
    )


def _of_event(row: Event) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "id": row.uid,
        "type": row.type,
        "at": row.created_at.isoformat(),
        "by": row.actor.uid if row.actor else None,
        "run": row.run_id,
        "event": dump(row.value),
    }


def _leaf(value: Any) -> dict[str, Any]:
    return {"salt": secrets.token_hex(SALT), "value": value}
