"""Where a conversation's page leads to what was recalled in it."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.commands import Command
from conversations.models import Conversation


def commands(conversation: Conversation) -> Iterator[Command]:
    if conversation.features.memory:
        address = reverse("recall:recalled", args=[conversation.uid])
        yield Command("memory", _("What was recalled here, and why"), dialog=address)
