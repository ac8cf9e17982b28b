"""Packages with MCP servers: fetched once, at one exact version, into a folder that sandboxes may read.

What is fetched is recorded beside it, each part with the digest that the registry vouches for, and what lies
there can be compared with that record. Nothing of a package runs here: npm's scripts are off, and of PyPI
only wheels are taken. It is run in sandboxes alone (`programs`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import Conflict, Invalid, NotConfigured, ToolError
from reading.foreignjson import Unreadable, read_mended_json
from tools_app.packagetrees import RECORD, Part, part_of, plain_name, tree_of

Kind = Literal["npm", "pypi"]
MOST_RECORD = 20_000_000
"""Bytes of what an installer or we ourselves wrote down."""
MOST_PARTS = 1_000_000
SECONDS = 600
_WANTED = re.compile(
    r"(?:npm:(?P<npm>(?:@[a-z0-9][a-z0-9._-]{0,99}/)?[a-z0-9][a-z0-9._-]{0,99})(?:@(?P<at>[^@]*))?"
    r"|pypi:(?P<pypi>[A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:==(?P<equal>[^=]*))?)"
)
_VERSION = {
    "npm": re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(-[A-Za-z0-9.-]{1,60})?(\+[A-Za-z0-9.-]{1,60})?"),
    "pypi": re.compile(r"\d{1,9}(\.\d{1,9}){0,5}((a|b|rc)\d{1,9})?(\.post\d{1,9})?(\.dev\d{1,9})?"),
}
_PYTHON = re.compile(r"(\d{1,3}\.\d{1,3})\n")
_SCRIPT = re.compile(r"([A-Za-z_][\w.]{0,199}):([A-Za-z_][\w.]{0,199})")
_KEPT_OUT = re.compile(r"AGENTSITE_|DJANGO_")
_SECRETS = ("_KEY", "_SECRET", "_PASSWORD")
"""Variables of ours that no installer is given."""
LAUNCHER = """import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parent / "site"))
from {module} import {first}
sys.exit({function}())
"""


class Installed(BaseModel):
    model_config = ConfigDict(frozen=True)

    kind: Kind
    name: str
    version: str
    command: str
    arguments: tuple[str, ...]
    parts: tuple[Part, ...]
    program: str = ""
    """Which of its commands that starts."""
    tree: str
    """The digest of all files as they were put there."""

    @property
    def label(self) -> str:
        return f"{self.kind}:{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Wanted:
    kind: Kind
    name: str
    version: str = ""
    """Empty: whichever is the newest now."""

    @property
    def spelt(self) -> str:
        """For its installer."""
        between = "@" if self.kind == "npm" else "=="
        return f"{self.name}{between}{self.version}" if self.version else self.name


def read_wanted(text: str) -> Wanted:
    """`npm:@scope/name@1.2.3` or `pypi:name==1.2.3`. A range is no version. Raises Invalid."""
    found = _WANTED.fullmatch(text.strip())
    kind: Kind = "npm" if found and found["npm"] else "pypi"
    given = found["at" if kind == "npm" else "equal"] if found else None
    if found is None or (given is not None and not _VERSION[kind].fullmatch(given)):
        raise Invalid(
            "This names no package at one version.",
            field="package",
            hint="Type such as npm:@scope/name@1.2.3 or pypi:name==1.2.3; the newest without a version.",
        )
    if kind == "npm":
        return Wanted("npm", found["npm"], given or "")
    return Wanted("pypi", plain_name(found["pypi"]), given or "")


def install(wanted: Wanted, root: Path, *, program: str = "", interpreter: str = "") -> Path:
    """The folder in `root` in which it lies; one that lies there already is not fetched again. `program`:
    which of the commands of the package, where it has several; `interpreter`: what runs it in sandboxes.

    Raises NotConfigured where the installer is missing, Conflict for a folder that is none of ours or is
    started by something else than is asked for, and ToolError with what the installer said.
    """
    if (
        wanted.version
        and (there := _place(root, wanted.kind, wanted.name, wanted.version)).exists()
    ):
        return _require_same(there, program, interpreter)
    root.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    try:
        take = _take_npm if wanted.kind == "npm" else _take_pypi
        found = take(wanted, fresh, interpreter, program)
        place = _place(root, found.kind, found.name, found.version)
        if place.exists():
            return _require_same(place, program, interpreter)
        # What it is started with names where it is going to lie.
        arguments = tuple(each.replace(str(fresh), str(place)) for each in found.arguments)
        found = found.model_copy(update={"arguments": arguments, "tree": tree_of(fresh)})
        (fresh / RECORD).write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
        fresh.chmod(0o755)
        fresh.rename(place)
        return place
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _require_same(place: Path, program: str, interpreter: str) -> Path:
    """What lies there, if it is started as is asked for. Raises Conflict."""
    found = installed_in(place)
    if found is None:
        raise Conflict(
            f"{place} is there, and no package that was installed by this.",
            hint="Take it away, or choose another folder.",
        )
    if program not in {"", found.program} or interpreter not in {"", found.command}:
        raise Conflict(
            f"{place} is there already, and starts {found.program or 'its command'} by {found.command}.",
            hint="Take it away, or choose another folder by --into.",
        )
    return place


def installed_in(folder: Path) -> Installed | None:
    """What the record there says; None: there is none that can be read."""
    try:
        return Installed.model_validate(_json_in(folder / RECORD))
    except (OSError, Unreadable, ValidationError):
        return None


def installed_as(kind: str, name: str, version: str, roots: Sequence[Path]) -> Installed | None:
    """The package of that name at that version, if it lies in one of the folders; whatever it is named as."""
    for each in get_args(Kind):
        if each != kind:
            continue
        try:
            wanted = read_wanted(f"{each}:{name}{'@' if each == 'npm' else '=='}{version}")
        except Invalid:
            return None
        for root in roots:
            found = installed_in(_place(root, each, wanted.name, wanted.version))
            if found is not None and (found.kind, found.name) == (each, wanted.name):
                return found
    return None


def package_of(argv: Sequence[str], roots: Sequence[str]) -> Installed | None:
    """The package that this starts, if it lies in one of the folders that may be opened."""
    for each in argv:
        if not each.startswith("/"):
            continue
        for folder in Path(each).parents:
            if str(folder.parent) in roots and (found := installed_in(folder)) is not None:
                return found
    return None


def _place(root: Path, kind: Kind, name: str, version: str) -> Path:
    """No name has a further @, so no two of them share one."""
    return root / f"{kind}-{name.replace('/', '+')}@{version}"


# --- npm ------------------------------------------------------------------------------------------


def _take_npm(wanted: Wanted, folder: Path, interpreter: str, program: str) -> Installed:
    npm = shutil.which("npm")
    if npm is None:
        raise NotConfigured(
            "There is no npm on this machine.", hint="Install Node, or take one of PyPI."
        )
    _run(
        [npm, "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund",
         "--no-update-notifier", "--save-exact", "--omit=dev", "--", wanted.spelt],
        folder,
    )  # fmt: skip
    lock = _read(folder / "package-lock.json")
    parts = []
    for place, held in lock.get("packages", {}).items():
        if not place:
            continue
        # What has no digest comes from nowhere that vouches for it: a repository, a folder, an address.
        if not held.get("integrity"):
            raise ToolError(f"{place} is of no registry, so it cannot be pinned.")
        name = place.rpartition("node_modules/")[2]
        parts.append(Part(name=name, version=held["version"], digest=held["integrity"]))
    own = folder / "node_modules" / wanted.name
    about = _read(own / "package.json")
    bins = about.get("bin") or {}
    if isinstance(bins, str):
        bins = {wanted.name.rpartition("/")[2]: bins}
    chosen = _chosen(bins, wanted.name.rpartition("/")[2], program)
    script = (own / bins[chosen]).resolve()
    if not script.is_relative_to(folder.resolve()) or not script.is_file():
        raise ToolError("What the package would have run lies outside of it.")
    return Installed(
        kind="npm",
        name=wanted.name,
        version=_require_version(wanted, about.get("version")),
        command=interpreter or "node",
        arguments=(str(folder / script.relative_to(folder.resolve())),),
        parts=tuple(parts),
        program=chosen,
        tree="",
    )


# --- PyPI -----------------------------------------------------------------------------------------


def _take_pypi(wanted: Wanted, folder: Path, interpreter: str, program: str) -> Installed:
    python = interpreter or "/usr/bin/python3"
    report = folder / "report.json"
    _run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
         "--target", str(folder / "site"), "--only-binary", ":all:", "--no-compile",
         "--python-version", _version_of(python), "--implementation", "cp", "--report", str(report),
         "--", wanted.spelt],
        folder,
    )  # fmt: skip
    try:
        parts = [part_of(held) for held in _read(report).get("install", [])]
    except ValueError as name:
        raise ToolError(f"{name} is of no index, so it cannot be pinned.") from None
    report.unlink()
    version = next((each.version for each in parts if each.name == wanted.name), None)
    scripts = _scripts(folder / "site", wanted.name)
    chosen = _chosen(scripts, wanted.name, program)
    found = _SCRIPT.fullmatch(scripts[chosen])
    if found is None:
        raise ToolError("What the package would have run is no function.")
    first = found[2].partition(".")[0]
    launcher = LAUNCHER.format(module=found[1], first=first, function=found[2])
    (folder / "run.py").write_text(launcher, encoding="utf-8")
    return Installed(
        kind="pypi",
        name=wanted.name,
        version=_require_version(wanted, version),
        command=python,
        arguments=("-I", str(folder / "run.py")),
        parts=tuple(parts),
        program=chosen,
        tree="",
    )


def _scripts(site: Path, name: str) -> dict[str, str]:
    for held in site.glob("*.dist-info"):
        if plain_name(held.name.partition("-")[0]) == name:
            parser = ConfigParser(interpolation=None)
            try:
                parser.read(held / "entry_points.txt", encoding="utf-8")
            except (ConfigError, UnicodeDecodeError):
                return {}
            return dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}
    return {}


def _version_of(python: str) -> str:
    """Of the interpreter that is to run it, which may be another than ours."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        said = subprocess.run(
            [python, "-I", "-c", code], capture_output=True, text=True, timeout=30
        )
    except OSError:
        said = None
    found = _PYTHON.fullmatch(said.stdout) if said is not None else None
    if found is None:
        raise NotConfigured(
            f"{python} is no Python.", hint="Name one that sandboxes have, by --with."
        )
    return found[1]


