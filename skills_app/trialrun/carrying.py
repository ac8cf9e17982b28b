"""Carries a trial run out: a sandbox without a way out, in which the skill finds its files, a workspace and a
home with baits; watched from outside (`sandbox.observing`), within seconds, memory and room.

Who may have one, and where what was seen is kept, is the actions' part.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, get_args

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import AgentError, Declined
from sandbox.bubblewrap import HOME, NAME, TMP, BubblewrapBackend
from sandbox.contract import Mount, Mounts, Result, Shell
from sandbox.environment import PATH
from sandbox.observing import FilesSeen, FileWatch, ProcessWatch, ProgramsSeen
from sandbox.policy import Endpoint, NetworkPolicy, Policy, ProcessPolicy, Resources
from skills_app.contracts import Course, Step
from skills_app.installing import packages_folder
from tools_app import sandboxes
from tools_app.confinement import parse_path
from tools_app.removing import remove_tree

from .inside import toolcall
from .planning import FOLDER, Plan
from .report import (
    LONGEST,
    OUTPUT,
    Area,
    FileSeen,
    Report,
    StepSeen,
    calls_seen,
    file_seen,
    first_of,
    hosts_seen,
    programs_seen,
    told,
    unused_of,
)

STEP_SECONDS = 15.0
ALL_SECONDS = 120.0
GRACE_SECONDS = 10.0
"""In which a shell ends a step whose time is over."""
PREFIX = "agentsite-trial-"
LEFT_SECONDS = 3_600.0
"""After so long nobody is at work in a folder any more: its process was killed."""
LOG_BYTES = 1_000_000
WORKSPACE, TOOLS, LOG = "/workspace", "/trial", "/trial-log"
NOWHERE = "trial.invalid"
"""The one host that the proxy lists, so that there is a proxy which says no to all others."""
POLICY = Policy(
    process=ProcessPolicy(env_allow=()),
    network_policies={"trial": NetworkPolicy(endpoints=(Endpoint(host=NOWHERE),))},
    resources=Resources(
        cpu_seconds=10,
        wall_seconds=round(STEP_SECONDS),
        memory_mb=512,
        pids=64,
        file_mb=20,
        open_files=256,
        output_kb=16,
        scratch_mb=32,
        workspace_mb=64,
        workspace_files=2_000,
    ),
)
BAITS: dict[Area, tuple[str, ...]] = {
    "home": (
        *(".ssh/id_ed25519", ".aws/credentials", ".git-credentials", ".kube/config"),
        *(".config/gh/hosts.yml", ".claude/CLAUDE.md", ".openclaw/MEMORY.md"),
    ),
    "workspace": (".env", "AGENTS.md", "MEMORY.md"),
}
"""What thieves look for, and what steers agents. No honest skill has to open it unasked."""
_BAIT = b"# Nothing stands here.\n"
_PASSING = "sh-thd."
"""How shells call what they keep for a moment."""
_LAUNCHER = f"""#!/bin/sh
name=${{0##*/}}
{{ printf '%s\\0' "$name $*" >> {LOG}/started; }} 2> /dev/null
for folder in {PATH.replace(":", " ")}; do
  if [ -x "$folder/$name" ]; then exec "$folder/$name" "$@"; fi
done
exit 127
"""
"""Stands before each program of the sandbox under its name: writes down the call, and becomes it."""


@dataclass(slots=True)
class _Ground:
    """The folders of this host that the sandbox is shown."""

    root: Path
    skill: Path
    workspace: Path
    home: Path
    tmp: Path
    tools: Path
    log: Path

    @property
    def areas(self) -> dict[Area, Path]:
        return {
            "workspace": self.workspace,
            "home": self.home,
            "tmp": self.tmp,
            "skill": self.skill,
        }


@dataclass(slots=True)
class _Seen:
    steps: list[StepSeen] = field(default_factory=list)
    hosts: Counter[tuple[str, int]] = field(default_factory=Counter)
    programs: list[tuple[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    files: dict[tuple[Area, str], FileSeen] = field(default_factory=dict)
    files_whole: bool = True
    programs_whole: bool = True
    out_of_time: bool = False


S = TypeVar("S")
_Facts = tuple[int, int, int]
_Contents = dict[tuple[Area, str], _Facts]
_Laid = dict[str, _Facts | None]
"""Files of the workspace that steps of the case wrote, as they left them."""
WRITTEN_BY_IT = (-1, -1, -1)
"""In the place of that: the skill wrote there too."""


@dataclass(frozen=True, slots=True)
class _Given:
    """What the steps of a case are carried out with."""

    plan: Plan
    course: Course
    ground: _Ground
    before: _Contents
    shell: Shell
    late: float
    """By the loop's clock: no step goes on after it."""
    step_seconds: float


async def carry_out(
    plan: Plan, *, seconds: float = ALL_SECONDS, step_seconds: float = STEP_SECONDS
) -> Report:
    """Raises Declined where this server cannot, and what sandboxes raise."""
    if NAME not in settings.AGENTSITE_SANDBOXES:
        raise Declined(
            _("A trial run needs bubblewrap, which this server does not use."),
            hint=_("Whoever runs it can add bubblewrap to AGENTSITE_SANDBOXES."),
        )
    await asyncio.to_thread(clear_away)
    seen = _Seen()
    loop = asyncio.get_running_loop()
    late = loop.time() + seconds
    for course in plan.courses:
        left = late - loop.time()
        if left <= 0:
            seen.out_of_time = True
            break
        await _carry_course(plan, course, seen, left, step_seconds)
    all_hosts = hosts_seen(seen.hosts, plan.declared)
    all_programs = programs_seen(seen.programs, plan.declared)
    hosts, more_hosts = first_of(all_hosts)
    programs, more_programs = first_of(all_programs)
    files, more_files = first_of(seen.files.values())
    calls, more_calls = first_of(calls_seen(seen.calls, plan.declared))
    return Report(
        steps=tuple(seen.steps),
        hosts=hosts,
        programs=programs,
        files=files,
        calls=calls,
        more_hosts=more_hosts,
        more_programs=more_programs,
        more_files=more_files,
        more_calls=more_calls,
        unused=unused_of(plan.declared, all_hosts, all_programs),
        left_out=tuple(told(each) for each in plan.left_out)[:50],
        files_whole=seen.files_whole,
        programs_whole=seen.programs_whole,
        out_of_time=seen.out_of_time,
    )


async def _carry_course(
    plan: Plan, course: Course, seen: _Seen, seconds: float, step_seconds: float
) -> None:
    """One case in a workspace and a sandbox of its own."""
    started: list[int] = []
    backend = BubblewrapBackend(
        found=sandboxes.found().get(NAME), resolve=_resolve, on_start=started.append
    )
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix=PREFIX)
    ground = _ground_in(Path(folder), plan.name)
    try:
        await asyncio.to_thread(_lay, plan, course, ground)
        # What lies there before is no news.
        before = await asyncio.to_thread(_contents, ground)
        laid: _Laid = {}
        watch = FileWatch({str(area): place for area, place in ground.areas.items()})
        async with _beside(watch) as files:
            shell = await backend.open_shell(POLICY, _mounts(plan, ground))
            try:
                # A step that is cut is told of by its shell; what cuts the rest is for a shell that hangs.
                async with asyncio.timeout(seconds + GRACE_SECONDS):
                    late = asyncio.get_running_loop().time() + seconds
                    given = _Given(plan, course, ground, before, shell, late, step_seconds)
                    await _carry_steps(given, seen, laid, started)
            except TimeoutError:
                seen.out_of_time = True
            finally:
                await shell.close()
        await asyncio.to_thread(_look_after, plan, ground, before, laid, files, seen)
    finally:
        await backend.close()
        with suppress(OSError):
            await asyncio.to_thread(remove_tree, Path(folder))


@asynccontextmanager
async def _beside(watch: AbstractContextManager[S]) -> AsyncIterator[S]:
    """Begun and ended in a thread: it walks folders, and waits for a thread of its own."""
    seen = await asyncio.to_thread(watch.__enter__)
    try:
        yield seen
    finally:
        await asyncio.to_thread(watch.__exit__, None, None, None)


async def _carry_steps(given: _Given, seen: _Seen, laid: _Laid, started: list[int]) -> None:
    shell, step_seconds = given.shell, given.step_seconds
    await shell.run(f"export PATH={TOOLS}/bin:{PATH} PYTHONDONTWRITEBYTECODE=1")
    async with AsyncExitStack() as watching:
        for pid in started:
            await watching.enter_async_context(_programs_of(pid, seen))
        for number, step in enumerate(given.course.steps):
            left = given.late - asyncio.get_running_loop().time()
            if left <= 0:
                seen.out_of_time = True
                return
            if step.kind == "write":
                await _carry_write(given, step, number, laid)
                continue
            command = (
                step.text if step.kind == "command" else _tool_command(given.plan, step, number)
            )
            result = await shell.run(command, timeout=min(step_seconds, left))
            seen.steps.append(_step_seen(given.course, step, result))
            for each in result.network.decisions if result.network else ():
                if each.host != NOWHERE:
                    seen.hosts[each.host, each.port] += each.times
            if asyncio.get_running_loop().time() >= given.late:
                seen.out_of_time = True
                return


async def _carry_write(given: _Given, step: Step, number: int, laid: _Laid) -> None:
    """What lies there before and after is noted, so that what the skill writes there itself is seen."""
    place = given.ground.workspace / step.text
    there = await asyncio.to_thread(_facts_of, place)
    if there != laid.get(step.text, given.before.get(("workspace", step.text))):
        laid[step.text] = WRITTEN_BY_IT
    await given.shell.run(_write_command(step, number), timeout=given.step_seconds)
    if laid.get(step.text) != WRITTEN_BY_IT:
        laid[step.text] = await asyncio.to_thread(_facts_of, place)


@asynccontextmanager
async def _programs_of(pid: int, seen: _Seen) -> AsyncIterator[None]:
    """Told of also where the time ends in the midst of a step."""
    found = ProgramsSeen()
    try:
        async with _beside(ProcessWatch(pid, below=2)) as found:
            yield
    finally:
        seen.programs_whole = seen.programs_whole and found.whole
        seen.programs += [
            (each.name, each.arguments)
            for each in found.programs
            if f" {TOOLS}/" not in each.arguments
        ]


def _step_seen(course: Course, step: Step, result: Result) -> StepSeen:
    printed = "\n".join(filter(None, (result.stdout.text.strip(), result.stderr.text.strip())))
    return StepSeen(
        course=told(course.name),
        kind="tool" if step.kind == "tool" else "command",
        what=told(step.text, 1_000),
        exit_code=result.exit_code,
        ended_by=str(result.killed_by or ""),
        seconds=round(result.duration, 2),
        output=told(printed, OUTPUT),
    )


def _tool_command(plan: Plan, step: Step, number: int) -> str:
    tool = next(each for each in plan.exposes.tools if each.called_in(plan.name) == step.text)
    return (
        f"{plan.python} -s -B {TOOLS}/toolcall.py {FOLDER}/{plan.name} '{tool.file}' {tool.function} "
        f"{TOOLS}/{number}.given {LOG}/calls"
    )


def _write_command(step: Step, number: int) -> str:
    """By the sandbox, where no link that was put there meanwhile leads anywhere."""
    path = shlex.quote(f"{WORKSPACE}/{step.text}")
    folder = shlex.quote(f"{WORKSPACE}/{step.text}".rpartition("/")[0])
    return f"/bin/mkdir -p -- {folder} && /bin/cp -- {TOOLS}/{number}.given {path}"


async def _resolve(host: str, _port: int) -> list[str]:
    raise OSError(f"no name leads anywhere here, nor does {host}")


def clear_away() -> int:
    """How many folders were removed that trial runs of killed processes left on this machine. What cannot be
    removed stays for the next time."""
    removed = 0
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            facts = place.lstat()
            ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
            if ours and time.time() - facts.st_mtime > LEFT_SECONDS:
                remove_tree(place)
                removed += 1
    return removed


# --- the folders -------------------------------------------------------------------------------------


def _ground_in(root: Path, name: str) -> _Ground:
    return _Ground(
        root,
        root / "skills" / name,
        *(root / each for each in ("workspace", "home", "tmp", "tools", "log")),
    )


def _mounts(plan: Plan, ground: _Ground) -> Mounts:
    skills = (
        Mount(ground.root / "skills" / name, Path(FOLDER) / name, label=f"the skill {name}")
        for name in (plan.name, *plan.beside)
    )
    return Mounts(
        Mount(ground.workspace, Path(WORKSPACE), writable=True, label="a workspace"),
        (
            *skills,
            *(
                Mount(
                    place, packages_folder(name), label=f"the Python packages of the skill {name}"
                )
                for name, place in plan.packages.items()
            ),
            Mount(ground.home, Path(HOME), writable=True, label="a home"),
            Mount(ground.tmp, Path(TMP), writable=True, label="temporary files"),
            Mount(ground.tools, Path(TOOLS), label="what begins the steps"),
            Mount(ground.log, Path(LOG), writable=True, label="what they note"),
        ),
    )


def _lay(plan: Plan, course: Course, ground: _Ground) -> None:
    for name, files in {plan.name: plan.files, **plan.beside}.items():
        for path, data in files.items():
            _write(ground.root / "skills" / name, path, data, runs=data.startswith(b"#!"))
    for place in (ground.workspace, ground.home, ground.tmp, ground.tools / "bin", ground.log):
        place.mkdir(parents=True, exist_ok=True)
    for area, paths in BAITS.items():
        for path in paths:
            _write(ground.areas[area], path, _BAIT)
    for path, data in course.files.items():
        with suppress(AgentError, OSError):  # it leads out, or is a file and a folder at once
            _write(ground.workspace, "/".join(parse_path(path)), data)
    for number, step in enumerate(course.steps):
        if step.kind != "command":
            (ground.tools / f"{number}.given").write_bytes(step.data)
    shutil.copyfile(toolcall.__file__, ground.tools / "toolcall.py")
    launcher = ground.tools / "launch"
    launcher.write_text(_LAUNCHER)
    launcher.chmod(0o755)
    for name in _programs():
        (ground.tools / "bin" / name).symlink_to("../launch")


def _programs() -> Iterator[str]:
    """Names of the programs that the sandbox finds."""
    names: set[str] = set()
    for folder in PATH.split(":"):
        try:
            names.update(each.name for each in Path(folder).iterdir() if each.name.isprintable())
        except OSError:
            continue
    yield from sorted(names - {"[", "sh"})


def _write(root: Path, path: str, data: bytes, *, runs: bool = False) -> None:
    """Before there is a sandbox."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    if runs:
        target.chmod(0o755)


def _contents(ground: _Ground) -> _Contents:
    """Every file with what changes when somebody writes it."""
    found: _Contents = {}
    for area, root in ground.areas.items():
        for folder, _folders, names in os.walk(root):
            for name in names:
                place = Path(folder) / name
                facts = _facts_of(place)
                if facts is None:
                    continue
                path = str(place.relative_to(root)).encode(errors="surrogateescape")
                key = area, path.decode(errors="replace")
                found[key] = facts
                if len(found) > 5_000:
                    return found
    return found


def _facts_of(place: Path) -> _Facts | None:
    """Of the times the one that no program sets."""
    try:
        facts = place.lstat()
    except (OSError, ValueError):
        return None
    return facts.st_ino, facts.st_size, facts.st_ctime_ns


def _look_after(
    plan: Plan,
    ground: _Ground,
    before: _Contents,
    laid: _Laid,
    files: FilesSeen,
    seen: _Seen,
) -> None:
    after = _contents(ground)
    removed = dict.fromkeys(map(_parted, files.removed))
    how: dict[tuple[Area, str], str] = dict.fromkeys(map(_parted, files.read), "read")
    changed = [key for key, facts in after.items() if before.get(key) != facts]
    for key in dict.fromkeys([*map(_parted, files.written), *changed]):
        # A file as a step of the case laid it there is none of the skill's.
        area, path = key
        ours = area == "workspace" and path in laid and key not in removed
        if not (ours and laid[path] == after.get(key)):
            how[key] = "written"
    for key in dict.fromkeys([*removed, *(each for each in before if each not in after)]):
        if key not in after and (key in before or key[0] != "tmp"):
            how[key] = "removed"
    for (area, path), what in how.items():
        if path.rpartition("/")[2].startswith(_PASSING):
            continue
        bait = path in BAITS.get(area, ())
        found = file_seen(area, path, what, plan.declared, bait=bait)  # type: ignore[arg-type]
        known = seen.files.get((area, path))
        if known is None or known.how == "read":
            seen.files[area, path] = found
    seen.files_whole = seen.files_whole and files.whole
    for line in _logged(ground.log / "started", b"\0"):
        name, _space, arguments = line.partition(" ")
        seen.programs.append((name, f"{name} {arguments}".strip()))
    seen.calls += _logged(ground.log / "calls", b"\n")


def _parted(name: str) -> tuple[Area, str]:
    area, _slash, path = name.partition("/")
    assert area in get_args(Area)  # noqa: S101 - for the type checker
    return area, path  # type: ignore[return-value]


def _logged(file: Path, end: bytes) -> list[str]:
    """What stands in a file that the skill could write."""
    try:
        if file.is_symlink() or not file.is_file():
            return []
        with file.open("rb") as opened:
            data = opened.read(LOG_BYTES)
    except OSError:
        return []
    lines = data.split(end)[:2_000]
    return [each[: LONGEST * 2].decode(errors="replace") for each in lines if each]
