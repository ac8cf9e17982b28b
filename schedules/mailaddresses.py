"""The addresses of orders that mails begin: what the operator set, with a key that is hard to guess.

`agents@example.org` becomes `agents+KEY@example.org`, and `@in.example.org`, a domain of which all mails come
in, `KEY@in.example.org`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable

from django.conf import settings

_SIGNS = "abcdefghijkmnpqrstuvwxyz23456789"
"""Mail servers may change the case, and people mistake some signs for others."""
KEY_LENGTH = 20
_SENDER = re.compile(r"(?:[^@\s<>,;\"]{1,64})?@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,9}")


def takes_mail() -> bool:
    """Whether mails come in here at all."""
    return bool(settings.AGENTSITE_INBOUND_MAIL)


def new_key() -> str:
    return "".join(secrets.choice(_SIGNS) for _ in range(KEY_LENGTH))


def address_of(key: str) -> str:
    """Empty where no mails come in."""
    local, _at, domain = settings.AGENTSITE_INBOUND_MAIL.rpartition("@")
    if not domain:
        return ""
    return f"{local}+{key}@{domain}" if local else f"{key}@{domain}"


def keys_in(addresses: Iterable[str]) -> list[str]:
    """The keys that these addresses may hold, each once, in order."""
    local, _at, domain = settings.AGENTSITE_INBOUND_MAIL.lower().rpartition("@")
    found = []
    for address in addresses:
        before, _sign, behind = address.lower().rpartition("@")
        if not domain or behind != domain:
            continue
        if local:
            name, _plus, key = before.partition("+")
            if name != local:
                continue
        else:
            key = before
        if len(key) == KEY_LENGTH and not set(key) - set(_SIGNS):
            found.append(key)
    return list(dict.fromkeys(found))


def is_sender(text: str) -> bool:
    """Whether it is an address, or a domain as `@example.org`, in lower case."""
    return len(text) <= 254 and text.isprintable() and bool(_SENDER.fullmatch(text))


def is_among(sender: str, senders: Iterable[str]) -> bool:
    """Whether the address is one of these, or of one of these domains; none below them."""
    sender = sender.lower()
    domain = f"@{sender.rpartition('@')[2]}"
    return any(each in (sender, domain) for each in senders)
