"""The scripted model of evaluations: it plays what a case says, so that a suite runs without any service.

Its place in the script is what was said so far, so that it goes on in another process and after a restart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from harness.messages import ModelRequest, Piece
from providers.scripted import Reply, call, play, reply, say

from .checks.spec import Script, ScriptedReply

SAYS_NO_MORE = "The script of this case holds no further reply."


class Played:
    """Stands in front of a provider and never asks it."""

    name = "scripted"

    def __init__(self, script: Script, *, before: int = 0, judging: int | None = None) -> None:
        self._script = script
        self._before = before
        self._judging = judging

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        async for piece in play(self._answer(request)):
            yield piece

    async def aclose(self) -> None:
        """There is nothing to close."""

    def _answer(self, request: ModelRequest) -> Reply:
        if self._judging is not None:
            answers = self._script.judge
            return reply(answers[min(self._judging, len(answers) - 1)] if answers else SAYS_NO_MORE)
        said = sum(message.role == "assistant" for message in request.messages) - self._before
        replies = told(self._script.replies, request.system)
        if not 0 <= said < len(replies):
            return reply(SAYS_NO_MORE)
        chosen = replies[said]
        parts = [say(chosen.say)] if chosen.say else []
        return reply(*parts, *(call(each.tool, **each.input) for each in chosen.calls))


def told(replies: Sequence[ScriptedReply], system: str) -> list[ScriptedReply]:
    """Those of a model that was told this."""
    return [
        each
        for each in replies
        if (not each.if_told or each.if_told in system)
        and not (each.unless_told and each.unless_told in system)
    ]
