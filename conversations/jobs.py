"""The jobs of conversations: doorways without logic."""

from __future__ import annotations

import asyncio

from agents.commandtrial import try_a_command
from jobs.engine import engine
from jobs.registry import job

from . import activations, claims, ratelimits, removals, request_keys
from .actions.stored_files import remove_expired
from .background import end_lost_commands
from .checkpoints import RESTORE, bring_back_due, bring_back_left
from .departures import STOP, stop_of_member
from .kits import preload_services
from .runner import run_conversation
from .sandboxing import close_ended_shells, probe_sandboxes
from .wakes import WAKE, wake_lost

SWEEP = "conversations.sweep"
PRELOAD = "conversations.preload_services"
PRELOAD_AFTER = 3.0
"""Seconds from a start: its first pages come before."""
SANDBOXES = "conversations.sandboxes"


@job(WAKE, in_turn=True)
async def wake_conversation(conversation_id: int, cause: str = "hint") -> None:
    await run_conversation(conversation_id, cause)


@job(SWEEP, every="AGENTSITE_SWEEP_SECONDS")
async def sweep() -> None:
    """Wake what somebody ought to run and nobody does, and let go of old rows of the journal, of
    old idempotency keys, of messages that count no longer and of the files of deleted conversations, and
    bring files back that a process owed."""
    await engine.in_database(wake_lost, claims.lost_conversations)
    await engine.in_database(activations.prune)
    await engine.in_database(request_keys.prune)
    await engine.in_database(ratelimits.prune)
    # Trees may be large: they hold up no write to the log.
    await engine.in_tool_thread(bring_back_left)
    await engine.in_tool_thread(removals.clear_left)
    await engine.in_tool_thread(remove_expired)


@job(RESTORE)
async def restore_files(conversation_id: int) -> None:
    await engine.in_tool_thread(bring_back_due, conversation_id)


@job(SANDBOXES, every="AGENTSITE_SWEEP_SECONDS")
async def look_after_sandboxes() -> None:
    """Say how background commands of dead processes ended, know what the sandboxes of this process
    can promise, and close shells that nobody needs."""
    await end_lost_commands()
    await probe_sandboxes()
    await try_a_command()
    await close_ended_shells()


@job(STOP)
async def stop_work_of_member(user_id: int, organisation_id: int) -> None:
    await engine.in_database(stop_of_member, user_id, organisation_id)


@job(PRELOAD, every="AGENTSITE_SWEEP_SECONDS")
async def preload() -> None:
    """Have the libraries of the services at hand that are in use; nothing where they are."""
    await asyncio.sleep(PRELOAD_AFTER)
    await engine.in_tool_thread(preload_services)
