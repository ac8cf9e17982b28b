"""Ids of threads: a child conversation is a session's thread, under the same random part."""

from __future__ import annotations

SESSION = "sesn_"
THREAD = "sthr_"
OTHER, OTHER_THREAD = "session_", "sth_"
"""Accepted in the place of `sesn_` and `sthr_`, as the public API does and documents."""


def thread_id(conversation_uid: str) -> str:
    return THREAD + conversation_uid.removeprefix(SESSION)


def session_uid(given: str) -> str:
    """Of a session's id, in either spelling."""
    return SESSION + given.removeprefix(OTHER) if given.startswith(OTHER) else given


def conversation_uid(given: str) -> str:
    """Of a session's or thread's id, in either spelling."""
    for prefix in (THREAD, OTHER_THREAD, OTHER):
        if given.startswith(prefix):
            return SESSION + given.removeprefix(prefix)
    return given
