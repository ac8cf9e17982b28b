"""What a person types to find conversations: words, quoted phrases and filters such as `tag:tax`.

Reading only, in one pass over the text; which filters there are is said by whoever knows what they mean
(`know`), and what they find is `finding`'s part. An unknown word before a colon is text like any other, since
addresses and code have colons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from django.db.models import Q

from accounts.models import Organisation, User
from conversations.search import Phrase, check_length, readable

Narrow = Callable[[User, Organisation, str], Q]
"""The condition on conversations that a filter's value means for this person there. Raises Invalid (`q`)."""

_known: dict[str, Narrow] = {}


def know(name: str, narrow: Narrow) -> None:
    """Have `name:value` understood from now on."""
    _known[name] = narrow


def known() -> dict[str, Narrow]:
    return dict(_known)


@dataclass(frozen=True, slots=True)
class Typed:
    """A search, read."""

    words: list[str] = field(default_factory=list)
    """Each once; a `Phrase` stood in quotes."""
    filters: list[tuple[str, str]] = field(default_factory=list)


def read(text: str, names: Collection[str]) -> Typed:
    """Raises Invalid for a text that is too long, and for nothing else: what cannot be a filter is a word."""
    check_length(text)
    text = readable(text)
    words: dict[str, str] = {}
    filters: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        token, place, quoted = _token(text, place)
        name, colon, value = ("", "", "") if quoted else token.partition(":")
        if colon and name.lower() in names:
            if value.startswith('"'):
                value = value.strip('"')
            filters.append((name.lower(), value.strip()))
        elif token:
            words.setdefault(token, token)
    return Typed(list(words.values()), filters)


def _token(text: str, start: int) -> tuple[str, int, bool]:
    """What stands there up to a space outside of quotes, where the next begins, and whether it is a phrase. A
    quote that is not closed is a sign like any other."""
    if text[start] == '"':
        end = text.find('"', start + 1)
        if end > start + 1:
            return Phrase(text[start + 1 : end].strip()), end + 1, True
    end = text.find(" ", start)
    end = len(text) if end < 0 else end
    opened = text.find(':"', start, end)
    if opened >= 0:
        closed = text.find('"', opened + 2)
        if closed >= 0:
            return text[start : closed + 1], closed + 1, False
    return text[start:end], end, False
