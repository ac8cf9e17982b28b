"""Ids of threads: a child conversation is a session's thread, under the same random part."""

from __future__ import annotations

import re

SESSION = "sesn_"
THREAD = "sthr_"
OTHER, OTHER_THREAD = "session_", "sth_"
"""Accepted in the place of `sesn_` and `sthr_`, as the public API does and documents."""


def thread_id(conversation_uid: str) -> str:
    return THREAD + conversation_uid.removeprefix(SESSION)


_RANDOM = re.compile("[0-9a-hjkmnp-tv-z]{26}")


def names_session(given: str) -> bool:
    """Whether this is the id of a session and nobody's own word, be there such a one or not."""
    if given.startswith(OTHER):
        return _RANDOM.fullmatch(given.removeprefix(OTHER)) is not None
    return given.startswith(SESSION)


def session_uid(given: str) -> str:
    """Of a session's id, in either spelling."""
    return SESSION + given.removeprefix(OTHER) if given.startswith(OTHER) else given


def conversation_uid(given: str) -> str:
    """Of a session's or thread's id, in either spelling."""
    for prefix in (THREAD, OTHER_THREAD, OTHER):
        if given.startswith(prefix):
            return SESSION + given.removeprefix(prefix)
    return given
