"""A person puts conversations on top of her list, and takes them down again."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import readable_conversation
from conversations.models import Conversation
from harness.errors import Conflict
from keeping.models import Pin

MOST = 50
"""Pins of a person in one organisation: they all stand on the first page of her list."""


def pin_conversation(*, actor: User, conversation: Conversation, pinned: bool) -> Pin | None:
    """Keep it at the top of her list, or no longer. Pinning again does not move it.

    Raises NotFound, and Conflict where `MOST` are pinned already.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        conversation = readable_conversation(actor, conversation)
        hers = Pin.objects.filter(user=actor)
        if not pinned:
            hers.filter(conversation=conversation).delete()
            return None
        pin = hers.filter(conversation=conversation).first()
        if pin is not None:
            return pin
        here = hers.filter(conversation__organisation=conversation.organisation_id)
        if here.count() >= MOST:
            raise Conflict(
                _("You have pinned %(limit)d conversations already.") % {"limit": MOST},
                hint=_("Unpin one first, or give this one a tag."),
            )
        return Pin.objects.create(user=actor, conversation=conversation, pinned_at=timezone.now())
