"""What a trial run saw, held against what the skill declares. Everything in it was written by the skill: it
is bounded, and no sign of it is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from reading.unseen import visible
from skills_app.scanning import is_everyday

from .planning import Declared

MOST = 200
"""Of each kind that are kept."""
LONGEST = 300
OUTPUT = 2_000
Area = Literal["workspace", "home", "tmp", "skill"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class StepSeen(_Part):
    course: str
    """The case; empty: scripts by themselves."""
    kind: Literal["command", "tool"]
    what: str
    exit_code: int | None
    ended_by: str
    """Why it did not come to its own end; empty: it did."""
    seconds: float
    output: str


class _Seen(_Part):
    declared: bool


S = TypeVar("S", bound=_Seen)


class HostSeen(_Seen):
    host: str
    port: int
    times: int


class ProgramSeen(_Seen):
    name: str
    arguments: str


class FileSeen(_Seen):
    area: Area
    path: str
    how: Literal["read", "written", "removed"]
    bait: bool


class CallSeen(_Seen):
    tool: str


class Report(_Part):
    steps: tuple[StepSeen, ...] = ()
    hosts: tuple[HostSeen, ...] = ()
    programs: tuple[ProgramSeen, ...] = ()
    files: tuple[FileSeen, ...] = ()
    calls: tuple[CallSeen, ...] = ()
    more_hosts: int = 0
    """That were seen too, and are not told."""
    more_programs: int = 0
    more_files: int = 0
    more_calls: int = 0
    unused: tuple[str, ...] = ()
    """Hosts and programs that it declares, and that were not seen."""
    left_out: tuple[str, ...] = ()
    files_whole: bool = True
    programs_whole: bool = True
    out_of_time: bool = False

    @property
    def undeclared(self) -> int:
        parts: tuple[_Seen, ...] = (*self.hosts, *self.programs, *self.files, *self.calls)
        return sum(not each.declared for each in parts)

    @property
    def baits(self) -> tuple[FileSeen, ...]:
        return tuple(each for each in self.files if each.bait)


def told(text: str, most: int = LONGEST) -> str:
    """As it can be shown and stored."""
    return visible(text[:most].encode(errors="replace").decode())


def first_of(seen: Iterable[S]) -> tuple[tuple[S, ...], int]:
    """As many as are kept, in the order in which they appeared, and how many are left out: what is declared
    before what is not."""
    rows = list(seen)
    undeclared = sum(not each.declared for each in rows)
    room = max(0, MOST - undeclared)
    kept: list[S] = []
    for each in rows:
        if each.declared:
            if not room:
                continue
            room -= 1
        kept.append(each)
    kept = kept[:MOST]
    return tuple(kept), len(rows) - len(kept)


def hosts_seen(counts: Mapping[tuple[str, int], int], declared: Declared) -> list[HostSeen]:
    return [
        HostSeen(host=told(host), port=port, times=times, declared=host in declared.hosts)
        for (host, port), times in counts.items()
    ]


def programs_seen(started: Iterable[tuple[str, str]], declared: Declared) -> list[ProgramSeen]:
    """Each name once, with the first of its command lines."""
    first: dict[str, str] = {}
    for name, arguments in started:
        first.setdefault(name, arguments)
    return [
        ProgramSeen(
            name=told(name),
            arguments=told(arguments),
            declared=is_everyday(name) or name in declared.binaries,
        )
        for name, arguments in first.items()
    ]


def calls_seen(names: Iterable[str], declared: Declared) -> list[CallSeen]:
    return [
        CallSeen(tool=told(name), declared=name in declared.calls) for name in dict.fromkeys(names)
    ]


def file_seen(
    area: Area,
    path: str,
    how: Literal["read", "written", "removed"],
    declared: Declared,
    *,
    bait: bool,
) -> FileSeen:
    """Its own files and what lies about in the workspace it may read, and write where it says so; temporary
    files are its own affair. What was put there for whoever looks for secrets is none of its business."""
    usual = area in {"skill", "tmp"} or (area == "workspace" and how == "read")
    said = area == "workspace" and any(fnmatchcase(path, each) for each in declared.files)
    return FileSeen(
        area=area, path=told(path), how=how, bait=bait, declared=not bait and (usual or said)
    )


def unused_of(
    declared: Declared, hosts: Iterable[HostSeen], programs: Iterable[ProgramSeen]
) -> tuple[str, ...]:
    seen = {each.host for each in hosts} | {each.name for each in programs}
    return tuple(told(each) for each in sorted((declared.hosts | declared.binaries) - seen))[:MOST]
