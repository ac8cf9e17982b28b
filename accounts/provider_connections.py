"""How a model service is reached whose address somebody typed who does not run this server.

What such an address may be is judged in `provider_addresses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.provider_addresses import judge_connection

if TYPE_CHECKING:
    import httpx2


def judged_client(timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """One that connects only where people's own keys may lead."""
    from net.guarded import guarded_client  # noqa: PLC0415 - heavy, imported on first use

    return guarded_client(judge_connection, timeout=timeout)
