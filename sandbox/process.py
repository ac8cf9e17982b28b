"""The backend `process`: Landlock, a filter of system calls and limits, without namespaces.

For machines where user namespaces are closed. It shares the host's file names, network and process
numbers and holds commands back by refusing; what cannot be refused this way is not promised.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from . import cgroups, seccomp
from .contract import Capabilities, Mount, Mounts, SandboxFailed
from .diskwatch import DiskWatch, DiskWatches
from .environment import environment
from .guarantees import Guarantee
from .policy import Policy
from .probing import ProbeGround, judge
from .programs import ProgramBackend
from .refusals import refuse_rule
from .roots import NO_ROOTS, Roots, is_extra
from .supervised import Start, SupervisedShell, encoded, open_supervised

NAME = "process"
SUPERVISOR = Path(__file__).parent / "inside" / "supervisor.py"
MB = 1024 * 1024
FIRST_UID, UIDS = 2_000_000_000, 100_000_000
"""Users for sandboxes of a server that runs as root: far from those that people and services have."""
DEEPEST = 256
"""Folders in one another in which the server writes; a command may make more, of which each is kept open."""
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_VERSION = 1
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

# Bits of `struct landlock_ruleset_attr` (linux/landlock.h) with the version that brought them.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FIRST_VERSION = (1 << 13) - 1
FILES = {1: FIRST_VERSION, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
NETWORK = {4: 0b11}
SCOPES = {6: 0b11}
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Rights that a rule for something that is no folder may have."""


