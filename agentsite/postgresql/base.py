"""Django's PostgreSQL backend, but a database that was restarted is noticed once, not connection by
connection: psycopg's pool waits longer after each broken one and gives up before it has met them all.
What `jobs.prepared` asks for in binary form has a cursor here.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base
from psycopg import Cursor, OperationalError
from psycopg.pq import Format
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        pool = self.pool
        if not pool or _is_alive(connection):
            return connection
        pool.putconn(connection)
        # All idle ones are as old: they are replaced, and those in use when they come back.
        pool.drain()
        return super().get_new_connection(conn_params)

    def binary_cursor(self) -> Any:
        """Values come as the server holds them, bytes in half the length of their digits. Django's cursors
        write parameters into the statement, and psycopg gives those nothing but texts."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        cursor: Any = Cursor(self.connection)
        cursor.format = Format.BINARY
        return self.make_debug_cursor(cursor) if self.queries_logged else self.make_cursor(cursor)


def _is_alive(connection: Any) -> bool:
    try:
        ConnectionPool.check_connection(connection)
    except OperationalError:
        return False
    return True
