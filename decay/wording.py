"""What is left of a memory's text at each step, made by rule: no model is asked.

A summary is its first sentences, up to `SUMMARY` characters; a marker its day and the longest words of
these. Both are made of the beginning alone, so that a dry run tells what a pass will leave, and a text that
fades by both steps ends as one that goes to the second at once.
"""

from __future__ import annotations

import re
from datetime import datetime

from memory.retrieval.question import FUNCTION_WORDS
from memory.retrieval.words import plain

from .models import Step

BEGINNING = 600
"""Characters of a text that are looked at."""
SUMMARY = 240
"""Characters of a summary, about sixty tokens."""
ENOUGH = 40
"""A first sentence that is shorter is followed by the next."""
WORDS = 5
"""Of a marker."""
WORD = 40
"""Characters of a word of a marker."""
CUT = "…"
BYTES_PER_TOKEN = 4
_ENDS = re.compile(r"[.!?](?=\s)|[。！？]|\n")
_WORD = re.compile(r"\w+")
_HEADINGS = "#*->=• \t"


def left_of(step: Step, beginning: str, *, more: bool, of: datetime) -> str:
    """The text after this step. `beginning`: the first BEGINNING characters at least; `more`: there are
    others. `of`: when it was true, or written."""
    if step == Step.GONE:
        return ""
    lead = summary_of(beginning[:BEGINNING], more=more or len(beginning) > BEGINNING)
    return lead if step == Step.SUMMARY else marker_of(lead, of=of)


def summary_of(text: str, *, more: bool = False) -> str:
    """Its first sentences; all of it where that is short enough."""
    if not more and len(text) <= SUMMARY:
        return text
    start = len(text) - len(text.lstrip())
    end = _first_end(text, start)
    lead = " ".join(text[start:end].lstrip(_HEADINGS).split())
    return f"{lead} {CUT}" if lead else CUT


def _first_end(text: str, start: int) -> int:
    """Where the first sentences end that say something, or the words that fit."""
    limit = start + SUMMARY - len(f" {CUT}")
    for found in _ENDS.finditer(text, start, limit):
        if found.end() - start >= ENOUGH:
            return found.end()
    if limit >= len(text):
        return len(text)
    space = text.rfind(" ", start, limit)
    return space if space > start else limit


def marker_of(lead: str, *, of: datetime) -> str:
    """The day and a few words, in their order."""
    words: dict[str, str] = {}
    for word in _WORD.findall(lead):
        if len(word) > 1 and plain(word) not in FUNCTION_WORDS:
            words.setdefault(plain(word), word[:WORD])
    longest = set(sorted(words, key=lambda word: -len(words[word]))[:WORDS])
    kept = [words[word] for word in words if word in longest]
    return " ".join([bare_marker(of), *kept])


def bare_marker(of: datetime) -> str:
    """That there was something, and nothing of it."""
    return f"[faded {of:%Y-%m-%d}]"


def tokens(size: int) -> int:
    """About so many has a text of these bytes."""
    return -(-size // BYTES_PER_TOKEN)
