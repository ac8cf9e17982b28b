"""What vectors say of rows to a question: as far as an embedder is chosen and the question has a vector.

The comparing is `nearest`'s part, the question's vector `asking`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from accounts.models import User
from memory.models import Vector
from memory.retrieval.ranking import Near

from .asking import asked_vector
from .chosen import chosen
from .nearest import Rows, near_of, nearest
from .scales import scale_of


@dataclass(frozen=True, slots=True)
class Nearby:
    cosines: Mapping[int, float] = field(default_factory=dict)
    """By the rows' primary keys."""
    near: Near | None = None
    """The same for the ranking; None: words alone decide."""
    alike: float = 1.0
    by_words_alone: bool = False


def find_near(
    table: type[Vector],
    read: Callable[[str, Collection[int]], Rows],
    user: User,
    question: str,
    *,
    of: str,
    audiences: Collection[str],
    keys: Collection[int],
) -> Nearby:
    """`table`: where vectors are, `of` its column that says whose; `read`: of a model and keys, the vectors
    that may be found; `keys`: of rows that words found."""
    embedder = chosen()
    scale = None if embedder is None else scale_of(embedder)
    if embedder is None:
        return Nearby()
    asked = None if scale is None else asked_vector(embedder, user.pk, question)
    if scale is None or asked is None:
        return Nearby(by_words_alone=True)
    model = embedder.name
    cosines = nearest(
        asked,
        scale,
        table,
        partial(read, model),
        of=of,
        model=model,
        audiences=audiences,
        keys=keys,
    )
    return Nearby(cosines, near_of(embedder, scale, cosines), scale.alike)
