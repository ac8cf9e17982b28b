"""Wakes: hints, without content, that a conversation may have something to do.

A doubled wake is harmless, because the claim decides; a lost one is found by the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from django.conf import settings
from django.core.cache import cache

from jobs.dispatch import dispatch

WAKE = "conversations.wake"

AT_A_TIME = 500
"""Conversations that one sweep wakes; the next one goes on."""


def wake(conversation_id: int, *, delay: float = 0.0, **why: str) -> None:
    """Have somebody look at the conversation, after the current transaction.

    `why` is at most a `cause` (`Activation.Cause`), for the journal; a plain hint needs none.
    """
    dispatch(WAKE, delay=delay, conversation_id=conversation_id, **why)


def wake_lost(find: Callable[[], Sequence[int]]) -> None:
    """Wake what `find` finds, but not again what was woken a moment ago and may still wait for its
    turn: a backlog must not feed itself."""
    seconds = 2 * settings.AGENTSITE_SWEEP_SECONDS
    rested = (pk for pk in find() if cache.add(_mark(pk), 1, timeout=seconds))
    for conversation_id in islice(rested, AT_A_TIME):
        wake(conversation_id, cause="sweep")


def forget_woken(conversation_ids: Iterable[int]) -> None:
    """What a sweep woke has had its turn, and lost it with its process: the next sweep may wake it."""
    cache.delete_many([_mark(conversation_id) for conversation_id in conversation_ids])


def _mark(conversation_id: int) -> str:
    return f"woken:{conversation_id}"
