"""How the window of one request is shared out: what each source may take, what it takes, what was cut.

Pure arithmetic over sizes and texts. Sizes are `estimates`'; cutting old results is `transcript`'s, the
history's older part `compaction`'s; who brings a section of the system prompt is the runner's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.content import Frozen

CHARACTERS = 3
"""Characters a token, at which a text that is cut to a share is sure to fit: code and tables have so few."""

SHARES: Mapping[str, float] = {
    "system": 0.25,
    "steering": 0.08,
    "skills": 0.08,
    "recall": 0.08,
    "documents": 0.12,
    "pinned": 0.1,
    "reserve": 0.25,
}
"""The most of a window that each source may take. Tools are told whole, the history has what remains, and
of the question nothing is ever cut."""
OTHER_SHARE = 0.05
"""Of a source that is not named above."""
RESULTS_SHARE = 0.25
"""The most that the results of one step may take together."""
TAIL_SHARE = 0.3
"""The most of the history that is left as it was when its older part is summarised; its last step stays
however long it is."""
SUMMARY_SHARE = 0.125
"""The most that a summary may take."""
KEPT_SHARE = 0.15
"""The most that is kept word for word beside a summary."""


class ContextPlan(Frozen):
    """What a request's window held, in tokens: as many as its service counted for the request before, in
    proportion; half of the upper estimate where nothing was counted yet."""

    window: int
    reserve: int
    """Kept free for the reply."""
    tokens: dict[str, int]
    """By source; sources without any are left out."""
    cut: tuple[str, ...] = ()
    """What did not fit, in words, with the tool that reads it again."""
    cleared: int = 0
    """Of these, what the service is expected to leave out itself: as much as of the request before."""
    service: str = ""
    """Who shortens what where the agent has the service do it, in words."""

    @property
    def total(self) -> int:
        """Of the prompt."""
        return max(0, sum(self.tokens.values()) - self.cleared)

    @property
    def free(self) -> int:
        """What is left beside prompt and reply; below zero: it does not fit."""
        return self.window - self.reserve - self.total


@dataclass(frozen=True, slots=True)
class Portion:
    """A section of the system prompt, and who brings it."""

    source: str
    text: str
    most: int
    """Characters; its source's share of the window may allow less."""
    share: float | None = None
    """Of the window, in place of its source's own."""
    reread: str = ""
    """How the whole is read where it was cut: the end of a sentence that names a tool."""


@dataclass(frozen=True, slots=True)
class Head:
    """The system prompt of a run."""

    text: str
    characters: Mapping[str, int]
    """By source."""
    cut: tuple[str, ...]


def reserve_of(window: int, output_tokens: int) -> int:
    """What is kept free for the reply: what may be asked for, and never more than its share."""
    return min(output_tokens, max(1, int(window * SHARES["reserve"])))


def fit(portions: Iterable[Portion], window: int) -> Head:
    """The portions in order, each source cut to its share of `window` tokens; a text keeps its beginning."""
    left: dict[str, int] = {}
    texts: list[str] = []
    sizes: dict[str, int] = {}
    cut: list[str] = []
    for portion in portions:
        if not portion.text:
            continue
        share = SHARES.get(portion.source, OTHER_SHARE) if portion.share is None else portion.share
        room = left.setdefault(portion.source, int(window * share * CHARACTERS))
        text = portion.text
        most = min(portion.most, room)
        if len(text) > most:
            missing = len(text) - most
            where = f"; {portion.reread}" if portion.reread else ""
            cut.append(f"{portion.source}: {missing:,} characters{where}")
            text = f"{text[:most]}\n[{missing:,} characters are left out here{where}.]"
        left[portion.source] = max(0, room - len(text))
        sizes[portion.source] = sizes.get(portion.source, 0) + len(text)
        texts.append(text)
    return Head("\n\n".join(texts), sizes, tuple(cut))


def share_out(
    *,
    window: int,
    reserve: int,
    head: Mapping[str, int],
    at_most: Mapping[str, int],
    rate: float,
    cut: Sequence[str] = (),
    cleared: int = 0,
    service: str = "",
) -> ContextPlan:
    """The plan of a request. `at_most` is its upper estimate by part, of which that of `system` is divided
    as the characters of `head` are; `rate` says how much of such an estimate turns out to be true."""
    tokens = {name: round(size * rate) for name, size in at_most.items() if size}
    whole = sum(head.values())
    if whole and "system" in tokens:
        system = tokens.pop("system")
        others = {n: system * size // whole for n, size in head.items() if n != "system"}
        tokens = {"system": system - sum(others.values()), **others, **tokens}
    return ContextPlan(
        window=window,
        reserve=reserve,
        tokens={name: size for name, size in tokens.items() if size},
        cut=tuple(cut),
        cleared=cleared,
        service=service,
    )


def allotted(sizes: Sequence[int], room: int) -> list[int]:
    """How much of `room` each of several may have: small ones all they want, large ones the same each."""
    order = sorted(range(len(sizes)), key=lambda place: sizes[place])
    given = [0] * len(sizes)
    for done, place in enumerate(order):
        given[place] = min(sizes[place], room // (len(sizes) - done))
        room -= given[place]
    return given
