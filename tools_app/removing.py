"""Takes folders away in which programs of others could write, however deep they made them and whatever rights
they took from them. Nobody may be at work there any more. Which folders go is said by who has them.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> None:
    """Raises OSError, of which FileNotFoundError says that there is none."""
    try:
        shutil.rmtree(root)
    except (PermissionError, RecursionError):
        _remove_level_by_level(root)


def _remove_level_by_level(root: Path) -> None:
    """Every folder is brought up to the top before it goes, so that it does not matter how deep it lay."""
    root.chmod(0o700)
    top = os.open(root, _FOLDER)
    try:
        while names := _names_in(top):
            for name, is_folder in names:
                _remove(top, name, is_folder=is_folder)
    finally:
        os.close(top)
    root.rmdir()


def _remove(top: int, name: str, *, is_folder: bool) -> None:
    if not is_folder:
        os.unlink(name, dir_fd=top)
        return
    os.chmod(name, 0o700, dir_fd=top)
    place = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner, is_one in _names_in(place):
            if is_one:
                os.chmod(inner, 0o700, dir_fd=place)
                os.rename(inner, secrets.token_hex(16), src_dir_fd=place, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=place)
    finally:
        os.close(place)
    os.rmdir(name, dir_fd=top)


def _names_in(place: int) -> list[tuple[str, bool]]:
    """And whether they are folders."""
    with os.scandir(place) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
