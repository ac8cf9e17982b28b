"""The one door of every server: probes, pages and sockets, and the lifespan that uvicorn asks for.

daphne has no lifespan, so nothing may begin there; what ends there, `agentsite.server` ends for daphne.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
pages = get_asgi_application()

# All need the apps that the line above made ready.
from agentsite.checks import refuse_unsafe_start  # noqa: E402
from agentsite.logs import RequestIds  # noqa: E402
from agentsite.origins import OriginGuard  # noqa: E402
from agentsite.probes import Probes  # noqa: E402
from agentsite.stopping import promise_end, stop_working  # noqa: E402
from conversations.routing import websocket_urlpatterns  # noqa: E402
from jobs import here  # noqa: E402
from jobs.garbage import collect_seldom  # noqa: E402

SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps another one waiting. What a person waits for crosses some
threads, and each crossing may take this long; Python's own 5 ms are for throughput."""

refuse_unsafe_start()
sys.setswitchinterval(SWITCH_SECONDS)
if not settings.AGENTSITE_BROKER_URL:
    here.start_recurring()


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            collect_seldom()
        else:
            promise_end()
            await asyncio.to_thread(stop_working)
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


application = ProtocolTypeRouter(
    {
        "http": Probes(RequestIds(pages)),
        # Whose session a cookie names is asked by the sockets themselves, each time anew.
        "websocket": RequestIds(OriginGuard(CookieMiddleware(URLRouter(websocket_urlpatterns)))),
        "lifespan": lifespan,
    }
)
