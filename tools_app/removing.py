"""Takes folders away in which programs of others could write, however deep they made them and whatever rights
they took from them. Nobody may be at work there any more. Which folders go is said by who has them.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> None:
    """Raises OSError, of which FileNotFoundError says that there is none.

    Every folder is brought up to the top before it goes, so that it does not matter how deep it lay: whoever
    goes down holds each one open, and all others of this process find no room for a file meanwhile.
    """
    if not stat.S_ISDIR(root.lstat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root))
    root.chmod(0o700)
    top = os.open(root, _FOLDER)
    try:
        brought: set[str] | None = None
        while names := _names_in(top):
            if brought is not None and not brought.issuperset(dict(names)):
                # Somebody is at work there, and might be for ever.
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(root))
            brought = set()
            for name, is_folder in names:
                brought.update(_remove(top, name, is_folder=is_folder))
    finally:
        os.close(top)
    root.rmdir()


def _remove(top: int, name: str, *, is_folder: bool) -> list[str]:
    """The new names of folders that were in it."""
    brought: list[str] = []
    if not is_folder:
        os.unlink(name, dir_fd=top)
        return brought
    os.chmod(name, 0o700, dir_fd=top)
    place = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner, is_one in _names_in(place):
            if is_one:
                os.chmod(inner, 0o700, dir_fd=place)
                brought.append(secrets.token_hex(16))
                os.rename(inner, brought[-1], src_dir_fd=place, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=place)
    finally:
        os.close(place)
    os.rmdir(name, dir_fd=top)
    return brought


def _names_in(place: int) -> list[tuple[str, bool]]:
    """And whether they are folders."""
    with os.scandir(place) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
