"""Fetches Python packages for skills: resolves and locks them, then lays them out in a folder, in a sandbox
that reaches the operator's package index and nothing else.

Only wheels are taken and nothing of them is run, so what comes is what the lock says. For whom, and where it
lies afterwards, is `packages`' part.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from packaging.specifiers import SpecifierSet
from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import Declined
from reading.foreignjson import Unreadable, read_mended_json
from reading.hostnames import split_address
from reading.unseen import visible
from sandbox.bubblewrap import NAME, BubblewrapBackend
from sandbox.contract import KilledBy, Mount, Mounts, Result
from sandbox.environment import PATH
from sandbox.policy import Endpoint, NetworkPolicy, Policy, ProcessPolicy, Resources
from tools_app import sandboxes
from tools_app.packagetrees import RECORD, Part, part_of, tree_of

from .inside import fetcher
from .pythonneeds import PythonNeeds

SECONDS = 600
"""For resolving, and for fetching."""
MOST_PARTS = 300
MOST_REPORT = 20_000_000
SITE, PROGRAM = "site", "bin/python3"
"""In the folder: the packages, and what starts an interpreter that finds them."""
FRESH = ".fresh-"
INSIDE = (
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
)  # fmt: skip
"""Where an index may lie beside the public network: the operator named its host."""
_BUILD, _PIP, _FETCHER, _WHEELS = "/build", "/installer/pip", "/installer/inside", "/wheels"
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_MB = 1024 * 1024
LAUNCHER = """#!/bin/sh
here=$(cd "${0%/*}/.." && pwd) || exit 70
# Where it stands in PATH itself, it would find itself for ever.
set -f
IFS=:
others=
for each in $PATH; do [ "$each/python3" -ef "$0" ] || others="$others:$each"; done
PATH="${others#:}"
PYTHONPATH="$here/site${PYTHONPATH:+:$PYTHONPATH}" PIP_NO_INDEX=1 UV_OFFLINE=1 exec python3 -s "$@"
"""
_NOT_INSTALLED = """#!/bin/sh
echo "The Python packages that this skill needs are not installed; nothing is downloaded while it runs." >&2
echo "Tell the person: the page of the skill's version says why." >&2
exit 69
"""

MakeBackend = Callable[[], BubblewrapBackend]


@dataclass(frozen=True, slots=True)
class Index:
    """Where packages come from."""

    address: str
    """An address, or a folder with wheels."""
    more: tuple[str, ...]
    """Hosts on which files lie that it names."""

    @property
    def is_folder(self) -> bool:
        return self.address.startswith("/")

    @property
    def shown(self) -> str:
        """For people: without what lets the server in there."""
        if self.is_folder:
            return self.address
        parts = split_address(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        if self.is_folder:
            return ()
        parts = split_address(self.address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        own = Endpoint(host=parts.hostname or "", ports=(port,), allowed_ips=INSIDE)
        others = (Endpoint(host=each, ports=(443,), allowed_ips=INSIDE) for each in self.more)
        return (own, *others)


class Lock(BaseModel):
    """What was resolved once. With the same lock the same files come, or nothing does."""

    model_config = ConfigDict(frozen=True)

    parts: tuple[Part, ...]


class Record(Lock):
    """Beside the files."""

    tree: str


@dataclass(frozen=True, slots=True)
class Laid:
    lock: Lock
    tree: str
    size: int


def index() -> Index | None:
    """The operator's; None: nothing is installed here."""
    address = settings.AGENTSITE_SKILLS_INDEX.strip()
    return Index(address, tuple(settings.AGENTSITE_SKILLS_INDEX_HOSTS)) if address else None


def fault_of_index() -> str:
    """Why the settings name none, for the operator; empty: they do, or name none at all."""
    found = index()
    if found is None:
        return ""
    try:
        sound = found.is_folder or split_address(found.address).scheme in {"https", "http"}
        policy_for(found)
    except ValueError:
        sound = False
    return (
        ""
        if sound
        else "it is neither an address nor the path of a folder, names a host that is none, or "
        "AGENTSITE_SKILLS_PACKAGES_MB is no room that a sandbox can have"
    )


def interpreter() -> str:
    """Which Python scripts find in a sandbox of this machine, and for which machines: packages of another do
    not fit."""
    for folder in PATH.split(":"):
        if os.access(program := f"{folder}/python3", os.X_OK):
            return f"{Path(program).resolve().name} {platform.machine()}"
    return f"python3 {platform.machine()}"


def backend_here() -> BubblewrapBackend:
    """Raises Declined."""
    if NAME not in settings.AGENTSITE_SANDBOXES:
        raise Declined(
            _("Packages are installed in bubblewrap, which this server does not use."),
            hint=_("Whoever runs it can add bubblewrap to AGENTSITE_SANDBOXES."),
        )
    return BubblewrapBackend(found=sandboxes.found().get(NAME))


