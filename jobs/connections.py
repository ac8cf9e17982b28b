"""Database connections of threads that live as long as the process: the engine's, the sockets'
and those that answer requests.

What is done with a connection is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


def with_healthy_connections(call: Callable[[], T]) -> T:
    """Call, with no connection that went bad before and leaving none behind that went bad meanwhile.

    A connection to SQLite is kept for the thread's next call: opening one reads the whole schema, some
    milliseconds each time. Others go back to their pool, which bounds how many there are.
    """
    _let_go()
    try:
        return call()
    finally:
        _let_go()


def give_back() -> None:
    """Let go of this thread's connections as at the end of a request, except in a transaction."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def keep_open() -> None:
    """Have a connection to SQLite outlive the request that opened it, in a thread that lives on."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "sqlite":
            connection.close_at = None


def _let_go() -> None:
    keep_open()
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()
