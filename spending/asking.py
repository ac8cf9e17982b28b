"""Asks a model something about a conversation outside of any run: the one place beside the loop that does.

What is asked and what becomes of the answer is for whoever asks (`titles`, `learning`); what it costs is held
back and counted by `beside`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conversations.kits import Choice, providers
from harness.agentconfig import AgentConfig, Features
from harness.content import text_of
from harness.events import AgentMessage, SpanModelRequestEnd
from harness.history import Entry, History
from harness.kit import Kit, Signal
from harness.messages import ModelRequest
from harness.reply import Reply
from jobs.engine import engine
from net.addresses import meant_by

SECONDS = 60.0
"""In which the model has answered; well below `beside.LOST_AFTER`."""

Ended = Callable[[SpanModelRequestEnd, str], None]
"""Given, in a database thread, how the call ended and what was answered."""


async def ask_beside(
    *, choice: Choice, config: AgentConfig, request: ModelRequest, uid: str, ended: Ended
) -> None:
    """One request without tools under the id `uid`. `ended` is called once, unless the process ends first."""
    said: list[str] = []

    async def append(*entries: Entry) -> None:
        for entry in entries:
            match entry.event:
                case AgentMessage(content=content):
                    said.append(text_of(content))
                case SpanModelRequestEnd() as end:
                    await engine.in_database(ended, end, "\n".join(said))
                case _:
                    pass

    provider = providers.get(choice)
    try:
        kit = Kit(
            config=config,
            provider=provider,
            model=request.model,
            tools={},
            workspace=Path(),
            meant_by=meant_by,
            reply_seconds=SECONDS,
            server_keys=choice.server_keys,
        )
        reply = Reply(kit, History((), features=Features()), append, Signal())
        reply.uid = uid
        reply.start(request, reply.history)
        await reply.receive(request)
    finally:
        await providers.let_go(provider)
