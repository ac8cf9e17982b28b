"""The probes of a process that serves no pages, on a port of their own (AGENTSITE_METRICS_PORT).

By the same server as pages have, so that strangers find the same limits here (`requestlimits`), and by
one event loop: however many connections there are, they take no threads.
"""

from __future__ import annotations

import socket
import threading

import uvicorn

from agentsite.guarded_uvicorn import GuardedHttp
from agentsite.logs import Receive, Scope, Send
from agentsite.probes import Probes
from agentsite.requestlimits import IDLE_SECONDS


def serve_in_thread(port: int) -> uvicorn.Server:
    """On every address: in a container there is no other way in. Raises OSError when the port is taken."""
    listening = socket.create_server(("", port))
    server = uvicorn.Server(
        uvicorn.Config(
            Probes(_nothing),
            http=GuardedHttp,
            ws="none",
            lifespan="off",
            loop="asyncio",
            # A body that nobody reads would keep its connection.
            headers=[("Connection", "close")],
            timeout_keep_alive=int(IDLE_SECONDS),
            proxy_headers=False,
            server_header=False,
            access_log=False,
            log_config=None,
        )
    )
    threading.Thread(
        target=server.run,
        kwargs={"sockets": [listening]},
        name="agentsite-probes",
        daemon=True,
    ).start()
    return server


async def _nothing(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})
