"""Names inside a workspace: which are allowed, and how to reach them without being led outside.

A path is text relative to a root. It is parsed once, then walked component by component from an
open directory with links refused at every step, so nothing that is swapped between a check and its
use can escape. What to do with a reached file is `tools_app.workspace`'s affair.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from django.utils.translation import gettext as _

from harness.errors import AgentError, Invalid, LimitReached, NotFound
from reading.normalizing import normalized

NAME_LIMIT = 255
"""Bytes of one name; what Linux file systems take."""
PATH_LIMIT = 1_024
"""Bytes of a whole path."""
DEPTH_LIMIT = 32
"""Names in one path. Each level of a walk holds a directory open."""

RESERVED = frozenset({".git", ".agentsite"})
"""Folders that no tool and no page shows, reads or writes, at any depth."""
TEMPORARY_PREFIX = ".agentsite-"
"""Starts the name of a file that is still being written."""

_SHOWN = 300
"""Characters of a path that anybody is shown."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DECEPTIVE = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that reorder the text around them (Unicode's bidirectional controls)."""


def is_reserved(name: str) -> bool:
    """Case is ignored, so that the rule also holds on file systems that ignore it."""
    folded = name.casefold()
    return folded in RESERVED or folded.startswith(TEMPORARY_PREFIX)


