"""The marks of foreign content in one conversation's workspace, in their table.

What they mean is `tools_app.provenance`'s part. A mark is never taken back while what it is about may
still be read, but for a command that turned out to have brought nothing.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from tools_app.builtin.commandmarks import read_in_words
from tools_app.provenance import Foreign, Provenance

from .models import BackgroundCommand, ForeignMark

WORDS = 300
"""Characters of a source that are kept."""


class TableProvenance(Provenance):
    """See `tools_app.provenance.Provenance`."""

    def __init__(self, conversation_id: int) -> None:
        self._conversation_id = conversation_id

    def foreign(self, *, but: str = "") -> Foreign:
        paths: dict[str, str] = {}
        inodes: dict[int, str] = {}
        commands: list[ForeignMark] = []
        for mark in self._marks():
            if but and mark.call_uid == but:
                continue
            if mark.path:
                paths[mark.path] = mark.source
            elif mark.source:
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
        self._mark_running_commands()

    def begin_command(self, call_id: str, words: str) -> None:
        ForeignMark.objects.create(
            conversation_id=self._conversation_id,
            call_uid=call_id,
            since=timezone.now(),
            settled=False,
            source=words[:WORDS],
        )

    def end_command(self, call_id: str, words: str, *, leaves: bool = False) -> None:
        own = self._marks().filter(call_uid=call_id)
        if words:
            own.update(settled=True, source=words[:WORDS])
            self._mark_running_commands(but=call_id)
            return
        # One that is settled by now was told of something while it came to its end.
        own = own.filter(settled=False)
        if leaves and not self._waiting().filter(call_uid="").exists():
            own.update(call_uid="", source="")
        else:
            own.delete()

    def forget_waiting(self, call_id: str) -> None:
        """The command is over with everything it started, and nobody knows what it brought."""
        self._waiting().filter(call_uid=call_id).delete()

    def _mark_running_commands(self, *, but: str = "") -> None:
        """What runs, or was left running, may read from now on what has just become foreign."""
        running = BackgroundCommand.objects.running().filter(
            conversation=self._conversation_id, untrusted_by=""
        )
        waiting, running = self._waiting(), running.exclude(call_uid=but)
        if waiting.exists() or running.exists():
            words = read_in_words(self.foreign())[:WORDS]
            # Since it began: into a file that it has mapped it writes without changing its time.
            waiting.update(settled=True, source=words)
            running.update(untrusted_by=words)

    def _waiting(self) -> models.QuerySet[ForeignMark]:
        """Marks of commands within whose reach nothing is foreign yet."""
        return self._marks().filter(path="", source="")

    def _marks(self) -> models.QuerySet[ForeignMark]:
        return ForeignMark.objects.filter(conversation_id=self._conversation_id)
