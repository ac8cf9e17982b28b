"""Runs inside a sandbox: carries connections to a port of its loopback on to one Unix socket outside.

It decides nothing; what may be reached is decided by the proxy behind the socket.
"""

# Started as `python -I -S forwarder.py PORT SOCKET`; only the standard library.

from __future__ import annotations

import selectors
import socket
import sys

PIECE = 65_536
MOST = 128
"""Connections at once."""


class Side:
    """One end of a pair of connections."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.waiting = bytearray()
        """What the other side sent and this one has not taken yet."""
        self.ended = False
        self.other = self


def serve(port: int, path: str) -> None:
    choose = selectors.DefaultSelector()
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", port))
    door.listen(MOST)
    door.setblocking(False)
    choose.register(door, selectors.EVENT_READ)
    open_pairs = 0

    def attend(side: Side) -> None:
        events = 0
        if not side.ended and len(side.other.waiting) < PIECE:
            events |= selectors.EVENT_READ
        if side.waiting:
            events |= selectors.EVENT_WRITE
        known = side.connection in choose.get_map()
        if events and known:
            choose.modify(side.connection, events, side)
        elif events:
            choose.register(side.connection, events, side)
        elif known:
            choose.unregister(side.connection)

    def close(side: Side) -> None:
        nonlocal open_pairs
        for one in (side, side.other):
            if one.connection.fileno() >= 0:
                if one.connection in choose.get_map():
                    choose.unregister(one.connection)
                one.connection.close()
        open_pairs -= 1

    def move(side: Side, events: int) -> None:
        if events & selectors.EVENT_READ:
            data = side.connection.recv(PIECE)
            if data:
                side.other.waiting += data
            else:
                side.ended = True
        if events & selectors.EVENT_WRITE:
            del side.waiting[: side.connection.send(side.waiting)]
        for one in (side, side.other):
            if one.other.ended and not one.waiting:
                try:
                    one.connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
        if side.ended and side.other.ended and not side.waiting and not side.other.waiting:
            close(side)
            return
        attend(side)
        attend(side.other)

    while True:
        for key, events in choose.select():
            if key.fileobj is door:
                inner, _address = door.accept()
                outer = socket.socket(socket.AF_UNIX)
                try:
                    if open_pairs >= MOST:
                        raise OSError
                    outer.connect(path)
                except OSError:
                    inner.close()
                    outer.close()
                    continue
                inner.setblocking(False)
                outer.setblocking(False)
                one, two = Side(inner), Side(outer)
                one.other, two.other = two, one
                open_pairs += 1
                attend(one)
                attend(two)
                continue
            side = key.data
            if side.connection.fileno() < 0:
                continue
            try:
                move(side, events)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:
                close(side)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
