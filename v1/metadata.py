"""The rules of metadata on this wire, and how an update merges into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

KEY = Annotated[str, StringConstraints(min_length=1, max_length=64)]
VALUE = Annotated[str, StringConstraints(max_length=512)]

Metadata = Annotated[dict[KEY, VALUE], Field(max_length=16)]
MetadataPatch = dict[KEY, VALUE | None]


def merged(before: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """`patch` over `before`; null takes a key away."""
    kept = {**before, **patch}
    return {key: value for key, value in kept.items() if value is not None}