def is_text(name: str) -> bool:
    """False for a name on disk that is not valid UTF-8 and so cannot be shown or asked for."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def shown(path: str) -> str:
    """`path` for people's and models' eyes: composed, in one line, nothing invisible, not endless.

    Never use the result to reach a file.
    """
    head = path[: 2 * _SHOWN]
    with suppress(ValueError):  # then as it stands
        head = normalized("NFC", head)
    text = "".join(_visible(character) for character in head)
    return text if len(text) <= _SHOWN and len(path) <= 2 * _SHOWN else f"{text[:_SHOWN]}…"


def _visible(character: str) -> str:
    if character in _DECEPTIVE or unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}:
        return character.encode("unicode_escape").decode("ascii")
    return character


def parse_path(path: str) -> tuple[str, ...]:
    """The names that lead from the root to `path`; none for the root itself.

    `.` and doubled slashes fall away, `..` goes up but never above the root. A backslash is a
    character like any other. Raises `Invalid`.
    """
    _refuse_impossible(path)
    if path.startswith("/"):
        raise Invalid(
            _("The path “%(path)s” is absolute.") % {"path": shown(path)},
            field="path",
            hint=_("Give it relative to the workspace, for example “notes/plan.md”."),
        )
    parts: list[str] = []
    for name in path.split("/"):
        if name in {"", "."}:
            continue
        if name == "..":
            if not parts:
                raise Invalid(
                    _("The path “%(path)s” leads out of the workspace.") % {"path": shown(path)},
                    field="path",
                    hint=_("Only files inside the workspace can be reached."),
                )
            parts.pop()
            continue
        parts.append(name)
    for name in parts:
        _refuse_name(name, path)
    if len(parts) > DEPTH_LIMIT:
        raise Invalid(
            _("The path “%(path)s” is nested deeper than %(limit)s folders.")
            % {"path": shown(path), "limit": DEPTH_LIMIT},
            field="path",
        )
    return tuple(parts)


def _refuse_impossible(path: str) -> None:
    if "\0" in path:
        raise Invalid(
            _("The path “%(path)s” contains a NUL character.") % {"path": shown(path)},
            field="path",
            hint=_("Leave it out."),
        )
    if not is_text(path):
        raise Invalid(
            _("The path “%(path)s” is not valid Unicode text.") % {"path": shown(path)},
            field="path",
        )
    if len(path.encode()) > PATH_LIMIT:
        raise Invalid(
            _("The path “%(path)s” is longer than %(limit)s bytes.")
            % {"path": shown(path), "limit": f"{PATH_LIMIT:,}"},
            field="path",
        )


def _refuse_name(name: str, path: str) -> None:
    if len(name.encode()) > NAME_LIMIT:
        raise Invalid(
            _("The name “%(name)s” is longer than %(limit)s bytes.")
            % {"name": shown(name), "limit": NAME_LIMIT},
            field="path",
        )
    if is_reserved(name):
        raise Invalid(
            _("The path “%(path)s” is reserved: “%(name)s” belongs to the system.")
            % {"path": shown(path), "name": shown(name)},
            field="path",
            hint=_("Choose another name."),
        )


def refuse_mode(mode: int, path: str) -> None:
    """Raise `Invalid` unless `mode` is that of an ordinary file."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise Invalid(
            _("“%(path)s” is a folder, not a file.") % {"path": shown(path)}, field="path"
        )
    if stat.S_ISLNK(mode):
        raise Invalid(
            _("“%(path)s” is a symbolic link, and links are not followed.") % {"path": shown(path)},
            field="path",
            hint=_("Name the file it stands for."),
        )
    raise Invalid(
        _("“%(path)s” is not an ordinary file but a pipe, socket or device.")
        % {"path": shown(path)},
        field="path",
    )


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turns what the operating system refuses into an error that names `path` and nothing else."""
    try:
        yield
    except OSError as problem:
        raise _translation(problem, path) from problem


def _translation(problem: OSError, path: str) -> AgentError:
    match problem.errno:
        case errno.ENOENT:
            return NotFound(_("There is no file or folder “%(path)s”.") % {"path": shown(path)})
        case errno.ENOTDIR | errno.ELOOP:
            return Invalid(
                _("A part of the path “%(path)s” is not a folder, or is a symbolic link.")
                % {"path": shown(path)},
                field="path",
                hint=_("Links are not followed."),
            )
        case errno.ENOSPC | errno.EDQUOT:
            return LimitReached(
                _("There is no space left to write “%(path)s”.") % {"path": shown(path)},
                hint=_("Remove some files."),
            )
        case _:
            reason = os.strerror(problem.errno) if problem.errno else type(problem).__name__
            return Invalid(
                _("“%(path)s” cannot be used: %(reason)s.")
                % {"path": shown(path), "reason": reason},
                field="path",
            )


@contextmanager
def entered(root: Path, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """An open descriptor of the folder that `parts` lead to, closed afterwards.

    With `create`, missing folders are made, readable by their owner only. Raises `NotFound`, or
    `Invalid` when a part is a link or no folder.
    """
    try:
        descriptor = os.open(root, _DIRECTORY)
    except OSError as problem:
        raise NotFound(
            _(
                "The workspace is gone from this server's disk, and with it the files of this conversation."
            ),
            hint=_("Ask whoever runs this server for a backup."),
        ) from problem
    try:
        for index, name in enumerate(parts):
            inner = _step(descriptor, name, "/".join(parts[: index + 1]), create=create)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _step(descriptor: int, name: str, path: str, *, create: bool) -> int:
    try:
        if create:
            try:
                os.mkdir(name, 0o700, dir_fd=descriptor)
            except FileExistsError:
                pass
        return os.open(name, _DIRECTORY, dir_fd=descriptor)
    except OSError as problem:
        _refuse_step(problem, descriptor, name, path)


def _refuse_step(problem: OSError, descriptor: int, name: str, path: str) -> NoReturn:
    with translated(path):
        mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        refuse_mode(mode, path)
    if not stat.S_ISDIR(mode):
        raise Invalid(
            _("“%(path)s” is a file, not a folder.") % {"path": shown(path)}, field="path"
        ) from problem
    with translated(path):
        raise problem


def open_folder(descriptor: int, name: str) -> int:
    """A descriptor of the folder `name` in an open folder. Raises `OSError` for links and files."""
    return os.open(name, _DIRECTORY, dir_fd=descriptor)


def open_file(descriptor: int, name: str, path: str) -> int:
    """A descriptor for reading the ordinary file `name` of an open folder. Waits for no writer.

    Looked at before it is opened, because opening a device may already do something; and again
    after, because it may have been swapped in between.
    """
    with translated(path):
        refuse_mode(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode, path)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        opened = os.open(name, flags, dir_fd=descriptor)
    try:
        refuse_mode(os.fstat(opened).st_mode, path)
    except BaseException:
        os.close(opened)
        raise
    return opened
