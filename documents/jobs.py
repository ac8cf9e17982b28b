"""The jobs of documents: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import indexing, watching
from .vectors import EMBED, embed_passages

SWEEP = "documents.sweep"


@job(indexing.INDEX, in_turn=True)
async def index_document(document_id: int) -> None:
    await engine.in_tool_thread(indexing.index_document, document_id)


@job(SWEEP, every="AGENTSITE_SWEEP_SECONDS")
async def sweep_documents() -> None:
    await engine.in_database(indexing.sweep)


@job(EMBED, every="AGENTSITE_EMBEDDING_SECONDS")
async def make_vectors_of_passages() -> None:
    await engine.in_tool_thread(embed_passages)


@job(watching.WATCH, every="AGENTSITE_WATCH_SECONDS")
async def watch_directories() -> None:
    await engine.in_tool_thread(watching.watch_all)
