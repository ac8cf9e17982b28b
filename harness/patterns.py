"""Which arguments of a call a rule means: a command, a path, a host, a value or one exact input.

Pure matching. An allowing rule needs YES; a rule that asks or denies heeds all but NO, so that what
cannot be read never passes as harmless. Commands are judged in `reading.commandmatching`, and
what follows is `harness.policy`'s part.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, model_validator

from reading.commandmatching import Match, occurs, surely_begins
from reading.commandwords import without_rest
from reading.hostnames import LONGEST_ADDRESS, MeantBy, as_written, ascii_name, split_address
from reading.normalizing import normalized
from reading.pathglobs import LONGEST_PATH, fits

MOST_TEXTS = 200
MOST_CHARACTERS = 20_000
"""Of a list of texts that is read, together."""


class When(BaseModel):
    """What an argument must be for a rule to apply; exactly one of the five ways.

    `prefix` and `path` and `host` read the argument as a shell command, a file's path or an address;
    a list of texts is read one by one: all must match for an allowing rule, any for the others.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    argument: str = Field(default="", max_length=100)
    """Name of the argument; empty only with `sha256`, which speaks of all of them."""
    prefix: str | None = Field(default=None, min_length=1, max_length=2_000)
    """Whole words that a simple command begins with: `git status` covers `git status -s`, whose options are
    known to be harmless. Behind a `*` at the end (`./build.sh *`) anything may follow."""
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
        if self.prefix is not None and not self.prefix_words:
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

    def at_all(self, arguments: Mapping[str, Any], meant_by: MeantBy = as_written) -> Match:
        """Whether the rule meets any part of this call, for a rule that asks or denies."""
        return self._match(arguments, whole=False, meant_by=meant_by)

    @property
    def prefix_words(self) -> tuple[str, ...]:
        """Of the command that it means; none where it means none."""
        return without_rest(self.prefix or "")[0]

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

    def _match(
        self, arguments: Mapping[str, Any], *, whole: bool, meant_by: MeantBy = as_written
    ) -> Match:
        if self.sha256 is not None:
            return Match.YES if input_hash(arguments) == self.sha256 else Match.NO
        if self.argument not in arguments:
            return Match.NO
        value = arguments[self.argument]
        if self.equals is not None:
            return Match.YES if _same(value, self.equals) else Match.NO
        if isinstance(value, str):
            return self._match_text(value, whole, meant_by)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return self._match_texts(value, whole, meant_by)
        return Match.NO if whole else Match.MAYBE

    def _match_texts(self, texts: list[str], whole: bool, meant_by: MeantBy) -> Match:
        """Of a long list only the beginning is read; the rest may be anything."""
        read, best = 0, Match.NO
        for place, text in enumerate(texts):
            read += len(text)
            if place >= MOST_TEXTS or (place and read > MOST_CHARACTERS):
                return Match.NO if whole else Match.MAYBE
            found = self._match_text(text, whole, meant_by)
            if whole and found is not Match.YES:
                return Match.NO
            if found is Match.YES and not whole:
                return Match.YES
            best = max(best, found)
        return best

    def _match_text(self, value: str, whole: bool, meant_by: MeantBy) -> Match:
        if self.prefix is not None:
            if not whole:
                return occurs(value, self.prefix_words, meant_by)
            words, goes_on = without_rest(self.prefix)
            return Match.YES if surely_begins(value, words, goes_on=goes_on) else Match.NO
        if self.path is not None:
            return _in_path(value, self.path, whole=whole)
        return _at_host(value, self.host or "", whole=whole, meant_by=meant_by)


# --- one exact input ------------------------------------------------------------------------------


def _same(given: Any, wanted: Any) -> bool:
    """Numbers are the same in either form, `100` and `100.0`; true and false are none."""
    if type(given) is type(wanted):
        return bool(given == wanted)
    return {type(given), type(wanted)} == {int, float} and bool(given == wanted)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def input_hash(arguments: Mapping[str, Any]) -> str:
    """SHA-256 in hexadecimal of the arguments as canonical JSON: sorted keys, no spaces, ASCII."""
    return hashlib.sha256(_canonical(dict(arguments)).encode()).hexdigest()


# --- paths ----------------------------------------------------------------------------------------


