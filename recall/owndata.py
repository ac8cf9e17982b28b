"""What agents remember of a person among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import Organisation, User
from owndata.parts import File, as_lines

from .listing import exported


def files(user: User) -> Iterator[File]:
    for organisation in Organisation.objects.of_member(user).order_by("pk"):
        yield File(f"memory/{organisation.uid}.jsonl", as_lines(exported(user, organisation)))
