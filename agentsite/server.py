"""The two servers: daphne in this process for one machine, uvicorn for many.

Both drain when they are told to stop: see `agentsite.stopping`.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, cast

from daphne.endpoints import build_endpoint_description_strings
from django.conf import settings
from twisted.internet import reactor

from agentsite import metrics
from agentsite.requestlimits import HANDSHAKE_SECONDS, IDLE_SECONDS
from agentsite.stopping import leave_soon, promise_end, stop_working
from jobs.garbage import collect_seldom


class PortTaken(Exception):
    """Nobody can listen on this address; the message says why."""


def require_free_port(host: str, port: int) -> None:
    """Raise PortTaken if the address cannot be listened on, before anything else is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise PortTaken(getattr(error, "strerror", None) or str(error)) from error


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


BACKLOG = 1024
"""Connections that may wait to be taken. After a restart everybody comes back in the same second, and
those past the server's own 50 would wait for seconds, or be refused."""


def serve(host: str, port: int, on_ready: Callable[[], None]) -> bool:
    """Serve until Ctrl+C or SIGTERM; false if the port was taken at the last moment."""
    # Imported here and not above: it needs the migrated, seeded installation.
    from agentsite.asgi import application  # noqa: PLC0415 - heavy, imported on first use
    from agentsite.guarded_daphne import GuardedServer  # noqa: PLC0415 - only this server needs it

    def ready() -> None:
        on_ready()
        collect_seldom()

    server = GuardedServer(
        application=application,
        endpoints=[
            f"{endpoint}:backlog={BACKLOG}"
            for endpoint in build_endpoint_description_strings(host=host, port=port)
        ],
        ready_callable=ready,
        server_name="agentsite",
        verbosity=0,
        websocket_handshake_timeout=HANDSHAKE_SECONDS,
        websocket_max_message_size=_most_of_a_frame(),
        websocket_max_frame_size=_most_of_a_frame(),
    )
    # Its reactor waits, without a limit, for every request to unwind.
    cast(Any, reactor).addSystemEventTrigger("before", "shutdown", promise_end)
    server.run()
    stop_working()
    leave_soon()
    return not server.abort_start


def _most_of_a_frame() -> int:
    """What a server takes; what is too long by the settings is told in a frame."""
    return 2 * int(settings.AGENTSITE_SOCKET_FRAME_BYTES)


GOODBYE_SECONDS = 5
"""How long open requests and sockets get once uvicorn is told to stop; browsers come back."""


def serve_with_uvicorn(host: str, port: int, workers: int) -> None:
    """Serve until Ctrl+C or SIGTERM. With more than one worker, each is a process of its own."""
    import uvicorn  # noqa: PLC0415 - only this server needs it

    if workers > 1 and metrics.SHARED_DIRECTORY not in os.environ:
        with tempfile.TemporaryDirectory(prefix="agentsite-metrics-") as directory:
            os.environ[metrics.SHARED_DIRECTORY] = directory
            serve_with_uvicorn(host, port, workers)
            return
    uvicorn.run(
        "agentsite.asgi:application",
        host=host,
        port=port,
        workers=workers,
        lifespan="on",
        # Compressing every frame costs more processor time and memory than its few bytes are worth.
        http="agentsite.guarded_uvicorn:GuardedHttp",
        ws="agentsite.guarded_uvicorn:GuardedSocket",
        ws_per_message_deflate=False,
        ws_max_size=_most_of_a_frame(),
        # Who is believed about whose request it is, `agentsite.proxies` knows.
        proxy_headers=False,
        timeout_keep_alive=int(IDLE_SECONDS),
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        timeout_worker_healthcheck=30,
        server_header=False,
        access_log=False,
        log_config=None,
    )
