"""Versions of an agent's shared files: stored one after the other, and laid out as the folder that
commands see read-only.

The tables are the truth; the folder of a host follows them before a run and after each change. Who may
change what is asked before: a person, by the tools; staff, by `actions.shared_files`.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from conversations.models import Conversation
from harness.errors import Conflict, NotFound, TooLarge
from jobs.prepared import Prepared
from tools_app.confinement import shown

from .models import SharedVersion, SharedVersionQuerySet

MOST_FILES = 1_000

_SHARED = Prepared(
    lambda given: (
        SharedVersion.objects.of_agent(given.organisation, given.agent).current().defer("content")
    )
)


@dataclass(frozen=True, slots=True)
class Shelf:
    """What one agent shares in one organisation."""

    organisation_id: int
    agent_id: int

    @classmethod
    def of(cls, conversation: Conversation) -> Shelf:
        return cls(conversation.organisation_id, conversation.agent_version.agent_id)

    @property
    def versions(self) -> SharedVersionQuerySet:
        return SharedVersion.objects.of_agent(self.organisation_id, self.agent_id)

    def newest(self, path: str) -> SharedVersion | None:
        """Also where it says that the file is gone."""
        found: SharedVersion | None = self.versions.filter(path=path).order_by("-number").first()
        return found

    def current(self, path: str) -> SharedVersion | None:
        """None: nothing is shared there, or not any more."""
        found = self.newest(path)
        return found if found is not None and not found.removed else None

    def version(self, path: str, number: int) -> SharedVersion:
        """One that has content."""
        row = self.versions.filter(path=path, number=number, removed=False).first()
        if row is None:
            raise NotFound(
                _("“%(path)s” has no version %(number)d with content.")
                % {"path": shown(path), "number": number},
                hint=_("Call shared_file_versions for those there are."),
            )
        return row

    def store(
        self,
        path: str,
        data: bytes | None,
        expected: str,
        *,
        owner_id: int,
        conversation: Conversation | None = None,
        restored_from: int | None = None,
    ) -> SharedVersion:
        """The new version; without `data` one that takes the file away. `expected` is the SHA-256 of
        the file as the caller knows it, empty for none. Raises Conflict, storing nothing, unless it
        still is so."""
        try:
            with transaction.atomic():
                newest = self.newest(path)
                current = self.current(path)
                if expected.strip().lower() != (current.sha256 if current else ""):
                    raise stale(path, current)
                if current is None:
                    if data is None:
                        raise unknown(path)
                    self._require_place(path)
                row = SharedVersion.objects.create(
                    organisation_id=self.organisation_id,
                    agent_id=self.agent_id,
                    path=path,
                    number=newest.number + 1 if newest else 1,
                    sha256=sha256_of(data) if data is not None else "",
                    content=data or b"",
                    removed=data is None,
                    restored_from=restored_from,
                    conversation=conversation,
                    owner_id=owner_id,
                )
        except IntegrityError:  # somebody else was quicker
            raise stale(path, self.current(path)) from None
        transaction.on_commit(self.lay_out)
        return row

    def _require_place(self, path: str) -> None:
        """A name is a file or a folder, not both; and there is an end to their number."""
        held = self.versions.current()
        above = ["/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)]
        if held.filter(Q(path__in=above) | Q(path__startswith=f"{path}/")).exists():
            raise Conflict(
                _("“%(path)s” would be a file and a folder at once.") % {"path": shown(path)},
                hint=_("Choose another path."),
            )
        if held.count() >= MOST_FILES:
            raise TooLarge(
                _("An agent shares at most %(most)d files.") % {"most": MOST_FILES},
                field="path",
                hint=_("Put several into one."),
            )

    def lay_out(self) -> Path | None:
        """The folder with the current files, brought up to date; None while there was never one."""
        name = f"{self.organisation_id}-{self.agent_id}"
        home = Path(settings.AGENTSITE_DATA_DIR) / "shared" / name
        if not home.exists() and not self._shared():
            return None
        folder = home / "files"
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with (home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # given back by the system when its holder dies
            rows = (
                self._shared()
            )  # only now: what was read before is what others have laid out since
            wanted = "\n".join(f"{row.path} {row.sha256}" for row in rows)
            state = home / "state"
            if state.exists() and state.read_text() == wanted:
                return folder
            _clear(folder, {row.path for row in rows})
            for row in rows:
                _place(home, folder / row.path, row)
            state.write_text(wanted)
        return folder

    def _shared(self) -> list[SharedVersion]:
        return _SHARED.all(organisation=self.organisation_id, agent=self.agent_id)


def _place(home: Path, target: Path, row: SharedVersion) -> None:
    """At once: who reads it meanwhile sees the old file or the new one."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = home / "fresh"
    fresh.write_bytes(bytes(SharedVersion.objects.only("content").get(pk=row.pk).content))
    fresh.chmod(0o644)
    fresh.replace(target)


def _clear(folder: Path, wanted: set[str]) -> None:
    """Take away what is shared no more, and folders that hold nothing else."""
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not any(each.startswith(f"{name}/") for each in wanted):
            shutil.rmtree(path)
        elif not path.is_dir() and name not in wanted:
            path.unlink()


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unknown(path: str) -> NotFound:
    return NotFound(
        _("Nothing is shared as “%(path)s”.") % {"path": shown(path)},
        hint=_("Call shared_files for what there is."),
    )


def stale(path: str, current: SharedVersion | None) -> Conflict:
    """What is said to who expected something else there."""
    now = f"version {current.number}, sha256 {current.sha256}" if current else _("no such file")
    return Conflict(
        _("“%(path)s” is not what you expected; it is: %(now)s. Nothing was changed.")
        % {"path": shown(path), "now": now},
        hint=_("Compare again, bring the changes together in the draft, and give the new SHA-256."),
    )
