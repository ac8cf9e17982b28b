"""A receipt, offered behind a slash in the conversation it is of."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.commands import Command
from conversations.models import Conversation


def commands(conversation: Conversation) -> Iterator[Command]:
    address = reverse("receipts:receipt", args=[conversation.uid])
    yield Command("receipt", _("A signed receipt of what happened here"), address=address)