async def install(
    needs: PythonNeeds,
    root: Path,
    *,
    lock: Lock | None = None,
    made: MakeBackend = backend_here,
) -> Laid:
    """What is needed, in a folder of `root` that is called by the digest of the lock and of all its files;
    by the lock, if there is one already. Raises Declined, with what the installer said, and what sandboxes
    raise."""
    found = index()
    if found is None:
        raise Declined(
            _("This server installs no Python packages."),
            hint=_("Whoever runs it can name an index in AGENTSITE_SKILLS_INDEX."),
        )
    backend = made()
    try:
        work = await asyncio.to_thread(_ground, root)
        try:
            installer = _Installer(found, backend, work)
            lock = lock or await installer.resolve(needs)
            await installer.fetch(lock)
            return await asyncio.to_thread(_finish, work, root, lock)
        finally:
            await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
    finally:
        await backend.close()


@dataclass(frozen=True, slots=True)
class _Installer:
    index: Index
    backend: BubblewrapBackend
    work: Path

    async def resolve(self, needs: PythonNeeds) -> Lock:
        await self._pip("--dry-run", "--ignore-installed", "--report", f"{_BUILD}/report.json",
                        "--", *needs.packages)  # fmt: skip
        report = await asyncio.to_thread(_report_in, self.work / "report.json")
        there = str(report.get("environment", {}).get("python_full_version", ""))
        if needs.python and not SpecifierSet(needs.python).contains(there, prereleases=True):
            raise Declined(
                _("Its scripts need Python %(wanted)s, and sandboxes here have %(there)s.")
                % {"wanted": needs.python, "there": there or "?"}
            )
        return _lock_of(report)

    async def fetch(self, lock: Lock) -> None:
        lines = [f"{each.name}=={each.version} --hash={each.digest}\n" for each in lock.parts]
        await asyncio.to_thread((self.work / "lock.txt").write_text, "".join(lines))
        await self._pip("--no-deps", "--require-hashes", "--target", f"{_BUILD}/{SITE}",
                        "-r", f"{_BUILD}/lock.txt")  # fmt: skip
        # It only reads them; what has no sound syntax stays as it is.
        await self._run("python3", "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
                        f"{_BUILD}/{SITE}")  # fmt: skip

    async def _pip(self, *arguments: str) -> None:
        command = ["python3", "-I", f"{_FETCHER}/fetcher.py", _PIP, "install", "--isolated", "--quiet",
                   "--no-input", "--no-compile", "--disable-pip-version-check", "--retries", "2",
                   "--only-binary", ":all:", "--cache-dir", f"{_BUILD}/cache", *self._from()]  # fmt: skip
        result = await self._run(*command, *arguments)
        if not result.ok:
            raise Declined(_("They were not fetched: %(why)s") % {"why": _why(result)})

    def _from(self) -> list[str]:
        if self.index.is_folder:
            return ["--no-index", "--find-links", _WHEELS]
        found = ["--index-url", self.index.address]
        if self.index.address.startswith("http://"):
            found += ["--trusted-host", split_address(self.index.address).netloc.rpartition("@")[2]]
        if Path(_CERTIFICATES).is_file():
            found += ["--cert", _CERTIFICATES]
        return found

    async def _run(self, *command: str) -> Result:
        spec = find_spec("pip")
        if spec is None or spec.origin is None:
            raise Declined(_("The Python of this server has no pip, which installs packages."))
        others = [
            Mount(Path(spec.origin).parent, Path(_PIP), label="the installer"),
            Mount(Path(fetcher.__file__).parent, Path(_FETCHER), label="what starts it"),
        ]
        if self.index.is_folder:
            others.append(Mount(Path(self.index.address), Path(_WHEELS), label="the wheels"))
        workdir = Mount(self.work, Path(_BUILD), writable=True, label="what is installed")
        return await self.backend.run(
            command, policy_for(self.index), Mounts(workdir, tuple(others)), timeout=SECONDS
        )


def policy_for(found: Index) -> Policy:
    """One folder to write, one index to reach."""
    most = settings.AGENTSITE_SKILLS_PACKAGES_MB
    return Policy(
        process=ProcessPolicy(env_allow=()),
        network_policies=_network(found),
        resources=Resources(
            cpu_seconds=SECONDS,
            wall_seconds=SECONDS,
            memory_mb=1_024,
            file_mb=most,
            output_kb=64,
            # The files as they were fetched, unpacked for a moment, and as they stay.
            workspace_mb=4 * most,
        ),
    )


def _network(found: Index) -> dict[str, NetworkPolicy]:
    if not found.endpoints:
        return {}
    return {"index": NetworkPolicy(name="the package index", endpoints=found.endpoints)}


def _ground(root: Path) -> Path:
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=FRESH, dir=root))


def _report_in(file: Path) -> dict[str, Any]:
    found = _json_in(file)
    if not isinstance(found, dict):
        raise Declined(_("The installer does not say what it would fetch."))
    return found