# --- both -----------------------------------------------------------------------------------------


def _chosen(commands: Mapping[str, str], usual: str, program: str) -> str:
    """The name of one. Raises Invalid."""
    name = program or (usual if usual in commands else "")
    if not name and len(commands) == 1:
        (name,) = commands
    if name not in commands:
        raise Invalid(
            "The package has no such command."
            if program
            else "The package has no one command to start.",
            field="program",
            hint=f"It has: {', '.join(sorted(commands)[:20]) or 'none'}.",
        )
    return name


def _require_version(wanted: Wanted, version: object) -> str:
    if not isinstance(version, str) or not _VERSION[wanted.kind].fullmatch(version):
        raise ToolError("The package does not say which version it is.")
    if wanted.version and version != wanted.version:
        raise ToolError(f"{wanted.spelt} was asked for, and {version} came.")
    return version


def _run(command: Sequence[str], folder: Path) -> None:
    """With what the operator's own configuration of the installer says, and with no secret of this site's."""
    given = {
        name: value
        for name, value in os.environ.items()
        if not _KEPT_OUT.match(name) and not name.endswith(_SECRETS)
    }
    try:
        done = subprocess.run(
            command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"It was not fetched within {SECONDS} seconds.") from None
    if done.returncode:
        raise ToolError(f"It was not fetched: {(done.stderr or done.stdout).strip()[-1_000:]}")


def _read(path: Path) -> dict[str, Any]:
    try:
        held = _json_in(path)
    except (OSError, Unreadable):
        raise ToolError("The installer does not say what it fetched.") from None
    return held if isinstance(held, dict) else {}


def _json_in(path: Path) -> Any:
    """Raises OSError and Unreadable."""
    with path.open("rb") as held:
        return read_mended_json(held.read(MOST_RECORD + 1), limit=MOST_RECORD, parts=MOST_PARTS)
