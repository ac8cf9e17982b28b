"""How dangerous a shell's command looks, for people who decide on it.

A grade and the marks it rests on, nothing more: no rule goes by it, and a command without a mark may
still do harm. Reading the line is `reading.commandwords`' part, rules are `harness.policy`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename, split
from typing import Literal

from harness.rules import Risk
from reading.commandmatching import starts_no_other, surely_begins
from reading.commandwords import all_words, read
from reading.programs import INTERPRETERS, WRAPPERS

Mark = Literal[
    "deletes_much",
    "production",
    "privileged",
    "infrastructure",
    "rewrites",
    "publishes",
    "runs_fetched",
    "stops",
    "deletes",
    "sends",
    "installs",
    "permissions",
    "elsewhere",
    "unreadable",
]
GRAVE: frozenset[Mark] = frozenset(
    {
        "deletes_much",
        "production",
        "privileged",
        "infrastructure",
        "rewrites",
        "publishes",
        "runs_fetched",
    }
)
"""One of these alone makes the risk high."""


@dataclass(frozen=True, slots=True)
class Grade:
    risk: Risk
    marks: tuple[Mark, ...] = ()


@lru_cache(maxsize=256)
def graded(command: str) -> Grade:
    """Low only for what can be read to its end and does nothing but read and print."""
    found = set(_marks(command))
    if "deletes_much" in found:
        found.discard("deletes")
    order: tuple[Mark, ...] = Mark.__args__  # type: ignore[attr-defined]
    marks = tuple(mark for mark in order if mark in found)
    if not GRAVE.isdisjoint(found):
        return Grade("high", marks)
    return Grade("low" if not marks and _only_reads(command) else "medium", marks)


def takes_or_sends(words: Sequence[str]) -> bool:
    """Whether a word of a command (a subcommand, a task) says that it takes something away, puts it back to
    what it was, or hands it on."""
    said = (word for word in words[1:_FAR] if _NAMED.fullmatch(word))
    return any(part.lower() in _TAKING for word in said for part in _PARTS.split(word))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TAKING = _words(
    "autoremove clean cleanup clear copy cp del delete deinit deploy destroy disable discard down downgrade "
    "drop erase expire flush flushall flushdb forget fresh kill move mv prune publish purge push put remove "
    "reset rm rmi send strip submit sync terminate truncate uninstall unlink unload unset upload wipe"
)
_NAMED = re.compile(r"[A-Za-z][\w:.-]{0,60}(?:\[.*)?")
"""A subcommand, or a task as programs name them: `db:drop[x]`, `db.drop`, `dropDb`."""
_PARTS = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")

_READING = _words(
    "b2sum base32 base64 basename cat cd cksum cmp column comm cut date df diff dir dirname du echo "
    "egrep expand false fgrep file find fmt fold grep groups head hexdump id jq join ls md5sum nl "
    "nproc numfmt od paste pathchk pr printf ps pwd readlink realpath rev rg seq sha1sum sha224sum "
    "sha256sum sha384sum sha512sum sleep stat strings sum tac tail tr tree true tsort tty type uname "
    "unexpand uptime wc which who whoami :"
)
_SYSTEM = ("", "/bin", "/usr/bin")
_GIT_READING = ("blame", "describe", "diff", "log", "ls-files", "rev-parse", "show", "status")
_SHELLS = _words("ash bash dash fish ksh node perl php python python3 ruby sh zsh")
_FETCHING = _words("curl http https httpie wget xh")

_BY_PROGRAM: Mapping[str, Mark] = {
    **dict.fromkeys(_words("rm rmdir unlink"), "deletes"),
    **dict.fromkeys(_words("shred dd mkfs wipefs truncate dropdb"), "deletes_much"),
    **dict.fromkeys(_words("sudo su doas pkexec"), "privileged"),
    **dict.fromkeys(_words("ansible-playbook pulumi"), "infrastructure"),
    **dict.fromkeys(_words("shutdown reboot halt poweroff kill killall pkill"), "stops"),
    **dict.fromkeys(_words("scp sftp ftp rsync ssh nc ncat netcat telnet mail sendmail"), "sends"),
    **dict.fromkeys(_words("chmod chown chgrp setfacl"), "permissions"),
}
_SERVICES = ("systemctl", "service")
_PACKAGERS = _words(
    "apk apt apt-get brew cargo dnf flit go hatch npm pip pip3 pipx pnpm poetry uv yarn yum"
)
_STOPPING: dict[str, Mark] = dict.fromkeys(_words("kill rm rmi stop"), "stops")
_PUBLISHING: dict[str, Mark] = dict.fromkeys(_words("publish unpublish"), "publishes")
_INSTALLING: dict[str, Mark] = {"install": "installs", "add": "installs", "purge": "deletes"}
_APPLYING: dict[str, Mark] = dict.fromkeys(
    _words(
        "apply create delete destroy drain edit exec import install patch replace rollback rollout "
        "scale taint uninstall upgrade"
    ),
    "infrastructure",
)
_BY_SUBCOMMAND: Mapping[str, Mapping[str, Mark]] = {
    "git": {"push": "sends", "clean": "deletes_much", "filter-branch": "rewrites"},
    "twine": {"upload": "publishes"},
    "gem": {"push": "publishes", **_INSTALLING},
    **dict.fromkeys(_words("terraform tofu kubectl oc helm"), _APPLYING),
    **{name: {**_STOPPING, "push": "publishes"} for name in ("docker", "podman")},
    **{name: {"disable": "stops", "restart": "stops", "stop": "stops"} for name in _SERVICES},
    **{name: {**_PUBLISHING, **_INSTALLING} for name in _PACKAGERS},
}
_SENDING = ("-d", "-F", "-T", "-X", "--data", "--form", "--upload", "--request", "--post", "--json")
_PRODUCTION = re.compile(r"(?:\A|[^a-z])(?:prod|production|prd)(?:[^a-z]|\Z)")
_SQL = re.compile(
    r"\b(?:drop\s{1,8}(?:table|database|schema)|truncate\s{1,8}table|delete\s{1,8}from)\b"
)


def _marks(command: str) -> Iterator[Mark]:
    commands = read(command)
    if commands is None:
        yield "unreadable"
        yield from _of_any_word(command)
        return
    programs = [basename(each.words[0] or "") for each in commands]
    if not _FETCHING.isdisjoint(programs) and not _SHELLS.isdisjoint(programs):
        yield "runs_fetched"
    for each, name in zip(commands, programs, strict=True):
        if any(_is_elsewhere(target) for target in each.targets):
            yield "elsewhere"
        words = [word or "" for word in each.words]
        if each.words[0] is None or "=" in name:
            yield "unreadable"
        elif _reads(words):
            continue
        if None in each.words and name in WRAPPERS:
            yield "unreadable"
        yield from _of_words(words)
        if name in WRAPPERS or name in INTERPRETERS or not starts_no_other(words, 1):
            for word in words[1:]:
                yield from _of_any_word(word)
            for place in range(1, len(words)):
                yield from _of_words(words[place : place + _FAR])


def _of_any_word(text: str) -> Iterator[Mark]:
    """Wherever in it a command may begin."""
    for words in all_words(text):
        for place in range(len(words)):
            yield from _of_words(words[place : place + _FAR])


_FAR = 12
"""How many words after a program are looked at, where any word may be one."""


def _of_words(words: Sequence[str]) -> Iterator[Mark]:
    """Of a program and what it is given."""
    name, rest = basename(words[0]), words[1:]
    options = [word for word in rest if word.startswith("-")]
    letters = {letter for word in options if not word.startswith("--") for letter in word[1:]}
    if name.startswith("mkfs."):
        yield "deletes_much"
    if (mark := _BY_PROGRAM.get(name)) is not None:
        yield mark
    if name == "rm" and (letters & set("rRf") or {"--recursive", "--force"} & set(options)):
        yield "deletes_much"
    if name == "find" and "-delete" in rest:
        yield "deletes_much"
    if below := _BY_SUBCOMMAND.get(name):
        # Options of the program, and their values, may stand before.
        yield from (below[word] for word in rest[:_FAR] if word in below)
    if name == "git":
        yield from _of_git(rest, options, letters)
    if name in _FETCHING and any(word.startswith(_SENDING) for word in options):
        yield "sends"
    for word in words:
        small = word.lower()
        if _PRODUCTION.search(small):
            yield "production"
        if _SQL.search(small):
            yield "deletes_much"


def _of_git(rest: Sequence[str], options: Sequence[str], letters: set[str]) -> Iterator[Mark]:
    if "push" in rest:
        forced = "f" in letters or any(word.startswith("--force") for word in options)
        if forced or any(word.startswith("+") for word in rest):
            yield "rewrites"
    if ("reset" in rest and "--hard" in rest) or ("branch" in rest and "D" in letters):
        yield "deletes_much"


def _reads(words: Sequence[str]) -> bool:
    """Whether it is a program that only reads, and no option has it write, delete or begin another. One in
    any folder but the system's may be whatever an agent has put there."""
    folder, name = split(words[0])
    return name in _READING and folder in _SYSTEM and starts_no_other(words, 1)


def _is_elsewhere(target: str) -> bool:
    return target.startswith(("/", "~", "..")) and target not in {"/dev/null", "/dev/stderr"}


def _only_reads(command: str) -> bool:
    if any(surely_begins(command, ("git", below)) for below in _GIT_READING):
        return True
    commands = read(command) or ()
    return bool(commands) and all(
        _reads([word or "" for word in each.words])
        and all(target == "/dev/null" for target in each.targets)
        for each in commands
    )
