"""The vector of what is asked for: made at once where the embedder is here; of a service, looked up before.

Searches ask no other machine, since many run in a transaction that others wait for. Who may wait a moment
(a tool, a page, the begin of a run) calls `look_up` first; where nobody did, or the service did not answer
in time, words alone find what they find. A service that failed is left alone for a while, so that of many
turns one at most waits for it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import OrderedDict

from memory.retrieval.question import QUESTION_LIMIT

from .chosen import chosen_service
from .contract import Embedder, Vectors
from .paying import Payer, hold, likely_tokens, settle, tokens_at_most
from .service import Unanswered

SECONDS = 1.5
"""That a question waits at most."""
REST = 30.0
"""Seconds in which a service that did not answer is asked nothing."""
AT_ONCE = 4
"""Threads of a process that wait for a service; others do without it."""
KEPT = 500
KEPT_SECONDS = 300.0
logger = logging.getLogger(__name__)

_Key = tuple[str, int, str]
_kept: OrderedDict[_Key, tuple[float, Vectors]] = OrderedDict()
_rests: dict[str, float] = {}
_holding = threading.Lock()
_waiting = threading.BoundedSemaphore(AT_ONCE)


def asked_vector(embedder: Embedder, user: int, text: str) -> Vectors | None:
    """Of this person's question; None: a service makes them, and has not made this one."""
    if embedder.is_here:
        (made,) = embedder.embed([text])
        return made
    with _holding:
        at, vector = _kept.get(_key(embedder.name, user, text), (0.0, None))
        return vector if time.monotonic() - at < KEPT_SECONDS else None


def look_up(payer: Payer, user: int, text: str, *, seconds: float = SECONDS) -> bool:
    """Whether a search for this text of hers has its vector now. Outside of any transaction."""
    text = text[:QUESTION_LIMIT]
    service = chosen_service()
    if service is None or not text.strip():
        return True
    if asked_vector(service, user, text) is not None:
        return True
    if _is_resting(service.name) or not _waiting.acquire(blocking=False):
        return False
    try:
        call = hold(payer, model=service.model, tokens=tokens_at_most(text))
        if call is None:
            return False
        try:
            made = service.ask([text], seconds=seconds)
        except Unanswered as problem:
            settle(call, likely_tokens([text]) if problem.counted else 0)
            _let_rest(service.name, max(REST, problem.wait))
            logger.warning(
                "the service of embeddings: %s; words alone find what they find", problem
            )
            return False
        settle(call, likely_tokens([text]) if made.tokens is None else made.tokens)
    finally:
        _waiting.release()
    with _holding:
        _kept[_key(service.name, user, text)] = (time.monotonic(), made.vectors[0])
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return True


def _key(name: str, user: int, text: str) -> _Key:
    """A person's own, so that nobody can tell by the time it takes what another one asked."""
    return name, user, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _is_resting(name: str) -> bool:
    with _holding:
        return time.monotonic() < _rests.get(name, 0.0)


def _let_rest(name: str, seconds: float) -> None:
    with _holding:
        _rests[name] = time.monotonic() + seconds
