"""What a process holds in memory at this moment, to the byte: what it asked for and has not given back.

Resident memory tells that only in large: allocators keep what was freed and grow by arenas, SQLite keeps
pages of the database up to a limit of its own. So a process that is asked for this is started with `PLAIN`:
all of Python's memory comes from the C library then, whose count is exact. It is asked at an address of the
bench's.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import gc

PLAIN = {"PYTHONMALLOC": "malloc"}
_WORDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks")
_REST = ("fordblks", "keepcost")


class _Counted(ctypes.Structure):
    """`struct mallinfo2` of glibc 2.33."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (*_WORDS, *_REST))


def held_bytes() -> int | None:
    """Of this process, without SQLite's cache of pages; None where the C library does not say."""
    try:
        count = ctypes.CDLL(None).mallinfo2
        # By the handle of the module: whichever library it was built with.
        pages = ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used
    except AttributeError:
        return None
    count.restype, pages.restype = _Counted, ctypes.c_int64
    gc.collect()
    counted = count()
    return int(counted.uordblks + counted.hblkhd - pages())
