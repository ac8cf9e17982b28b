"""Django's SQLite backend, but the placeholders of a statement are translated once and not at each
execution: for the statements of a run that took as long as SQLite itself. Threads that want to write wait for
each other here: SQLite itself looks again after ever longer sleeps, and some would never see it free. And its
files are closed to everybody but the server's user.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

_KEPT_LENGTH = 10_000
"""Characters; a longer statement inserts many rows, and hardly ever as many again."""
TURN = 20.0
"""Seconds, as `timeout` in the settings: nobody holds the lock longer but a fault."""


class Cursor(base.SQLiteCursorWrapper):
    def convert_query(self, query: str, *, param_names: Iterable[str] | None = None) -> str:
        if param_names is not None or len(query) > _KEPT_LENGTH:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)


class DatabaseWrapper(base.DatabaseWrapper):
    _turns: threading.Lock | None = None
    _has_turn = False
    _savepoints: tuple[str, ...] = ()
    """Those that are open, outermost first."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        _close_to_others(str(conn_params["database"]))
        self._turns = _turns_at(str(conn_params["database"]))
        return super().get_new_connection(conn_params)

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=Cursor)

    def _start_transaction_under_autocommit(self) -> None:
        # Who waited in vain asks SQLite, which says what it says of locks of other processes.
        if not self._has_turn and self._turns is not None:
            self._has_turn = self._turns.acquire(timeout=TURN)
        self._savepoints = ()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._end_turn()
            raise

    # Django gives each savepoint a name of its own, and the driver keeps what it compiled by its text: such
    # statements are never asked for again, and drive out others. Here a savepoint is called by its depth.

    def _savepoint(self, sid: str) -> None:
        depth = len(self._savepoints)
        super()._savepoint(f"s{depth}")  # type: ignore[misc]
        self._savepoints += (sid,)

    def _savepoint_rollback(self, sid: str) -> None:
        depth = self._savepoints.index(sid)
        super()._savepoint_rollback(f"s{depth}")  # type: ignore[misc]
        self._savepoints = self._savepoints[: depth + 1]

    def _savepoint_commit(self, sid: str) -> None:
        depth = self._savepoints.index(sid)
        super()._savepoint_commit(f"s{depth}")  # type: ignore[misc]
        self._savepoints = self._savepoints[:depth]

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._end_turn()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._end_turn()

    def _end_turn(self) -> None:
        if self._has_turn and self._turns is not None:
            self._has_turn = False
            self._turns.release()


_TURNS: dict[str, threading.Lock] = {}
"""By file; who has it writes there."""
# A child has threads of its own, none of which is writing.
os.register_at_fork(after_in_child=_TURNS.clear)


def _turns_at(name: str) -> threading.Lock | None:
    """The same for all threads, also for those that ask at once; None: it is no file."""
    return _TURNS.setdefault(name, threading.Lock()) if Path(name).is_absolute() else None


@lru_cache(maxsize=1_000)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


@lru_cache(maxsize=100)
def _close_to_others(name: str) -> None:
    """Before SQLite makes the file, which it would make as the umask says; its two companions get the
    mode that it has. Once in a process."""
    file = Path(name)
    if not file.is_absolute() or not file.parent.is_dir() or file.is_dir():
        return
    for one in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        if one == file and not one.exists():
            os.close(os.open(one, os.O_WRONLY | os.O_CREAT, 0o600))
        elif one.exists() and one.stat().st_uid == os.geteuid() and one.stat().st_mode & 0o077:
            one.chmod(0o600)
