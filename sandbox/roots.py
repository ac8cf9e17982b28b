"""Which folders of the host a policy may open besides the system's: those below the operator's roots, and
never what is the server's own, under whatever name.

Judged when a policy is saved and again when a sandbox opens. What an opening answers is a descriptor of
the very file that was judged, so nothing that is swapped in between leads elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import Invalid

from .contract import Unavailable
from .policy import FORBIDDEN_ROOTS, SYSTEM_FOLDERS, Policy
from .refusals import refuse_rule

REMEDY = (
    "Whoever runs the server can name folders that may be opened in AGENTSITE_MOUNT_ROOTS; what is the "
    "server's own is never among them."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path lies, by file system: the same for every name that mounts give it."""

    device: str
    path: PurePosixPath

    def holds(self, other: Place) -> bool:
        return self.device == other.device and other.path.is_relative_to(self.path)


@dataclass(frozen=True, slots=True)
class _MountPoint:
    point: PurePosixPath
    place: Place


@dataclass(frozen=True, slots=True)
class Roots:
    allowed: tuple[Path, ...] = ()
    """Folders below which policies may open what they name."""
    own: tuple[Path, ...] = ()
    """The server's data, secrets and sockets."""
    code: tuple[Path, ...] = ()
    """The server's programs and packages: no more to be opened, but for what lies in the system's own
    folders."""
    taken_in: tuple[Path, ...] = ()
    """Folders of others from which it takes skills and documents: never to be written to."""

    def check(self, policy: Policy) -> None:
        """Raises `Invalid`, for the field `policy`, naming the first path that may not be opened."""
        for path, writable in _extra(policy):
            if reason := self._against(path, writable=writable):
                raise Invalid(f"“{path}” cannot be opened: {reason}.", field="policy", hint=REMEDY)

    def refuse(self, policy: Policy) -> None:
        """The same right before a sandbox opens: `Unavailable`."""
        for path, writable in _extra(policy):
            if reason := self._against(path, writable=writable):
                raise _refused(path, reason)

    def open(self, path: str, *, writable: bool) -> int | None:
        """A descriptor (`O_PATH`) of what stands at an extra path, judged; None: nothing does.

        Raises `Unavailable`. The caller closes it.
        """
        if reason := self._against(path, writable=writable):
            raise _refused(path, reason)
        real = os.path.realpath(path)
        try:
            descriptor = _opened(real)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise _refused(path, "it was changed while it was looked at") from problem
        if str(Path(f"/proc/self/fd/{descriptor}").readlink()) != real or self._against(
            real, writable=writable
        ):
            os.close(descriptor)
            raise _refused(path, "it was changed while it was looked at")
        return descriptor

    def _against(self, path: str, *, writable: bool) -> str:
        """Why the path may not be opened, in words; empty: it may."""
        real = PurePosixPath(os.path.realpath(path))
        if any(real.is_relative_to(root) for root in FORBIDDEN_ROOTS) or str(real) == "/":
            return "it leads to the running system"
        mounts = _mount_points()
        opened = list(_places(real, mounts))
        system = not writable and is_of_system(path, real)

        def meets(kept: Path) -> bool:
            where = _place(PurePosixPath(os.path.realpath(kept)), mounts)
            return any(place.holds(where) or where.holds(place) for place in opened)

        if any(map(meets, (*self.own, *(() if system else self.code)))):
            return "it is the server's own, or holds it"
        if writable and any(map(meets, self.taken_in)):
            return "the server takes skills or documents from there, so it is read at most"
        if not system and not any(
            real.is_relative_to(os.path.realpath(root)) for root in self.allowed
        ):
            return "it lies below none of the folders that the operator opens"
        try:
            mode = Path(real).stat().st_mode
        except OSError:
            return ""
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return "it is neither a folder nor a file"
        return ""


NO_ROOTS = Roots()
"""Opens nothing but the system's folders."""


def is_of_system(path: str, real: PurePosixPath) -> bool:
    """Whether a path is one of the folders that every program needs, or stays in one of them."""
    if path in SYSTEM_FOLDERS:
        return True
    return any(
        path.startswith(f"{folder}/") and real.is_relative_to(os.path.realpath(folder))
        for folder in SYSTEM_FOLDERS
    )


def is_extra(path: str) -> bool:
    """Whether a readable path is to be opened by `Roots.open`; writable ones always are."""
    return path not in SYSTEM_FOLDERS


def _extra(policy: Policy) -> Iterator[tuple[str, bool]]:
    files = policy.filesystem_policy
    yield from ((path, False) for path in files.read_only)
    yield from ((path, True) for path in files.read_write)


def _refused(path: str, reason: str) -> Unavailable:
    return refuse_rule(f"the policy opens “{path}”", reason, remedy=REMEDY)


def _opened(real: str) -> int:
    """Walks down without following a link. Raises `OSError`."""
    descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in PurePosixPath(real).parts[1:]:
        try:
            below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


# --- names and file systems -----------------------------------------------------------------------


def _mount_points() -> list[_MountPoint]:
    """Of this process, the latest first; none where the kernel does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    return [_mount_point(line.split(" ")) for line in reversed(lines)]


def _mount_point(fields: list[str]) -> _MountPoint:
    return _MountPoint(_plain(fields[4]), Place(fields[2], _plain(fields[3])))


def _plain(text: str) -> PurePosixPath:
    for code, sign in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(code, sign)
    return PurePosixPath(text)


def _place(real: PurePosixPath, mounts: Iterable[_MountPoint]) -> Place:
    over = [mount for mount in mounts if real.is_relative_to(mount.point)]
    if not over:
        return Place("", real)
    nearest = max(over, key=lambda mount: len(mount.point.parts))
    return Place(nearest.place.device, nearest.place.path / real.relative_to(nearest.point))


def _places(real: PurePosixPath, mounts: list[_MountPoint]) -> Iterator[Place]:
    """Of the path itself and of everything that is mounted below it."""
    yield _place(real, mounts)
    yield from (mount.place for mount in mounts if mount.point.is_relative_to(real))
