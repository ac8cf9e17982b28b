"""*Make this a case*, offered where answers are read: behind a slash, for whoever has suites."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.commands import Command
from conversations.models import Conversation


def commands(conversation: Conversation) -> Iterator[Command]:
    if conversation.message_count:
        address = reverse("evals:make", args=[conversation.uid])
        yield Command("case", _("Make an answer a case of an eval"), address=address)
