"""Rendering that runs in another process, and what was decided about a text that takes long there.

Whether a text is shown rendered or plain is decided once and remembered, so that a page that is loaded
again shows what was shown before, also for a text that ends just about when its time is up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.cache import cache

from tools_app.isolation import IsolationFailed, IsolationTimedOut
from tools_app.warmprocesses import WarmProcesses

DOUBTED = 1_000
"""Characters from which on a text may take too long."""
NEAR = 0.15
"""The part of the time granted from which on a text might be out of time on another day."""
PATIENCE = 6
"""Times as long is waited for a text that was rendered once."""
REMEMBERED_SECONDS = 30 * 24 * 3_600

_RENDERED, _PLAIN = "rendered", "plain"

_whose: ContextVar[Callable[[], Hashable] | None] = ContextVar("drawn_for", default=None)


@contextmanager
def drawn_for(whose: Callable[[], Hashable]) -> Iterator[None]:
    """What is rendered in it is for the person whose key `whose` gives, who takes nobody else's turn by
    it. Asked only where something is rendered here."""
    token = _whose.set(whose)
    try:
        yield
    finally:
        _whose.reset(token)


class Aside:
    """One kind of rendering; `kind` names it in the cache."""

    def __init__(self, kind: str, processes: WarmProcesses) -> None:
        self._kind = kind
        self.processes = processes

    def ask(self, text: str, how: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The process's answer, an empty one where the text is shown plain for good, and None where no
        process was to be had at this moment. `how` is what else the result depends on. Blocks.

        The process is sent `patience` besides the request, and answers `seconds` as a part of what it
        grants by itself."""
        key = ""
        decided = None
        if len(text) >= DOUBTED:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            key = f"rendering:{self._kind}:{how}:{digest}"
            decided = cache.get(key)
        if decided == _PLAIN:
            return {}
        patience = PATIENCE if decided == _RENDERED else 1
        try:
            answer = self.processes.ask({**request, "patience": patience}, who=_who())
        except IsolationTimedOut:
            answer = {}
            outcome = _PLAIN
        except IsolationFailed:
            return None
        else:
            outcome = _RENDERED if answer.get("seconds", 0) >= NEAR else ""
        if (
            key
            and outcome
            and decided is None
            and not cache.add(key, outcome, REMEMBERED_SECONDS)
            and cache.get(key) == _PLAIN
        ):
            return {}  # where several ask at once the first one decides
        return answer if isinstance(answer, dict) else None


def _who() -> Hashable:
    whose = _whose.get()
    return None if whose is None else whose()
