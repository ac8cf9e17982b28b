"""The Messages API on loopback, in a thread, answering each conversation from its own script."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from harness.content import Text
from harness.messages import ModelRequest
from harness.texts import Texts
from providers.scripted import Answer, as_reply
from tests.patience import PATIENCE
from tests.standins.messages_api import MessagesApi

GRADING = "The work was to bring this about:\n"
"""How a request to a grader begins."""
BRIEF = "<report "
"""How a request for the text of a brief begins."""


class ModelService:
    """`service.expect("Hello", reply("Hi"))`: a turn that begins with "Hello" gets these replies."""

    def __init__(self) -> None:
        self._scripts: dict[str, list[Answer]] = {}
        self._given: dict[str, int] = defaultdict(int)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.base_url = ""
        self.api: MessagesApi | None = None

    def __enter__(self) -> ModelService:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)

    def expect(self, opening: str, *answers: Answer) -> None:
        """The replies to the turn whose last message of a person is exactly `opening`."""
        self._scripts[opening] = list(answers)
        self._given[opening] = 0

    def expect_outcome(
        self, description: str, rubric: str, work: Sequence[Answer], verdicts: Sequence[Answer]
    ) -> None:
        """The replies to the work on an outcome, and those of its grader."""
        self.expect(Texts().outcome.format(description=description, rubric=rubric), *work)
        self.expect(GRADING + description, *verdicts)

    def _answer(self, request: ModelRequest) -> Any:
        for whole in _said_by_people(request):
            # The lines of a brief are of all that happened before.
            if whole.startswith(BRIEF):
                whole = BRIEF
            # What a grader is shown changes; what the work is does not.
            text = whole.partition("\n\n")[0] if whole.startswith(GRADING) else whole
            # An advisor is shown the conversation behind the question.
            text = text.partition("\n\n<conversation>")[0]
            if text in self._scripts:
                number = self._given[text]
                self._given[text] += 1
                answers: Sequence[Answer] = self._scripts[text]
                return as_reply(answers[min(number, len(answers) - 1)])
        return as_reply("Nobody wrote a script for this.")

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with MessagesApi(self._answer) as self.api:
            self.base_url = self.api.base_url
            self._ready.set()
            await self._over.wait()


def _said_by_people(request: ModelRequest) -> list[str]:
    """The texts of user messages, the last one first."""
    return [
        part.text.strip()
        for message in reversed(request.messages)
        if message.role == "user"
        for part in reversed(message.parts)
        if isinstance(part, Text)
    ]
