"""Which of what a conversation recalled is told, where not all of it has room: what the newest message
recalled in any case, then what was recalled last.

Pure. What is dropped goes some at a time, so that the prompt's beginning rarely changes; how a memory or a
passage reads is `kitpart`'s and `passages`' part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LEFT = 0.7
"""The share of the room that is filled once something was dropped."""


def newest(
    recalls: Sequence[Sequence[str]], lines: Mapping[str, str], room: int
) -> tuple[list[str], int]:
    """The ids that are told, in the order in which they were recalled, and how many are not. `recalls` has
    those of each message, the oldest first, the best first; what has no line is gone."""
    told: dict[str, int] = {}
    for recall in recalls:
        here = dict.fromkeys(uid for uid in recall if uid in lines)
        for uid in here:
            told.setdefault(uid, len(lines[uid]) + 1)
        taken = sum(told.values())
        if taken <= room:
            continue
        for uid in [uid for uid in told if uid not in here]:
            if taken <= room * LEFT:
                break
            taken -= told.pop(uid)
        for uid in reversed(here):
            if taken <= room:
                break
            taken -= told.pop(uid)
    every = {uid for recall in recalls for uid in recall if uid in lines}
    return list(told), len(every) - len(told)
