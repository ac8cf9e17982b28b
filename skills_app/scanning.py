"""What a skill's files name that reaches out of its folder, held against what its maker declares: hosts,
programs, names of environment variables, and instructions that install something or run what they fetched.

It reads, line by line and each line once, and runs nothing. What it says is advice for who reviews: a text
can hide from it, and what a skill may do is kept by its sandbox, rules and approvals whatever was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .folder import SkillFolder
from .manifest import MANIFEST

Kind = Literal["runs_fetched", "installs", "steers", "opaque", "host", "binary", "environment"]
"""From what weighs most to what weighs least."""

FILE_BYTES = 500_000
ALL_BYTES = 4_000_000
LINE = 2_000
"""Characters of a line that are looked at; a longer one is itself found."""
MOST = 200
"""Findings of one kind."""
SHOWN_PLACES = 3

_HOST = re.compile(r"\bhttps?://([A-Za-z0-9.-]{1,253})", re.ASCII)
_ENVIRONMENT = (
    re.compile(
        r"\b(?:environ(?:\.get)?|getenv)[\[(]\s{0,4}[\"']([A-Za-z_][A-Za-z0-9_]{0,99})", re.ASCII
    ),
    re.compile(r"\bprocess\.env\.([A-Za-z_][A-Za-z0-9_]{0,99})", re.ASCII),
    re.compile(r"\$\{?([A-Z][A-Z0-9_]{1,99})", re.ASCII),
)
_STARTED = (
    re.compile(
        r"\b(?:subprocess\.[a-zA-Z_]{2,20}|Popen|which|execvp?|spawn|execFile|system)"
        r"\(\s{0,4}\[?\s{0,4}[\"']([A-Za-z0-9_.+/-]{1,80})",
        re.ASCII,
    ),
    re.compile(r"\A#!(?:/usr/bin/env )?([A-Za-z0-9_./+-]{1,80})", re.ASCII),
)
_FETCHES = re.compile(r"\b(?:curl|wget|fetch|iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\b", re.I)
_UNPACKS = re.compile(r"\bbase64\b.{0,40}(?:-d|-D|--decode)\b")
_RUN = re.compile(
    r"(?:\||\$\(|<\(|&&|;)\s{0,4}(?:sudo )?"
    r"(?:(?:ba|z|da|k)?sh|python3?|node|perl|ruby|iex|Invoke-Expression|source)\b",
    re.I,
)
_RUN_OF = re.compile(
    r"\b(?:eval|iex|exec|sh -c|bash -c)\b.{0,10}(?:\$\(|`|\(|<\()|\b(?:ba|z)?sh <\(", re.I
)
_CODE_FETCHED = re.compile(
    r"\b(?:exec|eval)\(.{0,80}(?:urlopen|requests\.get|httpx\.get|b64decode|fetch)\b"
)
_INSTALLS = re.compile(
    r"\b(?:pip3?|pipx|uv|npm|pnpm|yarn|brew|apt|apt-get|dnf|apk|gem|cargo|go|choco|winget)"
    r" (?:pip )?(?:install|add|i)\b|\b(?:npx|uvx|bunx) |\bunzip -P\b|\b7z x -p|com\.apple\.quarantine"
)
_STEERS = re.compile(r"\b(?:AGENTS|CLAUDE|GEMINI|SOUL|MEMORY|USER)\.md\b|\.(?:claude|agents)/")
_OPAQUE = re.compile(r"[A-Za-z0-9+/=]{400}", re.ASCII)
_FENCE = re.compile(r"\A\s{0,3}(?:```|~~~)\s{0,4}([A-Za-z]{0,20})", re.ASCII)
_WORD = re.compile(r"\A(?:[$>#] )?(?:sudo )?([A-Za-z][A-Za-z0-9_.+-]{1,40})(?:\s|\Z)", re.ASCII)
_SHELLS = frozenset({"sh", "bash", "shell", "zsh", "console", "terminal"})
_EVERYWHERE = """
alias awk basename break case cat cd chmod cmp continue cp cut dash date declare diff dirname do done echo
elif else env esac eval exec exit export expr false fi file find for function getopts grep head if in let ln
local ls mkdir mktemp mv printf pwd python python3 read readonly return rm rmdir sed set sh bash shift sleep
sort source stat tail tar tee test then time touch tr trap true type ulimit umask uniq unset until unzip
wait wc which while xargs zip HOME PATH PWD USER LANG TMPDIR SHELL TERM
"""
_OF_EVERY_SHELL = frozenset(_EVERYWHERE.split())
"""Programs and variables that are there anywhere, and that nobody declares."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    what: str
    """A host, a program, a name, or the line itself."""
    places: tuple[str, ...]
    """`path:line`, the first ones."""
    more: int
    """How many places beside these."""
    declared: bool


