"""A condition that no planner may turn into a join.

For rows whose keys are known: each is looked up and then asked whether it may be seen. Joined, PostgreSQL
begins with what may be seen, which are all memories of a person's stores.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Exists


class ExistsForEach(Exists):
    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="EXISTS(%(subquery)s OFFSET 0)", **context
        )
