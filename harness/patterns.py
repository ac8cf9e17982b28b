"""Which arguments of a call a rule means: a command, a path, a host, a value or one exact input.

Pure matching with three answers. An allowing rule needs YES; a rule that asks or denies also heeds
MAYBE, so that what cannot be read never passes as harmless. What follows is `harness.policy`'s part.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from posixpath import normpath
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

PUNCTUATION = "();<>|&"
"""What ends a word and may begin another command (`shlex`'s own set)."""
EXPANDS = "$`"
"""What makes a shell put something else in its own place."""
RUN_A_STRING = frozenset({"eval", "source", ".", "sh", "bash", "dash", "zsh", "ksh"})
"""Commands whose words come from elsewhere: what they will run cannot be read off the line."""
NESTED = 4
"""How deep quoted words are read as commands themselves."""


class Match(Enum):
    NO = "no"
    MAYBE = "maybe"
    """It cannot be told from the arguments."""
    YES = "yes"


class When(BaseModel):
    """What an argument must be for a rule to apply; exactly one of the five ways.

    `prefix` and `path` and `host` read the argument as a shell command, a file's path or an address;
    a list of texts is read one by one: all must match for an allowing rule, any for the others.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    argument: str = Field(default="", max_length=100)
    """Name of the argument; empty only with `sha256`, which speaks of all of them."""
    prefix: str | None = Field(default=None, min_length=1, max_length=2_000)
    """Whole words that a simple command begins with: `git status` covers `git status -s`."""
    path: str | None = Field(default=None, min_length=1, max_length=1_000)
    """A glob over the path: `*` and `?` stay inside a folder, `**` crosses folders."""
    host: str | None = Field(default=None, min_length=1, max_length=253)
    """A host name, or `*.example.org` for every name below (and not itself)."""
    equals: str | int | float | bool | None = None
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Exactly this input: the hash of all arguments (`input_hash`)."""

    @model_validator(mode="after")
    def _one_way(self) -> When:
        ways = [
            name
            for name in ("prefix", "path", "host", "equals", "sha256")
            if getattr(self, name) is not None
        ]
        if len(ways) != 1:
            raise ValueError(
                "Say exactly one of prefix, path, host, equals and sha256 "
                f"(here: {', '.join(ways) or 'none'})."
            )
        if (ways[0] == "sha256") == bool(self.argument):
            raise ValueError(
                "Name the argument that is meant; sha256 alone speaks of all and names none."
            )
        if self.prefix is not None and not simple_command(self.prefix):
            raise ValueError(
                "The prefix is not the beginning of one simple command: leave out ; & | < > ( ) $ ` "
                "and line breaks, and close quotes."
            )
        if self.host is not None and not _HOST_PATTERN.fullmatch(self.host.lower()):
            raise ValueError("The host is a name, an address or *. and a name, without a port.")
        return self

    def surely(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the rule covers the whole of this call, for a rule that allows."""
        return self._match(arguments, whole=True) is Match.YES

    def at_all(self, arguments: Mapping[str, Any]) -> Match:
        """Whether the rule meets any part of this call, for a rule that asks or denies."""
        return self._match(arguments, whole=False)

    def words(self) -> str:
        """The pattern as a person reads it."""
        if self.sha256 is not None:
            return "with exactly this input"
        if self.prefix is not None:
            return f"when {self.argument} begins with “{self.prefix.strip()}”"
        if self.path is not None:
            return f"when {self.argument} lies in “{self.path}”"
        if self.host is not None:
            return f"when {self.argument} leads to “{self.host}”"
        return f"when {self.argument} is “{self.equals}”"

    def _match(self, arguments: Mapping[str, Any], *, whole: bool) -> Match:
        if self.sha256 is not None:
            return Match.YES if input_hash(arguments) == self.sha256 else Match.NO
        if self.argument not in arguments:
            return Match.NO
        value = arguments[self.argument]
        if self.equals is not None:
            same = _canonical(value) == _canonical(self.equals)
            return Match.YES if same else Match.NO
        if isinstance(value, str):
            return self._match_text(value, whole=whole)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            found = [self._match_text(item, whole=whole) for item in value]
            if whole:
                sure = bool(found) and all(one is Match.YES for one in found)
                return Match.YES if sure else Match.NO
            return max(found, key=_STRENGTH.__getitem__, default=Match.NO)
        return Match.NO if whole else Match.MAYBE

    def _match_text(self, value: str, *, whole: bool) -> Match:
        if self.prefix is not None:
            words = simple_command(self.prefix) or ()
            return _begins(value, words) if whole else _occurs(value, words)
        if self.path is not None:
            return _in_path(value, self.path, whole=whole)
        return _at_host(value, self.host or "", whole=whole)


_STRENGTH = {Match.NO: 0, Match.MAYBE: 1, Match.YES: 2}


# --- one exact input ------------------------------------------------------------------------------


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def input_hash(arguments: Mapping[str, Any]) -> str:
    """SHA-256 in hexadecimal of the arguments as canonical JSON: sorted keys, no spaces, ASCII."""
    return hashlib.sha256(_canonical(dict(arguments)).encode()).hexdigest()


# --- commands -------------------------------------------------------------------------------------


def simple_command(text: str) -> tuple[str, ...] | None:
    """The words of a command that is certainly one command and nothing else; None if it may be more.

    Whatever ends a command, redirects, substitutes or breaks the line is refused, also inside
    quotes where that is harmless: asking once too often costs less than the opposite.
    """
    if any(sign in text for sign in EXPANDS) or any(
        ord(sign) < 32 and sign != "\t" for sign in text
    ):
        return None
    words = _words(text)
    if not words or any(set(word) <= set(PUNCTUATION) for word in words):
        return None
    return tuple(words)


def _words(text: str) -> list[str] | None:
    """Words and runs of punctuation as a shell splits them; None where quotes are left open."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _begins(command: str, prefix: Sequence[str]) -> Match:
    words = simple_command(command)
    sure = words is not None and tuple(words[: len(prefix)]) == tuple(prefix)
    return Match.YES if sure else Match.NO


def _occurs(command: str, prefix: Sequence[str], depth: int = 0) -> Match:
    """Whether these words stand anywhere in the command, in quotes and substitutions as well.

    Any place counts, not only where a command begins: `sudo`, `xargs`, `find -exec` and their like
    make a command of any word. What a shell puts together only when it runs is MAYBE.
    """
    words = _words(re.sub(r"[\r\n`]", " ; ", re.sub(r"\\\n", "", command)))
    if words is None:
        return Match.MAYBE
    found = Match.NO
    for place, word in enumerate(words):
        if _same_words(words[place : place + len(prefix)], prefix):
            return Match.YES
        if word != command and any(sign in word for sign in " \t;|&()"):
            inner = Match.MAYBE if depth >= NESTED else _occurs(word, prefix, depth + 1)
            if inner is Match.YES:
                return inner
            found = max(found, inner, key=_STRENGTH.__getitem__)
        begins = place == 0 or set(words[place - 1]) <= set(PUNCTUATION)
        if begins and ("$" in word or _base(word) in RUN_A_STRING):
            found = Match.MAYBE
    return found


def _same_words(words: Sequence[str], prefix: Sequence[str]) -> bool:
    if len(words) < len(prefix):
        return False
    return _base(words[0]) == _base(prefix[0]) and list(words[1:]) == list(prefix[1:])


def _base(word: str) -> str:
    """`/usr/bin/git` is `git`."""
    return word.rsplit("/", 1)[-1] or word


# --- paths ----------------------------------------------------------------------------------------


@cache
def _path_pattern(glob: str, *, loose: bool) -> re.Pattern[str]:
    pattern = ""
    place = 0
    while place < len(glob):
        if glob.startswith("**/", place):
            pattern, place = pattern + "(?:.*/)?", place + 3
        elif glob.startswith("/**", place) and place + 3 == len(glob) and loose:
            pattern, place = pattern + "(?:/.*)?", place + 3  # the folder itself as well
        elif glob.startswith("**", place):
            pattern, place = pattern + ".*", place + 2
        elif glob[place] == "*":
            pattern, place = pattern + "[^/]*", place + 1
        elif glob[place] == "?":
            pattern, place = pattern + "[^/]", place + 1
        else:
            pattern, place = pattern + re.escape(glob[place]), place + 1
    return re.compile(pattern, re.DOTALL | (re.IGNORECASE if loose else 0))


def _in_path(value: str, glob: str, *, whole: bool) -> Match:
    path = normpath(value) if value else "."
    outside = path.startswith("..") or (path.startswith("/") and not glob.startswith("/"))
    if whole:
        plain = "\0" not in value and "\\" not in value and not outside
        sure = plain and _path_pattern(glob, loose=False).fullmatch(path)
        return Match.YES if sure else Match.NO
    if _path_pattern(glob, loose=True).fullmatch(path):
        return Match.YES
    if outside or path == ".":
        return Match.MAYBE  # a folder above may lead into it
    return Match.MAYBE if _leads_to(path, glob) else Match.NO


def _leads_to(path: str, glob: str) -> bool:
    """Whether the path is a folder on the fixed part of the way to what the glob names."""
    fixed = re.split(r"[*?]", glob, maxsplit=1)[0].casefold()
    return fixed.startswith(f"{path.casefold()}/")


# --- hosts ----------------------------------------------------------------------------------------

_HOST_PATTERN = re.compile(r"(?:\*\.)?[^\s*/:@?#\\]+|\[?[0-9a-f:]+\]?")


def _host_of(value: str) -> str | None:
    """The host an address names, in lower case and ASCII; None where readers could disagree."""
    if any(ord(sign) <= 32 or sign == "\\" for sign in value):
        return None
    try:
        parts = urlsplit(value if "://" in value else f"//{value}")
        host = parts.hostname
        if not host or parts.username is not None or parts.password is not None:
            return None
        if parts.port == 0:  # reading it raises for a port that is none
            return None
        return host.rstrip(".").encode("idna").decode().lower() or None
    except (ValueError, UnicodeError):
        return None


def _at_host(value: str, pattern: str, *, whole: bool) -> Match:
    host = _host_of(value)
    if host is None:
        return Match.NO if whole else Match.MAYBE
    wanted = pattern.lower().rstrip(".")
    if wanted.startswith("*."):
        return Match.YES if host.endswith(wanted[1:]) else Match.NO
    named = _host_of(wanted) or wanted
    return Match.YES if host == named else Match.NO
