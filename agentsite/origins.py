"""Whose page a socket may come from. Browsers say so; programs say nothing.

A page of ours may use its session's cookie. Whoever sends no Origin is no browser, and gets in with a
token or not at all: its cookies are not looked at.
"""

from __future__ import annotations

from typing import Any

from channels.security.websocket import AllowedHostsOriginValidator

from agentsite.logs import App, Receive, Scope, Send


class OriginGuard:
    """ASGI, for sockets: refuses foreign pages, takes the cookies from what is no page."""

    def __init__(self, app: App) -> None:
        self.inner = app
        self._checked: Any = AllowedHostsOriginValidator(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _value in scope.get("headers", ())}
        if b"origin" in names:
            await self._checked(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
        await self.inner({**scope, "headers": headers}, receive, send)