def _in_path(value: str, glob: str, *, whole: bool) -> Match:
    """An allowing rule wants every reading of the path to lie inside; the others heed each."""
    if len(value) > LONGEST_PATH:
        return Match.NO if whole else Match.MAYBE
    try:
        readings = _readings(value)
    except ValueError:  # no name that anybody gave a file
        return Match.NO if whole else Match.MAYBE
    if max(map(len, readings)) > LONGEST_PATH:
        return Match.NO if whole else Match.MAYBE
    if whole:
        sure = "\0" not in value and all(_is_in(path, glob) for path in readings)
        return Match.YES if sure else Match.NO
    found = [_may_be_in(path, glob) for path in readings]
    if found[0] is Match.YES:
        return Match.YES
    return Match.MAYBE if max(found) is not Match.NO else Match.NO


def _readings(value: str) -> list[str]:
    """The path in its plainest form and, behind it, what a careless reader might make of it: backslashes
    as separators, escapes of addresses undone, compatible characters exchanged. Raises ValueError for one
    that nobody could put into a normal form."""
    forms = [value, value.replace("\\", "/"), unquote(value), normalized("NFKC", value)]
    if value.lower().startswith("file:"):
        forms.append("/" + unquote(value[len("file:") :]).lstrip("/"))
    return list(dict.fromkeys(map(_plainest, forms)))


def _plainest(path: str) -> str:
    plain = normpath(path.strip()) if path.strip() else "."
    return (
        f"/{plain.lstrip('/')}" if plain.startswith("/") else plain
    )  # two slashes at first are one


def _is_outside(path: str, glob: str) -> bool:
    return path.startswith(("..", "~")) or path.startswith("/") != glob.startswith("/")


def _is_in(path: str, glob: str) -> bool:
    return not _is_outside(path, glob) and fits(path, glob)


def _may_be_in(path: str, glob: str) -> Match:
    try:
        path, wanted = _one_spelling(path), _one_spelling(glob)
    except ValueError:
        return Match.MAYBE
    if len(path) > LONGEST_PATH:
        return Match.MAYBE
    if fits(path, wanted, loose=True):
        return Match.YES
    if _is_outside(path, glob) or path == ".":
        return Match.MAYBE  # a folder above may lead into it
    return Match.MAYBE if _leads_to(path, wanted) else Match.NO


def _one_spelling(text: str) -> str:
    """One form for all that some file system takes for one name: composed or not, of either case."""
    return normalized("NFC", text).casefold()


def _leads_to(path: str, glob: str) -> bool:
    """Whether the path is a folder on the fixed part of the way to what the glob names."""
    fixed = re.split(r"[*?]", glob, maxsplit=1)[0].casefold()
    return fixed.startswith(f"{path.casefold()}/")


# --- hosts ----------------------------------------------------------------------------------------

_HOST_PATTERN = re.compile(r"(?:\*\.)?[^\s*/:@?#\\]+|\[?[0-9a-f:]+\]?")


def _host_of(value: str) -> str | None:
    """The host an address names, in lower case and ASCII; None where readers could disagree."""
    if len(value) > LONGEST_ADDRESS or any(ord(sign) <= 32 or sign in "\\\x7f" for sign in value):
        return None
    if "://" not in value and _SCHEME.match(value):
        return None  # some readers need no slashes
    try:
        parts = split_address(value if "://" in value else f"//{value}")
        host = parts.hostname
        if not host or parts.username is not None or parts.password is not None:
            return None
        if parts.port == 0:  # reading it raises for a port that is none
            return None
        return _plain_name(host)
    except ValueError:
        return None


def _plain_name(host: str) -> str | None:
    """A name or an address in the one form that all readers give it; None where there is none: letters
    that the two standards for names beyond ASCII treat differently, numbers that stand for an address."""
    if ":" in host:
        return str(IPv6Address(host))
    if not host.isascii():
        plain = normalized("NFKC", host).casefold()
        if plain != host or _DISAGREED.search(host):
            return None
        host = ascii_name(host)
    name = host.removesuffix(".").lower()
    if not _HOST_NAME.fullmatch(name):
        return None
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return str(IPv4Address(name))
    return name


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?![0-9])|(?:https?|ftp|wss?):", re.IGNORECASE)
_HOST_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*+")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DISAGREED = re.compile("[\u00df\u03c2\u200c\u200d\u3002\uff0e\uff61]")
"""Sharp s, final sigma, joiners; other signs for a dot."""


def _at_host(value: str, pattern: str, *, whole: bool, meant_by: MeantBy) -> Match:
    host = _host_of(value)
    if host is None:
        return Match.NO if whole else Match.MAYBE
    below, name = pattern.startswith("*."), pattern.removeprefix("*.")
    wanted = (
        _host_of(f"[{name}]" if name.count(":") > 1 and "[" not in name else name) or name.lower()
    )
    met = (
        host.endswith(f".{wanted}")
        if below
        else not set(meant_by(host)).isdisjoint(meant_by(wanted))
    )
    return Match.YES if met else Match.NO
