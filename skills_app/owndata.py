"""A person's own skills, with the files of every version, among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import User
from harness.errors import Conflict
from owndata.parts import File, in_pages

from .files import files_of
from .models import SkillVersion


def files(user: User) -> Iterator[File]:
    mine = SkillVersion.objects.filter(
        skill__owner=user, skill__organisation__memberships__user=user
    )
    for version in in_pages(mine.select_related("skill"), size=50):
        folder = f"skills/{version.skill.uid}/{version.uid}"
        try:
            held = files_of(version)
        except Conflict as problem:
            yield File(f"{folder}/UNREADABLE.txt", iter([problem.message]))
            continue
        for path, data in held.items():
            yield File(f"{folder}/{path}", iter([data]))
