"""How often everything is measured: the first round always, later ones while there is time."""

from __future__ import annotations

import time


class Rounds:
    """`seconds` bound the whole; a machine that is slow or busy gets fewer rounds, not a longer wait."""

    def __init__(self, count: int, *, seconds: float) -> None:
        self.count = count
        self._end = time.monotonic() + seconds
        self._took: dict[str, float] = {}

    def fits(self, number: int, name: str) -> bool:
        """Whether round `number` (from 1) of the measurement `name` will end in time."""
        return number == 1 or time.monotonic() + self._took.get(name, 0.0) <= self._end

    def took(self, name: str, seconds: float) -> None:
        self._took[name] = seconds
