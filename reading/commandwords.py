"""The words of a shell's command line, as far as they can be read with certainty.

Only a plain part of the shell's language is read, in time that grows with the length alone; everything
else is *unreadable* and may be anything. No full parser stands here on purpose: where it and the shell
read one text differently, a rule would have a hole. What the words mean is `reading.commandmatching`' part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from reading.digits import is_digits

LONGEST = 5_000
"""Characters of a command that are read; a longer one is unreadable. Rules are weighed where everybody
waits."""
NESTED = 4
"""How deep quoted words are searched for commands themselves."""

Word = str | None
"""None: what stands there is known only when the shell runs (a variable, a glob)."""


class Simple(NamedTuple):
    """One simple command."""

    words: tuple[Word, ...]
    targets: tuple[str, ...]
    """The files that its redirections name."""


# --- for certain ----------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+)
    | (?P<strange>\#|<<|;;|\$(?=['"({\[])(?!\{[A-Za-z_][A-Za-z0-9_]*\}))
    | (?P<redirect>&>>?|[0-9]{0,9}(?:>>|>&|>\||<>|<&|>|<))
    | (?P<end>&&|\|\||\|&|[;|&\n])
    | (?P<plain>[\w./,:@%+=^-][\w./,:@%+=^\#-]*)
    | '(?P<single>[^'\0]*)'
    | "(?P<double>(?:[^"\\`$\0]|\\[^\n\0]|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$(?![({\[]))*+)"
    | \\(?P<escaped>[^\n\r\0])
    | (?P<expands>\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z0-9_?\#@*$!-]+|[*?\[\]~{}!])
    | (?P<dollar>\$(?=[ \t\n;|&]|\Z))
    """,
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\([\"\\$`])")
_UNPRINTED = re.compile(r"[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@lru_cache(maxsize=64)
def read(text: str) -> tuple[Simple, ...] | None:
    """The simple commands of the line, in order; None if it is unreadable.

    Assignments, reserved words and names of functions stand where a program would, for the caller to
    wonder at.
    """
    if len(text) > LONGEST:
        return None
    commands: list[tuple[list[Word], list[str]]] = [([], [])]
    word: list[Word] = []
    leads = ""
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        kind = found.lastgroup if found else None
        if found is None or kind is None or (kind == "strange" and (found[0] != "#" or not word)):
            return None
        place = found.end()
        if kind in {"blank", "redirect", "end"}:
            if kind == "redirect" and word and (is_digits(found[0][0]) or _may_be_number(word)):
                return None
            if word:
                if not _ends(word, commands[-1], leads):
                    return None
                word, leads = [], ""
            if kind != "blank" and leads:
                return None
            if kind == "redirect":
                leads = found[0]
            if kind == "end":
                commands.append(([], []))
        else:
            word.append(_value(kind, found))
    if (word or leads) and not _ends(word, commands[-1], leads):
        return None
    return tuple(Simple(tuple(words), tuple(targets)) for words, targets in commands if words)


def _may_be_number(before: Sequence[Word]) -> bool:
    """Whether what stands before a redirection may be the number that it opens, or a variable that takes
    one; a number that is too long for that is a word again."""
    return before[-1] is None or is_digits(_joined(before) or "")


def _ends(parts: Sequence[Word], command: tuple[list[Word], list[str]], leads: str) -> bool:
    """Put a word where it belongs, which is behind the redirection `leads` if there is one; False for a
    target that is none or not known."""
    word = _joined(parts)
    if not leads:
        command[0].append(word)
        return True
    if not parts or word is None:
        return False
    if leads.endswith("&") and word.startswith("-") and parts != ["-"]:
        return False  # `>&-` is whole: what stands behind it is a word of the command
    if not (leads.endswith("&") and (word == "-" or is_digits(word))):
        command[1].append(word)  # the others are open already
    return True


def _value(kind: str, found: re.Match[str]) -> Word:
    if kind == "expands":
        return None
    text = found[kind]
    if kind == "double":
        return None if "$" in _ESCAPED.sub("", text) else _ESCAPED.sub(r"\1", text)
    return text


def _joined(word: Sequence[Word]) -> Word:
    return None if None in word else "".join(part for part in word if part is not None)


def simple_command(text: str) -> tuple[str, ...] | None:
    """The words of a command that is certainly one command and nothing else; None if it may be more.

    Whatever ends a command, redirects, expands or breaks the line is refused, and signs of expansion
    and what cannot be seen also inside quotes, where they are harmless: asking once too often costs
    less than the opposite.
    """
    if (
        len(text) > LONGEST
        or "$" in text
        or "`" in text
        or _UNPRINTED.search(text.replace("\t", " "))
    ):
        return None
    if any(sign.isspace() and sign not in " \t" for sign in set(text)):
        return None
    commands = read(text)
    if commands is None or len(commands) != 1 or _ENDS.search(_QUOTED.sub("", text)):
        return None
    words = tuple(word for word in commands[0].words if word is not None)
    plain = len(words) == len(commands[0].words) and not any(
        _PUNCTUATION.issuperset(it) for it in words
    )
    return words if plain else None


_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""")
_PUNCTUATION = frozenset("();<>|&")
_ENDS = re.compile(r"[;|&<>]")


def prefix_words(text: str) -> tuple[str, ...] | None:
    """The words that a rule's prefix is made of, signs of expansion among them standing for
    themselves; None where it is not the beginning of one simple command."""
    if "$" in text or any(ord(sign) < 32 and sign != "\t" for sign in text):
        return None
    words = _loosely(text)
    return tuple(words) if words and not any(map(_is_end, words)) else None


def without_rest(text: str) -> tuple[tuple[str, ...], bool]:
    """The words of a rule's prefix, and whether it says by a `*` of its own at the end that anything may
    follow. Empty where it is not the beginning of one simple command."""
    words = prefix_words(text) or ()
    stripped = text.rstrip()
    if len(words) > 1 and stripped.endswith("*") and prefix_words(stripped[:-1]) == words[:-1]:
        return words[:-1], True
    return words, False


# --- loosely ------------------------------------------------------------------------------------

_LOOSE = re.compile(
    r"""(?P<blank>[ \t]+)|(?P<end>[();<>|&\r\n`]+)|'(?P<single>[^']*)'"""
    r"""|"(?P<double>(?:[^"\\]|\\[\s\S])*)"|\\(?P<escaped>[\s\S])|(?P<plain>[^ \t();<>|&\r\n`'"\\]+)"""
)


def _loosely(text: str) -> list[str] | None:
    """Words as a shell splits them and, each as a word that `_is_end`, what ends one; None where a quote
    is left open."""
    words: list[str] = []
    word: list[str] | None = None
    place = 0
    while place < len(text):
        found = _LOOSE.match(text, place)
        if found is None or found.lastgroup is None:
            return None
        place, kind = found.end(), found.lastgroup
        if kind in {"blank", "end"}:
            if word is not None:
                words.append("".join(word))
                word = None
            if kind == "end":
                words.append(_END)
        else:
            value = found[kind]
            word = word or []
            word.append(_ESCAPED.sub(r"\1", value) if kind == "double" else value)
    if word is not None:
        words.append("".join(word))
    return words


_END = "\0;"


def _is_end(word: str) -> bool:
    return word == _END


@lru_cache(maxsize=64)
def all_words(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of the command and of every word that may be a command itself, with whatever a shell would
    put in their place left as it stands."""
    found: list[tuple[str, ...]] = []
    texts = [command] if len(command) <= LONGEST else []
    for _depth in range(NESTED + 1):
        split = [(text, _loosely(text.replace("\\\n", "")) or []) for text in texts]
        found += [tuple(words) for _text, words in split]
        texts = [
            word
            for text, words in split
            for word in words
            if word not in {text, _END} and _NESTS.search(word)
        ]
    return tuple(found)


_NESTS = re.compile(r"[ \t;|&()\n]")
