"""The change of one file as a unified diff for people, in bounded time and size.

Past a size, and where matching its lines would take too long (`reading.matching`), the changed middle is
shown as one block removed and one block added, which is also a correct diff.
"""

from __future__ import annotations

from itertools import takewhile

from harness.events import DiffDisplay
from reading.matching import STEPS, matched

CONTEXT = 3
"""Unchanged lines around a change, as diffs usually have."""
MATCHED_LINES = 2_000
"""Changed lines on either side up to which single lines are matched."""
SHOWN_CHARACTERS = 60_000
"""Longest diff that is kept; it is stored with the result."""


def diff_of(
    path: str,
    before: str,
    after: str,
    *,
    created: bool = False,
    most: int = MATCHED_LINES,
    steps: int = STEPS,
) -> DiffDisplay:
    """What `after` changes of `before`. The counts are those of the whole diff, also when cut. More
    changed lines than `most`, or such as take more than `steps`, are one block."""
    old, new = _lines(before), _lines(after)
    lines = _matched(old, new, steps) if _matchable(old, new, most) else _as_one_block(old, new)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return DiffDisplay(
        path=path, diff=_bounded(lines), added=added, removed=removed, created=created
    )


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _common(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines agree at the start and, of the others, at the end."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    rest = zip(reversed(old[start:]), reversed(new[start:]), strict=False)
    return start, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))


def _matchable(old: list[str], new: list[str], most: int) -> bool:
    start, end = _common(old, new)
    return max(len(old), len(new)) - start - end <= most


def _matched(old: list[str], new: list[str], steps: int) -> list[str]:
    start, end = _common(old, new)
    first = max(0, start - CONTEXT)
    # Only the middle is given to the matcher; its line numbers are then moved to where it stands.
    old_middle = old[first : len(old) - max(0, end - CONTEXT)]
    new_middle = new[first : len(new) - max(0, end - CONTEXT)]
    matcher = matched(old_middle, new_middle, steps=steps)
    if matcher is None:
        return _as_one_block(old, new)
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(CONTEXT):
        lines.append(
            _hunk_header(
                first + group[0][1],
                group[-1][2] - group[0][1],
                first + group[0][3],
                group[-1][4] - group[0][3],
            )
        )
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += [f" {line}" for line in old_middle[i:j]]
                continue
            lines += [f"-{line}" for line in old_middle[i:j]]
            lines += [f"+{line}" for line in new_middle[k:m]]
    return lines


def _as_one_block(old: list[str], new: list[str]) -> list[str]:
    start, end = _common(old, new)
    first, last = max(0, start - CONTEXT), min(end, CONTEXT)
    return [
        _hunk_header(first, len(old) - end + last - first, first, len(new) - end + last - first),
        *(f" {line}" for line in old[first:start]),
        *(f"-{line}" for line in old[start : len(old) - end]),
        *(f"+{line}" for line in new[start : len(new) - end]),
        *(f" {line}" for line in old[len(old) - end : len(old) - end + last]),
    ]


def _hunk_header(old_start: int, old_count: int, new_start: int, new_count: int) -> str:
    return f"@@ -{_range(old_start, old_count)} +{_range(new_start, new_count)} @@\n"


def _range(start: int, count: int) -> str:
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _bounded(lines: list[str]) -> str:
    kept: list[str] = []
    length = 0
    for index, line in enumerate(lines):
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        length += len(whole)
        if length > SHOWN_CHARACTERS:
            kept.append(f"… {len(lines) - index} more lines of the diff are not shown\n")
            break
        kept.append(whole)
    return "".join(kept)
