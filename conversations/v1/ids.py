"""Ids of threads: a child conversation is a session's thread, under the same random part."""

from __future__ import annotations

SESSION = "sesn_"
THREAD = "sthr_"
OTHER = "session_"
"""Accepted in the place of `sesn_`, as the public API does."""


def thread_id(conversation_uid: str) -> str:
    return THREAD + conversation_uid.removeprefix(SESSION)


def conversation_uid(given: str) -> str:
    """Of a session's or thread's id."""
    for prefix in (THREAD, OTHER):
        if given.startswith(prefix):
            return SESSION + given.removeprefix(prefix)
    return given
