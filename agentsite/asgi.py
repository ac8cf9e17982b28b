"""The one door of every server: probes, pages and sockets, and the lifespan that uvicorn asks for.

daphne has no lifespan, so nothing may begin there; what ends there, `agentsite.server` ends for daphne.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup(set_prefix=False)

# All need the apps that the line above made ready.
from agentsite.bodies import Bodies  # noqa: E402
from agentsite.checks import refuse_unsafe_start  # noqa: E402
from agentsite.cookies import Cookies  # noqa: E402
from agentsite.logs import RequestIds  # noqa: E402
from agentsite.origins import OriginGuard  # noqa: E402
from agentsite.pages import Pages  # noqa: E402
from agentsite.probes import Probes  # noqa: E402
from agentsite.proxies import TrueClient  # noqa: E402
from agentsite.readiness import remember_database_file  # noqa: E402
from agentsite.routing import websocket_urlpatterns  # noqa: E402
from agentsite.stopping import promise_end, stop_working  # noqa: E402
from jobs import here  # noqa: E402
from jobs.garbage import collect_seldom  # noqa: E402

SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps another one waiting. What a person waits for crosses some
threads, and each crossing may take this long; Python's own 5 ms are for throughput."""

refuse_unsafe_start()
remember_database_file()
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
        "http": TrueClient(RequestIds(Cookies(Bodies(Probes(Pages()))))),
        # Whose session a cookie names is asked by the sockets themselves, each time anew.
        "websocket": TrueClient(RequestIds(OriginGuard(Cookies(URLRouter(websocket_urlpatterns))))),
        "lifespan": lifespan,
    }
)
