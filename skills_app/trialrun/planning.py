"""What a trial run of a skill does: the commands and tool calls of the cases that it carries, then each of
its scripts that no case runs, by itself. Pure; it is carried out by `carrying`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skills_app.contracts import CASES, Course, Step, courses_of_cases
from skills_app.folder import SkillFolder
from skills_app.installing import PROGRAM, packages_folder
from skills_app.manifest import Exposes, Needs
from skills_app.scanning import declared_by

FOLDER = "/skills"
MOST_COURSES = 10
MOST_STEPS = 40
MOST_SCRIPTS = 15
_RUN_BY = {".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".pl": "perl"}


@dataclass(frozen=True, slots=True)
class Declared:
    hosts: frozenset[str]
    binaries: frozenset[str]
    files: tuple[str, ...]
    """Patterns of paths in the workspace."""
    calls: frozenset[str]


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    files: Mapping[str, bytes]
    beside: Mapping[str, Mapping[str, bytes]]
    """The files of skills that it requires, by their names."""
    exposes: Exposes
    declared: Declared
    courses: tuple[Course, ...]
    left_out: tuple[str, ...]
    """What of it is not tried: names of cases, scripts and tools."""
    packages: Mapping[str, Path] = field(default_factory=dict)
    """Where the Python packages lie that these skills need, by their names."""

    @property
    def python(self) -> str:
        """What runs its Python files."""
        return python_of(self.name, self.name in self.packages)


def python_of(name: str, has_packages: bool) -> str:
    return str(packages_folder(name) / PROGRAM) if has_packages else "python3"


def plan_trial_run(
    folder: SkillFolder,
    beside: Mapping[str, Mapping[str, bytes]] | None = None,
    packages: Mapping[str, Path] | None = None,
) -> Plan:
    packages = packages or {}
    cases = courses_of_cases(folder.files.get(CASES))
    tools = {tool.called_in(folder.name): tool.name for tool in folder.manifest.tools}
    kept: list[Course] = []
    left_out: list[str] = []
    room = MOST_STEPS
    for case in cases:
        steps = tuple(each for each in case.steps if each.kind != "tool" or each.text in tools)
        if not any(each.kind != "write" for each in steps):
            continue
        if len(kept) >= MOST_COURSES or len(steps) > room:
            left_out.append(case.name)
            continue
        room -= len(steps)
        kept.append(Course(case.name, case.files, steps))
    said = [each.text for course in kept for each in course.steps]
    python = python_of(folder.name, folder.name in packages)
    alone, more = _scripts(folder, said, python)
    if alone:
        kept.append(Course("", {}, tuple(Step("command", each) for each in alone)))
    left_out += more
    left_out += [short for called, short in tools.items() if called not in said]
    names = declared_by(folder)
    needs: Needs = folder.manifest.needs
    return Plan(
        name=folder.name,
        files=folder.files,
        beside=beside or {},
        exposes=folder.manifest.exposes,
        declared=Declared(
            hosts=names["host"],
            binaries=names["binary"],
            files=needs.files,
            calls=frozenset(folder.manifest.calls),
        ),
        courses=tuple(kept),
        left_out=tuple(left_out),
        packages=packages,
    )


def _scripts(folder: SkillFolder, said: Sequence[str], python: str) -> tuple[list[str], list[str]]:
    """Commands for those that no case runs, and the paths of those that are too many."""
    entries = {tool.file for tool in folder.manifest.tools}
    commands: list[str] = []
    more: list[str] = []
    for path, data in folder.files.items():
        by = _RUN_BY.get(f".{path.rpartition('.')[2]}", "")
        by = python if by == "python3" else by
        shebang = data.startswith(b"#!") and by in {"", *_RUN_BY.values()}
        if not (by or shebang) or path in entries or any(path in text for text in said):
            continue
        if len(commands) >= MOST_SCRIPTS or not path.isprintable() or "'" in path:
            more.append(path)
            continue
        place = f"'{FOLDER}/{folder.name}/{path}'"
        commands.append(f"{'' if shebang else by + ' '}{place} < /dev/null")
    return commands, more
