"""What the log tells of hooks that held a call back, asked for a person, or failed."""

from __future__ import annotations

from typing import Literal, Self

from django.utils.translation import gettext as _

from harness.content import Frozen
from harness.events import AppEvent

TYPE = "x.hooks_answered"
Verdict = Literal["pass", "ask", "refuse", "failed"]


class HookAnswer(Frozen):
    hook: str
    """Its name, as it was then."""
    verdict: Verdict
    milliseconds: int
    reason: str = ""


class HooksAnswered(AppEvent):
    """In the order in which they were asked; those behind a refusal were not."""

    type: str = TYPE
    tool_use_id: str
    told: tuple[HookAnswer, ...]

    def silent(self) -> Self:
        told = tuple(each.model_copy(update={"reason": ""}) for each in self.told)
        return self.model_copy(update={"told": told})

    def remark(self) -> str:
        words_of = {
            "ask": _("“%(hook)s” asks for a person (%(ms)d ms)"),
            "refuse": _("“%(hook)s” refused (%(ms)d ms)"),
            "failed": _("“%(hook)s” failed (%(ms)d ms)"),
            "pass": _("“%(hook)s” let it pass (%(ms)d ms)"),
        }
        words = "; ".join(
            words_of[each.verdict] % {"hook": each.hook, "ms": each.milliseconds}
            for each in self.told
        )
        return _("Hooks: %(words)s.") % {"words": words}
