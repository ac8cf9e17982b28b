"""Asks the model for a title, outside of any run.

What it may cost and what becomes of the answer is `actions.naming`'s part.
"""

from __future__ import annotations

from pathlib import Path

from conversations.kits import providers
from harness.agentconfig import Features
from harness.content import text_of
from harness.events import AgentMessage, SpanModelRequestEnd
from harness.history import Entry, History
from harness.kit import Kit, Signal
from harness.reply import Reply
from jobs.engine import engine
from net.addresses import meant_by

from .actions import naming

SECONDS = 60.0
"""In which the model has answered; well below `naming.LOST_AFTER`."""


async def write_title(conversation_id: int) -> None:
    """Nothing where the conversation needs none. A process that ends meanwhile leaves the row behind, which
    `naming.settle_lost` counts."""
    named = await engine.in_tool_thread(naming.begin, conversation_id)
    if named is None:
        return
    said: list[str] = []

    async def append(*entries: Entry) -> None:
        for entry in entries:
            match entry.event:
                case AgentMessage(content=content):
                    said.append(text_of(content))
                case SpanModelRequestEnd() as ended:
                    await engine.in_database(naming.end, named.row, ended, "\n".join(said))
                case _:
                    pass

    provider = providers.get(named.choice)
    try:
        kit = Kit(
            config=named.config,
            provider=provider,
            model=named.request.model,
            tools={},
            workspace=Path(),
            meant_by=meant_by,
            reply_seconds=SECONDS,
            server_keys=named.choice.server_keys,
        )
        reply = Reply(kit, History((), features=Features()), append, Signal())
        reply.uid = named.uid
        reply.start(named.request, reply.history)
        await reply.receive(named.request)
    finally:
        await providers.let_go(provider)
