"""Kombu's transport for Redis, which closes wholly when Redis has gone.

Kombu leaves a channel open whose last read fails while it is closed, and would give its messages back once
the transport has let go of the address. That error ends a worker, which should wait for Redis.
What is queued, and how, is Kombu's; who uses this is `jobs.broker`.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis


class QoS(redis.QoS):
    def restore_unacked(self, client: Any = None) -> None:
        """Give back what was not acknowledged, or leave it to the visibility timeout if Redis has gone."""
        try:
            super().restore_unacked(client)  # type: ignore[no-untyped-call]
        except self.channel.connection_errors:
            self._delivered.clear()  # tried once: Kombu demands that none is left the second time


class Channel(redis.Channel):
    QoS = QoS

    def close(self) -> None:
        """Closed afterwards, whatever the last read met."""
        try:
            super().close()  # type: ignore[no-untyped-call]
        except self.connection_errors:
            super().close()  # type: ignore[no-untyped-call]


class Transport(redis.Transport):
    Channel = Channel
