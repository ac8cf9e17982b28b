"""Where a person can go by name: the pages that are hers, and her conversations.

Names only; each page asks by itself who may see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from conversations.search import words_of
from keeping.finding import understand

from .links import address_of

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
        (_("Folders"), "folders:folders"),
        (_("Approvals"), "approvals:approvals"),
        (_("Tasks"), "tasks:tasks"),
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


def conversations_of(user: User, organisation: Organisation, text: str) -> list[Destination]:
    """The first of her conversations that are found by `text`, each where it was found; raises Invalid as
    `keeping.finding.understand`."""
    search = understand(user, organisation, text)
    found = search.among(Conversation.objects.owned_by(user), organisation).in_list_order()
    first = list(found[:MOST_CONVERSATIONS])
    hits = search.hits(first)
    return [
        Destination(
            each.title or _("Untitled"),
            address_of(each, hits[each.pk].subject) if each.pk in hits else each.get_absolute_url(),
        )
        for each in first
    ]
