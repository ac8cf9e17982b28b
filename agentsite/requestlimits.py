"""What a request may be before anybody knows whose it is: how long its head and body, how slow.

Plain numbers for both servers; the bytes of a body by its route are `agentsite.routelimits`'. They are
kept by `agentsite.bodies`, `agentsite.guarded_daphne` and `agentsite.guarded_uvicorn`.
"""

from __future__ import annotations

from django.conf import settings

KB, MB = 1024, 1024 * 1024

HEAD_BYTES = 32 * KB
"""Request line and all headers together."""
ADDRESS_BYTES = 8 * KB
"""The request line's address, with its query."""
HEADERS = 100
IDLE_SECONDS = 15.0
"""How long a connection may stay open between two requests."""

HANDSHAKE_SECONDS = 30
"""How long a socket has from its connection to its first frame. daphne's own 5 are too few for the last
of hundreds that come at once."""

BODY_RATE = 8 * KB
"""Bytes a second that a longer body must bring on the average."""
LONGEST_BODY_SECONDS = 3600.0
"""Past which nobody goes on sending, however fast."""
LINGERING_SECONDS = 1.5
"""A body may take so long before it counts as one of the few that an address may have open."""
LINGERING = 512
"""Bodies of strangers that may be under way in one process for longer than `LINGERING_SECONDS`."""
LINGERING_PER_ADDRESS = 16
UNREAD_SECONDS = 60.0
"""How long a client may take nothing of an answer that waits for it."""
DRAIN_SECONDS = 2.0
"""How long a refused client may go on sending, so that it reads the answer and not a reset; nothing
of it is kept."""


def head_seconds() -> float:
    """From a request's first byte (or its connection) to the end of its headers."""
    return float(settings.AGENTSITE_HEAD_SECONDS)


def body_seconds(received: int, *, signed_in: bool) -> float:
    """How long a body of which so much has come may have taken."""
    least = float(settings.AGENTSITE_BODY_SECONDS)
    if not signed_in:
        return least
    return min(least + received / BODY_RATE, LONGEST_BODY_SECONDS)
