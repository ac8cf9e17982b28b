"""Django's SQLite backend, but the placeholders of a statement are translated once and not at each
execution: for the statements of a run that took as long as SQLite itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base

_KEPT_LENGTH = 10_000
"""Characters; a longer statement inserts many rows, and hardly ever as many again."""


class Cursor(base.SQLiteCursorWrapper):
    def convert_query(self, query: str, *, param_names: Iterable[str] | None = None) -> str:
        if param_names is not None or len(query) > _KEPT_LENGTH:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)


class DatabaseWrapper(base.DatabaseWrapper):
    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=Cursor)


@lru_cache(maxsize=1_000)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
