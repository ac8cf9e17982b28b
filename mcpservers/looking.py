"""Looks at a server now, for a person who waits or a job: what it says is kept, and why it says nothing."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from harness.errors import AgentError
from jobs.garbage import keeping_what_is_imported

from .listing import note_failure, take_listing
from .models import McpServer
from .secrets import headers_of


def look_now(server: McpServer) -> str:
    """Why it could not be looked at; empty: it was. It connects, so outside of any transaction, and waits
    for the server for some seconds."""
    with keeping_what_is_imported():
        from .sessions import Unreachable, Where, look_at  # noqa: PLC0415 - heavy

    try:
        where = Where(server.pk, "", server.url, headers_of(server))
        # A loop of its own, in a thread of its own: the caller's thread may have one already.
        with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-look") as pool:
            found = pool.submit(lambda: asyncio.run(look_at(where))).result()
    except (Unreachable, AgentError) as problem:
        words = problem.message if isinstance(problem, AgentError) else str(problem)
        note_failure(server.pk, words)
        return words
    take_listing(server.pk, found.tools, protocol=found.protocol, software=found.software)
    return ""
