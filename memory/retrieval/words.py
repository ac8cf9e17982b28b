"""What a text is found by: its words without endings, case and accents, the same on every database.

Identifiers count as a whole and by their parts. Scripts without spaces are taken two signs at a time.
How much a word says is `ranking`'s part.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

import snowballstemmer

_SCOPE = "\ue000"
"""A private character: part of a word to FTS5, and of none to `_WORD`."""
TERM_LIMIT = 40
"""Characters of a term; of longer words the beginning counts."""
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+|[^\W\d_A-Za-z]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_STEMMER = snowballstemmer.stemmer("english")
_stemming = threading.Lock()
"""A stemmer keeps the word that it is at."""

_HOLDING = """
a an and any are as at be been being but by can could did do does doing for from had has have having he her
hers him his how i if in into is it its just let me my of on or our ours out please she should so some such
than that the their them then there these they this those to too up us was we were what when where which who
whom whose why will with would you your yours am about also not no s t d ll m re ve tell know remember many
much ever
"""
FUNCTION_WORDS = frozenset(_HOLDING.split())
"""Of a question: what only holds it together."""


def terms_of(text: str) -> list[str]:
    """The terms of `text`, in order; a word that is an identifier gives itself and its parts."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFC", text)):
        if _UNSPACED.search(word):
            found += _pairs(plain(word))
            continue
        found.append(_stem(plain(word).replace("_", "")))
        parts = _PART.findall(word)
        if len(parts) > 1:
            found += [_stem(plain(part)) for part in parts]
    return [term for term in found if term]


def scope_term(store_id: int) -> str:
    """Stands among the terms of all that lies in a store; no text gives it."""
    return f"{_SCOPE}{store_id}"


def indexed(store_id: int, text: str) -> str:
    """What the index has of a text in a store, each term as often as it stands there."""
    return " ".join((scope_term(store_id), *terms_of(text)))


def asked_terms(query: str) -> list[str]:
    """Those of a question that say what it is about, each once; all of them where none does."""
    words = [word for word in _WORD.findall(query) if plain(word) not in FUNCTION_WORDS]
    return list(dict.fromkeys(terms_of(" ".join(words) if words else query)))


def plain(word: str) -> str:
    """Without case and accents."""
    if word.isascii():
        return word.lower()
    bare = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in bare if not unicodedata.combining(sign))


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    word = word[:TERM_LIMIT]
    if not (word.isalpha() and word.isascii()):
        return word
    with _stemming:
        return str(_STEMMER.stemWord(word))


def _pairs(word: str) -> list[str]:
    return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
