"""Fields of refusals by the names that were sent: actions name the parts that they know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness.errors import Invalid
from harness.faults import below


@contextmanager
def written(names: Mapping[str, str], *, at: str = "") -> Iterator[None]:
    """What is refused inside is named as it was sent: by `names`, and below `at`. What stood at a place of
    another name is named as the whole of it."""
    try:
        yield
    except Invalid as problem:
        for ours, theirs in names.items():
            if problem.field == ours or problem.field.startswith((f"{ours}.", f"{ours}[")):
                field = below(at, theirs)
                raise type(problem)(problem.message, field=field, hint=problem.hint) from None
        raise problem.under(at) if at and problem.field else problem from None
