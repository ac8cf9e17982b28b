"""The marks of foreign content in one conversation's workspace, in their table.

What they mean is `tools_app.provenance`'s part. A mark is never taken back while what it is about may
still be read, but for a command that turned out to have brought nothing.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from tools_app.provenance import Foreign, Provenance

from .models import ForeignMark

WORDS = 300
"""Characters of a source that are kept."""


class TableProvenance(Provenance):
    """See `tools_app.provenance.Provenance`."""

    def __init__(self, conversation_id: int) -> None:
        self._conversation_id = conversation_id

    def foreign(self) -> Foreign:
        paths: dict[str, str] = {}
        inodes: dict[int, str] = {}
        commands: list[ForeignMark] = []
        for mark in self._marks():
            if mark.path:
                paths[mark.path] = mark.source
            else:
                commands.append(mark)
            if mark.inode:
                inodes[mark.inode] = mark.source
        if not commands:
            return Foreign(paths, inodes)
        first = min(commands, key=lambda mark: mark.since or timezone.now())
        return Foreign(
            paths,
            inodes,
            since=first.since.timestamp() if first.since else None,
            settled=any(mark.settled for mark in commands),
            command=first.source,
        )

    def mark_file(self, path: str, source: str, inode: int = 0) -> None:
        known = self._marks().filter(path=path)
        known.filter(inode=0).delete()
        if not known.filter(inode=inode).exists():
            ForeignMark.objects.create(
                conversation_id=self._conversation_id,
                path=path,
                inode=inode,
                source=source[:WORDS],
            )

    def begin_command(self, call_id: str, words: str) -> None:
        ForeignMark.objects.create(
            conversation_id=self._conversation_id,
            call_uid=call_id,
            since=timezone.now(),
            settled=False,
            source=words[:WORDS],
        )

    def end_command(self, call_id: str, words: str) -> None:
        marks = self._marks().filter(call_uid=call_id)
        if words:
            marks.update(settled=True, source=words[:WORDS])
        else:
            marks.delete()

    def _marks(self) -> models.QuerySet[ForeignMark]:
        return ForeignMark.objects.filter(conversation_id=self._conversation_id)
