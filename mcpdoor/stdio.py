"""The same server over standard input and output, for clients that start it: one person, on this machine."""

from __future__ import annotations

import asyncio

from accounts.models import Organisation, User

from .tools import Principal


def serve_stdio(person: User, organisation: Organisation) -> None:
    """Until the client closes its end. What was begun and is not done another process takes up."""
    # Heavy, and of no use to other commands.
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    from .serving import server_for  # noqa: PLC0415

    async def run() -> None:
        server = server_for(Principal(person, organisation))
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(run())
