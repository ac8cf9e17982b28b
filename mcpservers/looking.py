"""Looks at a server now, for a person who waits or a job: what it says is kept, and why it says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync

from harness.errors import AgentError
from jobs.engine import engine
from jobs.garbage import keeping_what_is_imported
from vaults.oauth import RefreshFailed, fresh_token

from .listing import note_failure, take_listing
from .models import McpConnection, McpServer
from .programs import on_trial, trial_terms
from .secrets import headers_of

if TYPE_CHECKING:
    from .sessions import Listing, Where


def look_now(server: McpServer, *, by: McpConnection | None = None) -> str:
    """Why it could not be looked at; empty: it was. It connects, so outside of any transaction, and waits
    for the server for some seconds. `by` whose connection; None: by the server's own headers."""
    _prepare()
    from .sessions import look_at  # noqa: PLC0415 - heavy

    try:
        where = _where(server)
        if by is not None:
            where = where.authorised_by(_token(by))
        # A loop of its own, in a thread of its own: the caller's thread may have one already.
        with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-look") as pool:
            found = pool.submit(lambda: asyncio.run(look_at(where))).result()
    except Exception as problem:
        return _failed(server.pk, problem)
    _took(server.pk, found, whole=by is None)
    return ""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found at an address before a server stood for it."""

    listing: Listing | None
    words: str = ""
    """Why there is none."""
    unauthorised: bool = False
    whole: bool = True
    """It was asked by nobody's credential, so that this is all it has."""


def look_at_all(tokens: Mapping[str, str]) -> dict[str, Looked]:
    """At several addresses at once, each with a token or, empty, without. As `look_now` it waits, and
    connects."""
    _prepare()

    async def look() -> list[Looked]:
        return await asyncio.gather(*(_look_ahead(url, token) for url, token in tokens.items()))

    with ThreadPoolExecutor(1, thread_name_prefix="agentsite-mcp-look") as pool:
        found = pool.submit(lambda: asyncio.run(look())).result()
    return dict(zip(tokens, found, strict=True))


def keep_look(server_id: int, looked: Looked) -> None:
    """As what the server said."""
    if looked.listing is not None:
        _took(server_id, looked.listing, whole=looked.whole)
    else:
        note_failure(server_id, looked.words, unauthorised=looked.unauthorised)


async def _look_ahead(url: str, token: str) -> Looked:
    from .sessions import Unreachable, Where, look_at  # noqa: PLC0415 - heavy

    where = Where(0, "", url)
    try:
        listing = await look_at(where.authorised_by(token) if token else where)
    except Unreachable as problem:
        unauthorised = problem.challenge is not None and problem.challenge.status == 401
        return Looked(None, str(problem), unauthorised)
    return Looked(listing, whole=not token)


async def look_soon(server_id: int) -> None:
    """The same for a job, on the loop of the runs: no thread waits for the server. Nothing for one that is
    gone."""
    server = await engine.in_tool_thread(_found, server_id)
    if server is None:
        return
    from .sessions import look_at  # noqa: PLC0415 - heavy, imported in the thread

    try:
        found = await look_at(await engine.in_tool_thread(_where, server))
    except Exception as problem:
        await engine.in_tool_thread(_failed, server_id, problem)
        return
    await engine.in_tool_thread(_took, server_id, found)


def _found(server_id: int) -> McpServer | None:
    _prepare()
    rows = McpServer.objects.select_related("organisation", "owner", "created_by")
    return rows.filter(pk=server_id).first()


def _where(server: McpServer) -> Where:
    """In a thread with tables. Raises AgentError."""
    from .sessions import Where  # noqa: PLC0415 - heavy

    if not server.argv:
        return Where(server.pk, "", server.url, headers_of(server))
    program = on_trial(trial_terms(server), server.argv, headers_of(server))
    return Where(server.pk, "", "", program=program)


def _took(server_id: int, found: Listing, *, whole: bool = True) -> None:
    """`whole`: also what it offers people; else that may be what it has for one of them."""
    take_listing(
        server_id,
        found.tools,
        protocol=found.protocol,
        software=found.software,
        offers=found.offers if whole else None,
    )


def _token(connection: McpConnection) -> str:
    """One that is good now. Raises Unreachable."""
    from .sessions import Unreachable  # noqa: PLC0415 - heavy

    try:
        return async_to_sync(fresh_token)(connection.credential_id)
    except RefreshFailed as problem:
        raise Unreachable(f"No token is to be had by the connection: {problem}.") from None


def _failed(server_id: int, problem: Exception) -> str:
    """In words. Raises what is no failure of the server's."""
    from .sessions import Unreachable  # noqa: PLC0415 - heavy

    if not isinstance(problem, Unreachable | AgentError):
        raise problem
    words = problem.message if isinstance(problem, AgentError) else str(problem)
    challenge = problem.challenge if isinstance(problem, Unreachable) else None
    unauthorised = challenge is not None and challenge.status == 401
    errors = problem.errors if isinstance(problem, Unreachable) else ""
    note_failure(server_id, words, unauthorised=unauthorised, errors=errors)
    return words


def _prepare() -> None:
    with keeping_what_is_imported():
        from . import sessions  # noqa: F401, PLC0415 - heavy
