"""What of a person's own each app gives her to take along, as files made while they are sent.

An app that keeps something of a person registers it (`give_with`, in its `ready()`); this package knows none
of them. A part gives what is hers alone or what she may read as its owner, and never a secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet
from django.utils.functional import Promise

from accounts.models import User

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class File:
    path: str
    """In the archive: made of public ids, words of ours, and paths that were checked when they were
    stored, so that no unpacker minds it."""
    pieces: Iterator[str | bytes]
    """What it holds, made as it is asked for, never all of it at once."""


Files = Callable[[User], Iterator[File]]


@dataclass(frozen=True, slots=True)
class Part:
    words: str | Promise
    """What it is, for people."""
    files: Files


_parts: dict[str, Part] = {}


def give_with(app: str, words: str | Promise, files: Files) -> None:
    """Have every archive hold these from now on; one for each name."""
    _parts[app] = Part(words, files)


def parts() -> list[Part]:
    return list(_parts.values())


def in_pages(rows: QuerySet[Row], size: int = 500) -> Iterator[Row]:
    """All of them in the order of their keys, none held for longer than its page is read: whoever takes long
    to fetch an archive keeps no cursor open."""
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk")[:size]):
        yield from page
        last = page[-1].pk


def as_json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def as_lines(rows: Iterable[Any]) -> Iterator[str | bytes]:
    """One JSON value a line."""
    return (f"{as_json(row)}\n" for row in rows)
