"""The jobs of approvals: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from .actions.approvals import expire_approvals, log_consents_anew

EXPIRE = "approvals.expire"


@job(EXPIRE, every="AGENTSITE_SWEEP_SECONDS")
async def expire_overdue_approvals() -> None:
    """Deny the calls that nobody answered in time, and say of the others whose consent counts no more."""
    await engine.in_database(expire_approvals)
    await engine.in_database(log_consents_anew)
