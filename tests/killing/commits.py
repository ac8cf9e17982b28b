"""Counts the commits of this process and ends it, with SIGKILL, at a chosen one.

The database backends beside this file call it around every commit, so the matrix finds its points
itself: whatever the product commits is one.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, Literal

When = Literal["before", "after"]
_WRITES = ("INSERT", "UPDATE", "DELETE")


class Commits:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seen = 0
        self._point = 0
        self._when: When = "after"

    def arm(self, point: int, when: When) -> None:
        """Die at the `point`th commit from now, right before it or right after it; 0: never."""
        with self._lock:
            self.seen, self._point, self._when = 0, point, when

    def around(self, commit: Any) -> Any:
        with self._lock:
            self.seen += 1
            mine = self._point and self.seen == self._point
        if mine and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = commit()
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


commits = Commits()


class Counting:
    """Mixed into a database wrapper: transactions, and single statements outside of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._count_single)  # type: ignore[attr-defined]

    def _commit(self) -> Any:
        return commits.around(super()._commit)  # type: ignore[misc]

    def _count_single(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        alone = not self.in_atomic_block and sql.lstrip().upper().startswith(_WRITES)  # type: ignore[attr-defined]
        if not alone:
            return execute(sql, params, many, context)
        return commits.around(lambda: execute(sql, params, many, context))
