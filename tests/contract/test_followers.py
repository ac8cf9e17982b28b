"""Many clients of both doors at one conversation; `make followers` is the same with hundreds."""

from __future__ import annotations

from tests.contract.live import World
from tests.followers.crowd import gather_crowd

EACH = 25


async def test_followers_who_lose_the_line_all_have_the_log_and_take_no_thread(world: World):
    found = await gather_crowd(world, EACH, turns=2)
    assert found.holds, found
    assert found.clients == 2 * EACH
    assert found.connections > found.clients
    # The pools of the server may fill up meanwhile; a thread for each would be 50.
    assert found.threads < 30
