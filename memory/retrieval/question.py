"""What a question looks for: its terms, what must stand there as it is written, whether it means now.

Nothing here knows what there is to find; how finds are ordered is `ranking`'s and `turns`' part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .words import pairs_of, plain, terms_of

QUESTION_LIMIT = 2_000
"""Characters of a question that are looked at."""
MOST_TERMS = 40

_HOLDING = """
a an and any are as at be been being but by can could did do does doing for from had has have having he her
hers him his how i if in into is it its just let me my of on or our ours out please she should so some such
than that the their them then there these they this those to too up us was we were what when where which who
whom whose why will with would you your yours am about also not no s t d ll m re ve tell know remember many
much ever mean
"""
FUNCTION_WORDS = frozenset(_HOLDING.split())
"""What only holds a question together."""
_PRESENT = "now current currently today latest newest nowadays presently still"
NOW_WORDS = frozenset(_PRESENT.split())
_NOW = re.compile(r"(?i)\b(?:at the moment|these days|right now|as of today|by now|most recent)\b")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r'["“”„«»]([^"“”„«»\n]{2,100})["“”„«»]')
_WRITTEN = re.compile(r"[\w./:#@+-]{3,100}")
_INSIDE = re.compile(r"[A-Za-z0-9][._/:#@+-][A-Za-z0-9]|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    terms: tuple[str, ...]
    """Each once, in order, without what only holds the question together."""
    names: tuple[str, ...]
    """Pairs of terms that are capitalised side by side: a name, which is that of something else where only
    half of it stands."""
    pairs: tuple[str, ...]
    """Other pairs of terms side by side."""
    phrases: tuple[str, ...]
    """What was put in quotation marks, in lower case: it has to stand there."""
    identifiers: tuple[str, ...]
    """Names of code, paths, numbers with letters, in lower case: who has them as written goes first."""
    now: bool
    """It asks for what is so at present."""


def read_question(text: str) -> Question:
    text = text[:QUESTION_LIMIT]
    said = {plain(word) for word in _WORD.findall(text)}
    now = bool(said & NOW_WORDS or _NOW.search(text))
    bare = _NOW.sub(" ", text) if now else text
    words = _WORD.findall(bare) or _WORD.findall(text)
    left_out = FUNCTION_WORDS | NOW_WORDS if now else FUNCTION_WORDS
    telling = [plain(word) not in left_out for word in words]
    if not any(telling):
        telling = [True] * len(words)
    chosen = [word for word, tells in zip(words, telling, strict=True) if tells]
    names, pairs = _side_by_side(words, telling)
    written = [word.strip(".:/-+") for word in _WRITTEN.findall(bare)]
    return Question(
        text=text,
        terms=tuple(dict.fromkeys(terms_of(" ".join(chosen))))[:MOST_TERMS],
        names=names,
        pairs=pairs,
        phrases=tuple(" ".join(found.split()).lower() for found in _QUOTED.findall(text)),
        identifiers=tuple(dict.fromkeys(w.lower() for w in written if _INSIDE.search(w))),
        now=now,
    )


def _side_by_side(words: list[str], telling: list[bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Pairs of terms from telling words that stand side by side: those of two capitalised words, others."""
    names: list[str] = []
    pairs: list[str] = []
    for at in range(len(words) - 1):
        if telling[at] and telling[at + 1]:
            found = pairs_of(terms_of(" ".join(words[at : at + 2])))
            both = words[at][:1].isupper() and words[at + 1][:1].isupper()
            (names if both else pairs).extend(found)
    return tuple(dict.fromkeys(names))[:MOST_TERMS], tuple(dict.fromkeys(pairs))[:MOST_TERMS]