def landlock_version() -> int:
    """What the kernel knows of Landlock; 0 if it is missing or switched off."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(
        ctypes.c_long(LANDLOCK_CREATE_RULESET),
        None,
        ctypes.c_long(0),
        ctypes.c_long(LANDLOCK_VERSION),
    )
    return max(0, int(found))


class ProcessBackend(ProgramBackend):
    name = NAME

    def __init__(
        self, *, python: str = "", found: Capabilities | None = None, roots: Roots = NO_ROOTS
    ) -> None:
        super().__init__(found)
        self._roots = roots
        self._python = python or _usable_python()
        self._version = landlock_version() if sys.platform == "linux" else 0
        self._separate = sys.platform == "linux" and os.geteuid() == 0
        """Sandboxes run as users of their own."""
        self._disks = DiskWatches()

    # --- what it is ------------------------------------------------------------------------------

    async def _probe(self) -> Capabilities:
        for lacking, problem, remedy in (
            (self._version == 0, "the kernel has no Landlock", "start Linux with lsm=landlock,…"),
            (
                not seccomp.supported(),
                f"its filter of system calls does not know the machine {seccomp.machine()}",
                "use another backend",
            ),
            (not self._python, "no Python can be run by the sandbox's user", "install python3"),
        ):
            if lacking:
                return Capabilities(NAME, available=False, problem=problem, remedy=remedy)
        reasons = {
            Guarantee.EGRESS_ALLOW_LIST: "Landlock knows ports but no hosts, so there is only no "
            "network at all",
            Guarantee.FS_HIDDEN: "names and sizes of files outside can be asked for",
            Guarantee.SCRATCH_BOUNDED: "temporary folders lie on the host's disk",
        }
        if self._version < 3:
            reasons[Guarantee.FS_WRITE_CONFINED] = (
                f"Landlock of this kernel (version {self._version}) does not keep files from being cut"
            )
        if self._version < 6 and not self._separate:
            reasons[Guarantee.PROCESSES_ISOLATED] = (
                f"Landlock of this kernel (version {self._version}) does not keep back signals, and "
                "the sandbox runs as the server's user"
            )
        if not self._separate and cgroups.find().pids is None:
            reasons[Guarantee.PIDS_TOTAL] = (
                "the kernel counts all processes of the server's user together, and there is no "
                "control group"
            )
        with ProbeGround() as ground:
            return await judge(
                self,
                ground,
                own_view=False,
                python=True,
                reasons=reasons,
                details={"landlock": str(self._version), "own user": str(self._separate)},
            )

    # --- running ---------------------------------------------------------------------------------

    async def _open(self, policy: Policy, mounts: Mounts) -> SupervisedShell:
        if policy.endpoints:
            reason = "Landlock knows ports but no hosts"
            raise refuse_rule(
                "this sandbox cannot open single hosts",
                reason,
                remedy="For the operator: use the bubblewrap backend.",
            )
        refuse_overlap(policy, mounts)
        self._roots.refuse(policy)
        uid = uid_of(mounts) if self._separate else None
        scratch = await asyncio.to_thread(self._scratch, uid)
        after = [self._removal(scratch)]
        writable = self._writable(policy, mounts)
        if uid is not None:
            try:
                await asyncio.to_thread(hand_over, writable, uid)
                refuse_unreachable([mount.source for mount in mounts.all()], uid)
            except BaseException:
                await after[0]()
                raise
        try:
            group = self._group(policy)
        except OSError as problem:
            await after[0]()
            raise SandboxFailed(f"The sandbox could not be started: {problem}.") from problem
        home, tmp = f"{scratch.name}/home", f"{scratch.name}/tmp"  # noqa: S108 - its own
        filters = [seccomp.ALWAYS, seccomp.NO_SOCKETS, seccomp.SHARED_NAMESPACES]
        if uid is None:
            filters.insert(0, seccomp.SAME_OWNER)
        descriptors: list[int] = []
        shell = await open_supervised(
            Start(
                argv=[self._python, "-I", "-S", str(SUPERVISOR), "{control}"],
                setup={
                    "env": environment(policy, home=home, tmp=tmp),
                    "workdir": str(mounts.workdir.source),
                    "shell": "/bin/bash",
                    "filter": encoded(seccomp.program(*filters)),
                    "landlock": self._rules(policy, mounts, scratch.name, descriptors),
                    "uid": uid,
                    # Under the server's own user its processes count as well.
                    "nproc_above": uid is None,
                },
                backend=NAME,
                confined=True,
                resources=policy.resources,
                each_memory=group is None or cgroups.find().memory is None,
                group=group,
                disk=self._disk(policy, writable),
                descriptors=tuple(descriptors),
                before=None if uid is None else lambda: hand_over(writable, uid),
                after=after,
            )
        )
        return self._keep(shell)

    # --- the sandbox itself ----------------------------------------------------------------------

    def _rules(
        self, policy: Policy, mounts: Mounts, scratch: str, descriptors: list[int]
    ) -> dict[str, Any]:
        """The ruleset, as `inside/supervisor.py` hands it to the kernel. What a policy opens besides the
        system's folders goes there as descriptors, which are added to those given."""
        version = self._version

        def known(table: dict[int, int]) -> int:
            return sum(bits for since, bits in table.items() if since <= version)

        handled = known(FILES)
        reading = EXECUTE | READ_FILE | READ_DIR
        # Device files are neither made nor spoken to in a workspace: bits 6 to 11 make sockets,
        # pipes and devices; pipes (10) stay.
        making = handled & ~((1 << 6) | (1 << 9) | (1 << 11) | IOCTL_DEV)
        paths: dict[str, int] = {}
        files = policy.filesystem_policy
        for path in files.read_only:
            judged = self._opened(path, descriptors, writable=False) if is_extra(path) else path
            paths[judged] = reading
        for path in files.read_write:
            paths[self._opened(path, descriptors, writable=True)] = making
        paths[scratch] = making
        for mount in mounts.all():
            paths[str(mount.source)] = making if _is_writable(mount, mounts, policy) else reading
        for device in DEVICES:
            paths[device] = (READ_FILE | WRITE_FILE) & handled
        rules = [
            (path, access & OF_FILES if not Path(path).is_dir() else access)
            for path, access in paths.items()
        ]
        return {
            "files": handled,
            "network": known(NETWORK),
            "scopes": known(SCOPES),
            "length": 8 if version < 4 else 16 if version < 6 else 24,
            "paths": [(path, access & handled) for path, access in rules],
        }

    def _opened(self, path: str, descriptors: list[int], *, writable: bool) -> str:
        descriptor = self._roots.open(path, writable=writable)
        if descriptor is None:
            return path
        descriptors.append(descriptor)
        return f"/proc/self/fd/{descriptor}"

    def _scratch(self, uid: int | None) -> tempfile.TemporaryDirectory[str]:
        folder = tempfile.TemporaryDirectory(
            prefix="agentsite-scratch-", ignore_cleanup_errors=True
        )
        for name in ("", "home", "tmp"):
            path = Path(folder.name) / name
            path.mkdir(mode=0o700, exist_ok=True)
            if uid is not None:
                os.chown(path, uid, uid)
        return folder

    def _removal(self, scratch: tempfile.TemporaryDirectory[str]) -> Callable[[], Awaitable[None]]:
        async def remove() -> None:
            await asyncio.to_thread(scratch.cleanup)

        return remove

    def _writable(self, policy: Policy, mounts: Mounts) -> tuple[Path, ...]:
        return tuple(mount.source for mount in mounts.all() if _is_writable(mount, mounts, policy))

    def _group(self, policy: Policy) -> cgroups.Group | None:
        hierarchy = cgroups.find()
        if hierarchy.memory is None and hierarchy.pids is None:
            return None
        resources = policy.resources
        # The supervisor counts as well.
        return cgroups.Group(hierarchy, memory_mb=resources.memory_mb, pids=resources.pids + 2)

    def _disk(self, policy: Policy, folders: tuple[Path, ...]) -> DiskWatch:
        resources = policy.resources
        return self._disks.watch(
            folders, size=resources.workspace_mb * MB, files=resources.workspace_files
        )


