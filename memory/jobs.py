"""The jobs of memory: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .vectors import EMBED, embed_memories


@job(EMBED, every="AGENTSITE_EMBEDDING_SECONDS")
async def make_vectors_of_memories() -> None:
    await engine.in_tool_thread(embed_memories)