def _json_in(file: Path) -> Any:
    """None for what cannot be read."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):  # a pipe that nobody writes into is never read
            return None
        with file.open("rb") as held:
            data = held.read(MOST_REPORT + 1)
        return read_mended_json(data, limit=MOST_REPORT, parts=MOST_REPORT)
    except (OSError, Unreadable):
        return None


def _lock_of(report: dict[str, Any]) -> Lock:
    found = report.get("install", [])
    if len(found) > MOST_PARTS:
        raise Declined(_("More than %(most)d packages would come.") % {"most": MOST_PARTS})
    try:
        parts = [part_of(each) for each in found]
    except ValueError as name:
        raise Declined(
            _("The index gives no digest of %(name)s.") % {"name": str(name)[:100]}
        ) from None
    return Lock(parts=tuple(sorted(parts, key=lambda each: each.name)))


def _finish(work: Path, root: Path, lock: Lock) -> Laid:
    """Out of what the sandbox wrote, in a place where none can write."""
    fresh = Path(tempfile.mkdtemp(prefix=FRESH, dir=root))
    try:
        if (work / SITE).is_symlink():  # what is taken away below would be somebody else's
            raise _other_than_files()
        (work / SITE).mkdir(exist_ok=True)  # nothing may be needed on this machine
        (work / SITE).rename(fresh / SITE)
        # Commands of packages name an interpreter that does not find them.
        shutil.rmtree(fresh / SITE / "bin", ignore_errors=True)
        put_program(fresh, LAUNCHER)
        size = make_plain(fresh)
        if size > settings.AGENTSITE_SKILLS_PACKAGES_MB * _MB:
            raise _too_large()
        tree = name_of(fresh, lock)
        (fresh / RECORD).write_text(
            Record(parts=lock.parts, tree=tree).model_dump_json(indent=1) + "\n", encoding="utf-8"
        )
        (fresh / RECORD).chmod(0o644)
        _put(fresh, root / tree, lock)
        return Laid(lock, tree, size)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _put(fresh: Path, target: Path, lock: Lock) -> None:
    """Programs may have before their eyes what lies there, so it stays if it is the same."""
    if target.exists():
        if record_in(target) == record_in(fresh) and name_of(target, lock) == target.name:
            os.utime(target)  # no leftover that nobody names yet
            return
        target.rename(target.with_name(f"{FRESH}{os.urandom(8).hex()}"))
    fresh.rename(target)


def name_of(folder: Path, lock: Lock) -> str:
    """A digest of all its files and of the lock: files that are alike may have come in another wheel."""
    return sha256(f"{tree_of(folder)}\n{lock.model_dump_json()}".encode()).hexdigest()


def make_plain(folder: Path) -> int:
    """Files and folders that everybody may read and nobody has to run; the bytes of all. Raises Declined for
    anything else there."""
    size = 0
    folder.chmod(0o755)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise _other_than_files()
            path.chmod(0o755 if path.is_dir() or name == "python3" else 0o644)
            size += path.stat().st_size if path.is_file() else 0
    return size


def put_program(folder: Path, text: str) -> None:
    program = folder / PROGRAM
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)


def record_in(folder: Path) -> Record | None:
    """What is said there of what was put there; None: nothing that can be read."""
    try:
        return Record.model_validate(_json_in(folder / RECORD))
    except ValidationError:
        return None


def packages_folder(skill: str) -> Path:
    """Where commands find them, where their sandbox has folders of its own. No skill has such a name."""
    return Path(f"/skills/{skill}.python")


def not_installed(root: Path) -> Path:
    """A folder that stands in the place of packages: its interpreter says that they are not there."""
    target = root / "not-installed"
    if not (target / PROGRAM).exists():
        fresh = _ground(root)
        try:
            (fresh / SITE).mkdir()
            put_program(fresh, _NOT_INSTALLED)
            make_plain(fresh)
            fresh.rename(target)
        except OSError:  # another process was quicker
            if not (target / PROGRAM).exists():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return target


def _why(result: Result) -> str:
    reasons = {
        KilledBy.TIMEOUT: _("it took too long"),
        KilledBy.MEMORY: _("the installer used up its memory"),
        KilledBy.DISK: _too_large().message,
        KilledBy.FILE_SIZE: _too_large().message,
    }
    if result.killed_by is not None:
        return reasons.get(result.killed_by, str(result.killed_by))
    said = (result.stderr.text or result.stdout.text).strip()
    if "File too large" in said:
        return _too_large().message
    refused = [
        f"{each.host}:{each.port}"
        for each in (result.network.decisions if result.network else ())
        if not each.allowed
    ]
    if refused:
        said += " " + _("(Not opened: %(hosts)s)") % {"hosts": ", ".join(refused[:5])}
    return visible(said[-700:])  # a package may have had a part in what is printed


def _other_than_files() -> Declined:
    return Declined(_("What came holds a link or a device."))


def _too_large() -> Declined:
    return Declined(
        _("They hold more than %(most)d megabytes.")
        % {"most": settings.AGENTSITE_SKILLS_PACKAGES_MB},
        hint=_("Whoever runs this server can raise AGENTSITE_SKILLS_PACKAGES_MB."),
    )