def _is_writable(mount: Mount, mounts: Mounts, policy: Policy) -> bool:
    if mount is mounts.workdir:
        return mount.writable and policy.filesystem_policy.include_workdir
    return mount.writable


def refuse_overlap(policy: Policy, mounts: Mounts) -> None:
    """Landlock only adds: what lies inside a writable folder is writable."""
    writable = [Path(path) for path in policy.filesystem_policy.read_write]
    writable += [mount.source for mount in mounts.all() if _is_writable(mount, mounts, policy)]
    protected = [Path(path) for path in policy.filesystem_policy.read_only]
    protected += [mount.source for mount in mounts.all() if not _is_writable(mount, mounts, policy)]
    for inner in protected:
        for outer in writable:
            if inner.is_relative_to(outer):
                raise refuse_rule(
                    f"“{inner}” would have to be read-only inside the writable “{outer}”",
                    "the process backend cannot take rights away below a folder",
                    remedy="For the operator: use the bubblewrap backend, or move the folder.",
                )


def uid_of(mounts: Mounts) -> int:
    """The user for everything that works in this workspace; two share one only by rare chance, and
    Landlock then still keeps them apart."""
    return FIRST_UID + zlib.crc32(str(mounts.workdir.source).encode()) % UIDS


def hand_over(folders: Sequence[Path], uid: int) -> None:
    """Make a user the owner of what the server wrote into these folders, which lies no deeper than `DEEPEST`.
    Links are not followed, and a file with several names, which may lie elsewhere, stays whose it is."""
    own = os.geteuid()
    for folder in folders:
        # From descriptor to descriptor, so that nothing can be swapped for a link on the way.
        for path, folders_in, files, descriptor in os.fwalk(folder, follow_symlinks=False):
            status = os.fstat(descriptor)
            if status.st_uid == own:
                os.fchown(descriptor, uid, uid)
            for name in (*files, *folders_in):
                try:
                    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    alone = found.st_nlink == 1 or stat.S_ISDIR(found.st_mode)
                    if found.st_uid == own and alone:
                        os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
                except FileNotFoundError:
                    continue
            if len(Path(path).parts) - len(folder.parts) >= DEEPEST:
                folders_in.clear()


def refuse_unreachable(folders: Sequence[Path], uid: int) -> None:
    """Can the sandbox's user get to the folders at all?"""
    for folder in folders:
        for above in folder.absolute().parents:
            status = above.stat()
            if not status.st_mode & 0o001 and status.st_uid != uid:
                raise refuse_rule(
                    f"the folder “{folder}” cannot be reached by the sandbox's own user",
                    f"“{above}” is closed to others",
                    remedy="For the operator: keep workspaces where other users may pass (mode 711), "
                    "or use the bubblewrap backend.",
                )


def _usable_python() -> str:
    for path in (getattr(sys, "_base_executable", sys.executable), "/usr/bin/python3"):
        if path and os.access(path, os.X_OK):
            return str(path)
    return ""
