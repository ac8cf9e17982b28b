"""The jobs of skills: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import watching


@job("skills_app.watch", every="AGENTSITE_SKILLS_DIR_SECONDS")
async def watch() -> None:
    await engine.in_database(watching.look_for_edits)
