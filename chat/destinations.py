"""Where a person can go by name: the pages that are hers, and her conversations.

Names only; each page asks by itself who may see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from conversations.search import matching, words_of

MOST_CONVERSATIONS = 8


@dataclass(frozen=True, slots=True)
class Destination:
    name: str
    address: str


def pages_of(user: User, text: str = "") -> list[Destination]:
    """Those whose name holds every word of `text`."""
    named = [
        (_("New conversation"), "conversations:new"),
        (_("All conversations"), "conversations:list"),
        (_("Approvals"), "approvals:approvals"),
        (_("Agents"), "agents:agents"),
        (_("Usage and budgets"), "spending:usage"),
        (_("Settings"), "conversations:settings"),
        (_("Provider keys"), "accounts:keys"),
        (_("API tokens"), "accounts:tokens"),
        (_("Vaults"), "vaults:vaults"),
        (_("Workers"), "workers:workers"),
        (_("Organisation and members"), "accounts:organisation"),
        (_("Keyboard"), "conversations:keyboard"),
    ]
    if user.is_staff:
        named += [
            (_("Operations"), "operations:operations"),
            (_("Administration"), "admin:index"),
        ]
    words = [word.lower() for word in words_of(text)]
    return [
        Destination(name, reverse(route))
        for name, route in named
        if all(word in name.lower() for word in words)
    ]


def conversations_of(user: User, organisation: Organisation, text: str) -> list[Conversation]:
    """The first of her conversations in which every word of `text` is found; raises Invalid for a text
    that is too long."""
    listed = Conversation.objects.visible_to(user).listed_in(organisation).in_list_order()
    return list(matching(listed, text)[:MOST_CONVERSATIONS])