@dataclass(frozen=True, slots=True)
class Scan:
    findings: tuple[Finding, ...]
    """What is not declared first."""
    unused: tuple[str, ...]
    """What is declared and was found nowhere."""
    unread: tuple[str, ...]
    """Files that are no text, or too long."""

    @property
    def undeclared(self) -> int:
        return sum(not each.declared for each in self.findings)


def scan(folder: SkillFolder) -> Scan:
    """In time that grows with the length of its files and not faster."""
    declared = declared_by(folder)
    found: dict[tuple[Kind, str], list[str]] = {}
    counts: dict[Kind, int] = {}
    unread: list[str] = []
    left = ALL_BYTES
    for path, data in folder.files.items():
        if path == MANIFEST:
            continue
        left -= len(data)
        if len(data) > FILE_BYTES or left < 0 or b"\0" in data:
            unread.append(path)
            continue
        for kind, what, line in _in_text(path, data.decode(errors="replace")):
            if (kind, what) not in found:
                counts[kind] = counts.get(kind, 0) + 1
                if counts[kind] > MOST:
                    continue
            found.setdefault((kind, what), []).append(f"{path}:{line}")
    order: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]
    findings = [
        Finding(
            kind,
            what,
            tuple(places[:SHOWN_PLACES]),
            max(0, len(places) - SHOWN_PLACES),
            what in declared.get(kind, frozenset()),
        )
        for (kind, what), places in found.items()
    ]
    findings.sort(key=lambda each: (each.declared, order.index(each.kind), each.what))
    unused = [
        what
        for kind, names in declared.items()
        for what in sorted(names)
        if (kind, what) not in found
    ]
    return Scan(tuple(findings), tuple(unused), tuple(unread))


def _in_text(path: str, text: str) -> Iterator[tuple[Kind, str, int]]:
    script = path.endswith((".sh", ".bash", ".zsh")) or text.startswith(
        ("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash", "#!/usr/bin/env sh")
    )
    prose = path.endswith((".md", ".markdown", ".txt", ".rst"))
    shell = script
    for number, whole in enumerate(text.splitlines(), start=1):
        line = whole[:LINE]
        if len(whole) > LINE or _OPAQUE.search(line):
            yield "opaque", line[:60], number
        if prose and (fence := _FENCE.match(line)):
            shell = not shell and fence.group(1).lower() in _SHELLS
            continue
        for kind, what in _in_line(line, shell=shell):
            yield kind, what, number


def _in_line(line: str, *, shell: bool) -> Iterator[tuple[Kind, str]]:
    fetches = _FETCHES.search(line) or _UNPACKS.search(line)
    if (fetches and (_RUN.search(line) or _RUN_OF.search(line))) or _CODE_FETCHED.search(line):
        yield "runs_fetched", line.strip()[:200]
    elif _INSTALLS.search(line):
        yield "installs", line.strip()[:200]
    if steers := _STEERS.search(line):
        yield "steers", steers.group()
    for host in _HOST.findall(line):
        yield "host", host.lower().rstrip(".")
    for name in _each(_ENVIRONMENT, line):
        yield "environment", name
    started = list(_each(_STARTED, line))
    if shell and (word := _WORD.match(line.strip())):
        started.append(word.group(1))
    for program in started:
        if (name := program.rpartition("/")[2]) and name not in _OF_EVERY_SHELL:
            yield "binary", name


def _each(expressions: Iterable[re.Pattern[str]], line: str) -> Iterator[str]:
    for expression in expressions:
        for name in expression.findall(line):
            if name not in _OF_EVERY_SHELL:
                yield name


def declared_by(folder: SkillFolder) -> dict[Kind, frozenset[str]]:
    """In its manifest, or as skills of OpenClaw do."""
    needs = folder.manifest.needs
    requires = _openclaw(folder.front.get("metadata"))
    return {
        "host": frozenset(needs.hosts),
        "binary": frozenset((*needs.binaries, *_texts(requires.get("bins")))),
        "environment": frozenset((*needs.environment, *_texts(requires.get("env")))),
    }


def is_everyday(name: str) -> bool:
    """A program that is there anywhere, and that nobody declares."""
    return name in _OF_EVERY_SHELL


def _openclaw(metadata: Any) -> Mapping[str, Any]:
    for name in ("openclaw", "clawdbot", "clawdis"):
        part = metadata.get(name) if isinstance(metadata, dict) else None
        requires = part.get("requires") if isinstance(part, dict) else None
        if isinstance(requires, dict):
            return requires
    return {}


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
