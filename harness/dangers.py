"""How dangerous a shell's command looks, for people who decide on it.

A grade and the marks it rests on, nothing more: no rule goes by it, and a command without a mark may
still do harm. Reading the line is `reading.commandwords`' part, rules are `harness.policy`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename
from typing import Literal

from harness.rules import Risk
from reading.commandmatching import surely_begins
from reading.commandwords import all_words, read
from reading.programs import (
    INTERPRETERS,
    PLAIN,
    RUNNING,
    STARTING,
    STARTING_SUBCOMMANDS,
    STARTING_WORDS,
    WRAPPERS,
    WRITING,
)

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


def says_what_it_does(words: Sequence[str], number: int) -> bool:
    """Whether the first `number` words of a command name the act, so that what goes on otherwise does the
    same kind of thing: no subcommand is behind them. A program that nobody knows may have any, and is taken
    to have as many as words follow that look like one."""
    name = basename(words[0])
    if name in INTERPRETERS and words[1:2] and (words[1] in RUNNING or words[1] == "-m"):
        below = words[2:]
        if name in _SCRIPTED and words[1] == "run":
            return number > 2 and not below[0].startswith("-")
        return number > 2 and says_what_it_does(below, number - 2)
    if name == "find" or name in _FETCHING:
        return False
    if not _WHATEVER.isdisjoint(words[1:number]):
        return False
    if name in _BY_SUBCOMMAND or name in _DEPTH:
        group = words[1] if len(words) > 1 else ""
        named = _DEPTH.get(f"{name} {group}") or _DEPTH.get(name) or (3 if group in _GROUPS else 2)
        if number < named or any(word.startswith("-") for word in words[1:named]):
            return False
        return name != "git" or _GIT_MARKED.isdisjoint(words[1:number])
    if name in _WITHOUT:
        return True
    behind = words[number:]
    # A script that lies in the workspace is what was looked at, as `python build.py` is.
    is_script = "/" in words[0] and not words[0].startswith("/")
    if not is_script and (len(words) == 1 or words[1].startswith("-")):
        return False
    # Options, and their values, may stand before a subcommand.
    near = behind if behind[:1] and behind[0].startswith("-") else behind[:1]
    return not any(map(_SUBCOMMAND.fullmatch, near))


def takes_or_sends(words: Sequence[str]) -> bool:
    """Whether a word of a command (a subcommand, a task) says that it takes something away, puts it back to
    what it was, or hands it on. For programs with subcommands, of which none is known."""
    if basename(words[0]) in _WITHOUT:
        return False
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
_WHATEVER = _words("api call curl graphql invoke raw request rest rpc")
"""Subcommands that do whatever is behind them."""


_READING = _words(
    "b2sum base32 base64 basename cat cd cksum cmp column comm cut date df diff dir dirname du echo "
    "egrep expand false fgrep file find fmt fold grep groups head hexdump id jq join ls md5sum nl "
    "nproc numfmt od paste pathchk pr printf ps pwd readlink realpath rev rg seq sha1sum sha224sum "
    "sha256sum sha384sum sha512sum sleep stat strings sum tac tail tr tree true tsort tty type uname "
    "unexpand uptime wc which who whoami :"
)
_GIT_READING = ("blame", "describe", "diff", "log", "ls-files", "rev-parse", "show", "status")
_GROUPS = _words(
    "access adm annex audit auth bisect builder buildx bundle cache certificate compose config container "
    "context copr credential dependency dist-tag env extension farm group history hook image key kube lfs "
    "machine maintenance manifest mod model module network node notes org owner pip pkg plugin pod policy "
    "profile python reflog registry release remote repo rerere scout secret self service services set source "
    "sparse-checkout stack stash state store submodule subtree svn swarm system team token tool trust "
    "versionlock volume work workspace worktree"
)
"""Subcommands that have subcommands of their own."""
_GIT_MARKED = _words(
    "apply branch checkout checkout-index clean config filter-branch filter-repo gc push read-tree rebase "
    "replace reset restore switch symbolic-ref tag update-index update-ref"
)
"""Those that take something away or change it, or do so by more words."""
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
_DEPTH: Mapping[str, int] = {
    **dict.fromkeys(("aws", "ip", "nmcli", "service", "tc"), 3),
    **dict.fromkeys(("git flow", "yarn workspace"), 4),
    "ruff": 2,
}
"""Words that name the act where that is not the second one, or nothing of it has a mark; by the program, or
by it and a subcommand."""
_SUBCOMMAND = re.compile(r"[A-Za-z][\w:-]{0,60}")
"""What a subcommand looks like; a file, an address or a number does not."""
_SCRIPTED = _words("bun npm pnpm yarn")
"""Their `run` takes the name of a script that is written down."""
_WITHOUT = PLAIN | _words(
    "bandit black c++ cc clang clang++ dot eslint ffprobe flake8 g++ gcc gfortran ghc gofmt hadolint isort "
    "javac jest latex lualatex mocha mypy pandoc pdflatex phpunit prettier py.test pylint pyright pytest "
    "rspec rubocop rustc rustfmt shellcheck tex tsc xelatex yamllint"
)
"""Programs that have no subcommands: whatever follows, they do the one thing."""
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
        elif name in _READING and not _starts(name, words):
            continue
        if None in each.words and name in WRAPPERS:
            yield "unreadable"
        yield from _of_words(words)
        if name in WRAPPERS or name in INTERPRETERS or _starts(name, words):
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


def _starts(name: str, words: Sequence[str]) -> bool:
    """Whether an option has a reading program write, delete or begin another."""
    changing = (*STARTING.get(name, ()), *WRITING.get(name, ()))
    whole = {*STARTING_WORDS.get(name, ()), *STARTING_SUBCOMMANDS.get(name, ())}
    return any(word in whole or word.startswith(changing) for word in words[1:])


def _is_elsewhere(target: str) -> bool:
    return target.startswith(("/", "~", "..")) and target not in {"/dev/null", "/dev/stderr"}


def _only_reads(command: str) -> bool:
    if any(surely_begins(command, ("git", below)) for below in _GIT_READING):
        return True
    commands = read(command) or ()
    return bool(commands) and all(
        basename(each.words[0] or "") in _READING
        and not _starts(basename(each.words[0] or ""), [word or "" for word in each.words])
        and all(target in {"/dev/null", "1", "2"} for target in each.targets)
        for each in commands
    )
