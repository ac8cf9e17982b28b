"""How many connections one address has open in this process: people of one house, or one attacker.

Behind a proxy every connection is the proxy's, which must count them itself.
"""

from __future__ import annotations

from collections import Counter

from django.conf import settings

from accounts.addresses import neighbourhood

_open: Counter[str] = Counter()


def enter(address: str) -> bool:
    """Count one more, unless there are as many as may be. What was let in must `leave`."""
    most: int = settings.AGENTSITE_CONNECTIONS_PER_ADDRESS
    place = neighbourhood(address)
    if most and not settings.AGENTSITE_BEHIND_PROXY and _open[place] >= most:
        return False
    _open[place] += 1
    return True


def leave(address: str) -> None:
    place = neighbourhood(address)
    _open[place] -= 1
    if _open[place] <= 0:
        del _open[place]
