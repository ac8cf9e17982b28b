"""What a text is found by: its words without endings, case and accents, the same on every database.

Identifiers count as a whole and by their parts. Scripts without spaces are taken two signs at a time.
How much a word says is `ranking`'s part.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import snowballstemmer

from reading.normalizing import normalized

from .irregular import BASE

_APART = "\ue000"
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


def terms_of(text: str) -> list[str]:
    """The terms of `text`, in order; a word that is an identifier gives itself and its parts."""
    found: list[str] = []
    for word in _WORD.findall(_composed(text)):
        if _UNSPACED.search(word):
            found += _pairs(_signs(word))
            continue
        found.append(_stem(_signs(word)))
        parts = _PART.findall(word)
        if len(parts) > 1:
            found += [_stem(_signs(part)) for part in parts]
    return [term for term in found if term]


def as_said(terms: Sequence[str], text: str) -> list[str]:
    """The words of `text` that terms of it stand for, as people read them; a term of no word stays."""
    words: dict[str, str] = {}
    for word in _WORD.findall(_composed(text)):
        for term in terms_of(word):
            words.setdefault(term, word)
    return list(dict.fromkeys(words.get(term, term) for term in terms))


def audience_of(kind: str, *keys: int | None) -> str:
    """What stands in the index before each term of what the same people may see, so that a term of theirs is
    looked up without meeting anybody else's. No text gives it."""
    return f"{_APART}{kind}{'x'.join(str(key) for key in keys)}{_APART}"


def indexed(text: str) -> str:
    """The terms of a text as they are kept, each as often as it stands there."""
    return " ".join(terms_of(text))


def pairs_of(terms: Sequence[str]) -> list[str]:
    """Terms side by side, as terms of their own."""
    return [f"{one} {other}" for one, other in itertools.pairwise(terms)]


def plain(word: str) -> str:
    """Without case and accents."""
    if word.isascii():
        return word.lower()
    folded = word.casefold()
    try:
        folded = normalized("NFKD", folded)
    except ValueError:  # no language's word
        pass
    return "".join(sign for sign in folded if not unicodedata.combining(sign))


def _signs(word: str) -> str:
    """`plain`, without what is no sign of a word: "½" comes apart into digits and a stroke, and what an index
    takes for the end of a term may not stand within one."""
    found = plain(word)
    return found if found.isalnum() else "".join(sign for sign in found if sign.isalnum())


def _composed(text: str) -> str:
    try:
        return normalized("NFC", text)
    except ValueError:
        return text


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    word = word[:TERM_LIMIT]
    if not (word.isalpha() and word.isascii()):
        return word
    with _stemming:
        return str(_STEMMER.stemWord(BASE.get(word, word)))


def _pairs(word: str) -> list[str]:
    return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
