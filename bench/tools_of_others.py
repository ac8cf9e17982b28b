"""MCP: what a call through our client costs beside the bare SDK's, ten servers that connect at once, and what
the tools of many servers add to a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench import machine
from bench.budgets import Reading
from bench.commands import Helper
from bench.sites import environment, under_uvicorn
from bench.stage import Stage
from bench.steps import costs
from bench.tool_servers import COUNT

CALLS = 60
"""A session's bounds on what it asks for are not reached by so many."""
STEPS = 40
TOOLS = 200


def clients(stage: Stage) -> Iterator[Reading]:
    with Helper("bench.tool_servers", pinned=machine.service_cores()) as servers:
        port = servers.hear()["port"]
        env = environment(
            stage.directory("tools"), "", AGENTSITE_MCP_PRIVATE_HOSTS=f"127.0.0.1:{port}"
        )
        with Helper("bench.tool_calls", env=env, pinned=machine.server_cores()) as calls:
            taken = calls.ask(what="calls", port=port, times=20 if stage.quick else CALLS)
            own, sdk = median(taken["own"]), median(taken["sdk"])
            yield Reading("MCP call", own / sdk, own, sdk)
            found = [
                calls.ask(what="connect", port=port, servers=COUNT)
                for _time in range(1 if stage.quick else 3)
            ]
            every = median(one["all"] for one in found)
            alone = median(one["alone"] for one in found)
            yield Reading("MCP connect", every / alone, every * 1_000, alone * 1_000)


def door(stage: Stage) -> Iterator[Reading]:
    """A call of `/mcp` beside one of the SDK's own minimal server, both under uvicorn."""
    site = stage.site
    secret = site.installation.ask(what="token")["secret"]
    with (
        Helper("bench.tool_servers", pinned=machine.service_cores()) as servers,
        Helper("bench.tool_calls", env=environment(stage.directory("door"), "")) as calls,
        under_uvicorn(site, pinned=machine.server_cores()) as port,
    ):
        taken = calls.ask(
            what="door",
            door=f"http://127.0.0.1:{port}/mcp",
            secret=secret,
            port=servers.hear()["port"],
            times=20 if stage.quick else CALLS,
        )
        own, sdk = median(taken["own"]), median(taken["sdk"])
        yield Reading("MCP door", own / sdk, own, sdk)


def steps(stage: Stage) -> Iterator[Reading]:
    """Milliseconds, by the processor."""
    site = stage.site
    plain = median(costs(stage, f"bench loop {STEPS}", STEPS)[5:35])
    given = site.installation.ask(what="with_tools", servers=COUNT, tools=TOOLS)["conversations"]
    own = median(costs(stage, f"bench loop {STEPS}", STEPS, conversations=given)[5:35])
    yield Reading("MCP step", (own - plain) * 1_000, own * 1_000, plain * 1_000)
