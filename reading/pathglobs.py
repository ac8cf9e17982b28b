"""Whether a path fits a glob: `*` and `?` stay inside a folder, `**` crosses folders, `**/` is any folders.

Every part of the glob is applied once to all places of the path that the parts before it can reach, held
as the bits of one number: the time grows with glob times path, whatever both say. Rules use this; the
patterns of tools that search files are `tools_app.globs`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

LONGEST_PATH = 4_096
"""Characters of a path that is compared; no file system has longer ones."""

_FOLDERS, _ANYTHING, _NAME, _SIGN, _REST = "**/", "**", "*", "?", "/**"


def fits(path: str, glob: str, *, loose: bool = False) -> bool:
    """Whether the whole path fits; `loose` also takes the folder itself for what ends in `/**`.

    Raises ValueError for a path longer than `LONGEST_PATH`.
    """
    if len(path) > LONGEST_PATH:
        raise ValueError("the path is too long to be compared")
    whole = (1 << (len(path) + 1)) - 1
    places = dict.fromkeys(path, 0)
    for place, sign in enumerate(path):
        places[sign] |= 1 << place
    slashes = places.get("/", 0)
    others = (whole >> 1) & ~slashes

    reached = 1  # bit n: the parts so far can account for exactly the first n characters
    for part in _parts(glob, loose=loose):
        match part:
            case "**/":
                reached |= (_from_first(reached, whole) & slashes) << 1
            case "**":
                reached = _from_first(reached, whole)
            case "*":
                # The sum carries from the first place reached of every name to its end.
                reached |= ((reached & others) + others) ^ others
            case "?":
                reached = (reached & others) << 1
            case "/**":
                inside = (reached & slashes) << 1
                reached |= _from_first(inside, whole) if inside else 0
            case _:
                reached = (reached & places.get(part[1:], 0)) << 1
        if not reached:
            return False
    return bool(reached >> len(path))


def _from_first(reached: int, whole: int) -> int:
    """Every place from the first one that is reached."""
    return whole & -(reached & -reached)


@lru_cache(maxsize=512)
def _parts(glob: str, *, loose: bool) -> Sequence[str]:
    """The glob in its parts; one character that stands for itself is written behind a `=`."""
    parts: list[str] = []
    place = 0
    while place < len(glob):
        if glob.startswith(_FOLDERS, place):
            parts.append(_FOLDERS)
        elif loose and glob.startswith(_REST, place) and place + len(_REST) == len(glob):
            parts.append(_REST)
        elif glob.startswith(_ANYTHING, place):
            parts.append(_ANYTHING)
        elif glob[place] in (_NAME, _SIGN):
            parts.append(glob[place])
        else:
            parts.append(f"={glob[place]}")
            place += 1
            continue
        place += len(parts[-1])
    return tuple(parts)
