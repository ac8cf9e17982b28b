"""The shared files of an agent as one of its conversations changes them: staged, compared, promoted,
restored. Versions, and the folder that commands see, are `sharedversions`'.
"""

from __future__ import annotations

from pathlib import Path

from django.utils.translation import gettext as _

from conversations.models import Conversation
from conversations.outcomes import is_reached
from harness.errors import Conflict, Invalid, NotFound, ToolError
from tools_app.confinement import parse_path, shown
from tools_app.diffs import diff_of
from tools_app.touches import require_as_told
from tools_app.workspace import Workspace

from .models import SharedDraft, SharedVersion
from .versions import Shelf, sha256_of, stale, unknown

DRAFTS = "shared-drafts"
"""The folder of the workspace in which drafts lie."""
FILE_LIMIT = 1024 * 1024
"""Bytes of one shared file."""
PREVIEW_LINES = 12


class TableSharedFiles:
    """See `tools_app.builtin.shared.SharedAccess`, for one conversation."""

    def __init__(self, conversation: Conversation, workspace: Path) -> None:
        self._conversation = conversation
        self._shelf = Shelf.of(conversation)
        self._workspace = Workspace(workspace)

    # --- looking ----------------------------------------------------------------------------------

    def overview(self) -> tuple[str, list[str]]:
        current = {row.path: row for row in self._shelf.versions.current()}
        lines = [
            f"{row.path}  version {row.number}  {len(row.content):,} bytes  sha256 {row.sha256}"
            for row in current.values()
        ]
        drafts = SharedDraft.objects.filter(conversation=self._conversation).order_by("path")
        lines += [f"draft of {draft.path}: {self._state(draft, current)}" for draft in drafts]
        return "\n".join(lines) or "Nothing is shared yet.", [draft.path for draft in drafts]

    def compare(self, path: str) -> str:
        path = _clean(path)
        draft, current = self._draft(path), self._shelf.current(path)
        data = b"" if draft.removal else self._read_draft(path)
        report = [
            f"shared: {f'version {current.number}, sha256 {current.sha256}' if current else 'no such file'}",
            (
                "draft:  the file is taken away (draft_sha256 is empty)"
                if draft.removal
                else f"draft:  sha256 {sha256_of(data)}"
            )
            + f", staged from {f'version {draft.base}' if draft.base else 'nothing'}",
        ]
        if (current.number if current else 0) != draft.base:
            report.append("The shared file has changed since this draft was staged.")
        before = bytes(current.content) if current else b""
        found = diff_of(path, "\n".join(_lines(before)), "\n".join(_lines(data)))
        differing = found.added + found.removed
        report.append(f"{differing} lines differ" + (":" if differing else "."))
        changed = [line for line in found.diff.split("\n") if line[:1] in ("+", "-")]
        report += changed[:PREVIEW_LINES]
        if differing > PREVIEW_LINES:
            report.append(f"[… {differing - PREVIEW_LINES} more …]")
        return "\n".join(report)

    def draft_of(self, path: str) -> str | None:
        path = _clean(path)
        return None if self._draft(path).removal else f"{DRAFTS}/{path}"

    def versions(self, path: str) -> str:
        rows = self._shelf.versions.filter(path=_clean(path)).order_by("-number")
        lines = [
            f"version {row.number}  {row.created_at:%Y-%m-%d %H:%M}  "
            + ("shared no more" if row.removed else f"sha256 {row.sha256}")
            + (f"  restored from version {row.restored_from}" if row.restored_from else "")
            for row in rows[:100]
        ]
        if not lines:
            raise unknown(path)
        return "\n".join(lines)

    # --- changing ---------------------------------------------------------------------------------

    def stage(self, path: str) -> str:
        path = _clean(path)
        current = self._shelf.current(path)
        if current is not None:
            self._workspace.write_bytes(f"{DRAFTS}/{path}", bytes(current.content))
        SharedDraft.objects.update_or_create(
            conversation=self._conversation,
            path=path,
            defaults={"base": current.number if current else 0, "removal": False},
        )
        if current is None:
            return f"Nothing is shared as {path} yet. Write the draft to {DRAFTS}/{path}."
        return f"Staged version {current.number} as {DRAFTS}/{path} (sha256 {current.sha256})."

    def stage_removal(self, path: str) -> str:
        path = _clean(path)
        current = self._shelf.current(path)
        if current is None:
            raise unknown(path)
        SharedDraft.objects.update_or_create(
            conversation=self._conversation,
            path=path,
            defaults={"base": current.number, "removal": True},
        )
        return f"Staged that version {current.number} of {path} is taken away (sha256 {current.sha256})."

    @property
    def bound(self) -> tuple[str, ...]:
        """What a yes to a change holds for: whose files these are is named by no argument, which name all the
        rest."""
        agent = self._conversation.agent_version.agent
        return self._conversation.organisation.uid, agent.uid

    def promote(self, path: str, expected_sha256: str, draft_sha256: str, call: str = "") -> str:
        path = _clean(path)
        require_as_told(self._conversation.pk, call, self.bound)
        draft = self._draft(path)
        self._require_pass()
        # Read once: what is compared is what is stored.
        row = self._store(path, self._named_draft(draft, draft_sha256), expected_sha256)
        if row.removed:
            draft.delete()
            return f"{path} is shared no more; version {row.number} says so."
        SharedDraft.objects.filter(pk=draft.pk).update(base=row.number)
        return f"{path} is version {row.number} now (sha256 {row.sha256})."

    def change_of(
        self, path: str, *, version: int | None, expected_sha256: str, draft_sha256: str
    ) -> tuple[str, bytes | None, bytes | None]:
        """The path, what is shared there now and what would be: of this version, or else of the draft; None:
        no such file. Raises where either is not what the hashes say."""
        path = _clean(path)
        current = self._shelf.current(path)
        if _bare(expected_sha256) != (current.sha256 if current else ""):
            raise stale(path, current)
        before = bytes(current.content) if current else None
        if version is not None:
            return path, before, bytes(self._shelf.version(path, version).content)
        return path, before, self._named_draft(self._draft(path), draft_sha256)

    def _named_draft(self, draft: SharedDraft, named: str) -> bytes | None:
        """None: it takes the file away. Raises Conflict unless it is the draft that is named by this hash,
        which is what a person was shown."""
        data = None if draft.removal else self._read_draft(draft.path)
        is_now = "" if data is None else sha256_of(data)
        if _bare(named) != is_now:
            raise Conflict(
                _("The draft of “%(path)s” is another one than the call names; it is: %(now)s.")
                % {
                    "path": shown(draft.path),
                    "now": f"sha256 {is_now}" if is_now else _("that the file is taken away"),
                },
                hint=_("Compare again, then give the draft's SHA-256 as draft_sha256."),
            )
        return data

    def _require_pass(self) -> None:
        """What was made where an outcome was asked for is shared once that is reached."""
        if not is_reached(self._conversation):
            raise ToolError(
                "The outcome that was asked for here is not reached.",
                hint="Promote it once the outcome is judged to be satisfied.",
            )

    def restore(self, path: str, version: int, expected_sha256: str, call: str = "") -> str:
        path = _clean(path)
        require_as_told(self._conversation.pk, call, self.bound)
        old = self._shelf.version(path, version)
        row = self._store(path, bytes(old.content), expected_sha256, restored_from=version)
        return f"{path} is version {row.number} now, with the content of version {version}."

    def _store(
        self, path: str, data: bytes | None, expected: str, *, restored_from: int | None = None
    ) -> SharedVersion:
        return self._shelf.store(
            path,
            data,
            expected,
            owner_id=self._conversation.owner_id,
            conversation=self._conversation,
            restored_from=restored_from,
        )

    # --- rows and files ---------------------------------------------------------------------------

    def _draft(self, path: str) -> SharedDraft:
        draft = SharedDraft.objects.filter(conversation=self._conversation, path=path).first()
        if draft is None:
            raise NotFound(
                _("There is no draft of “%(path)s”.") % {"path": shown(path)},
                hint=_("Stage it first with stage_shared_file."),
            )
        return draft

    def _read_draft(self, path: str) -> bytes:
        return self._workspace.read_bytes(f"{DRAFTS}/{path}", FILE_LIMIT)

    def _state(self, draft: SharedDraft, current: dict[str, SharedVersion]) -> str:
        shared = current.get(draft.path)
        if draft.removal and shared is not None and shared.number == draft.base:
            return "a removal, ready to be promoted"
        try:
            data = self._read_draft(draft.path)
        except (NotFound, Invalid):
            return "the draft is missing; stage it again"
        if shared is not None and shared.sha256 == sha256_of(data):
            return "in sync with the shared file"
        if (shared.number if shared else 0) != draft.base:
            return "stale: the shared file has changed since; compare before you promote"
        return "ready to be compared and promoted"


def _clean(path: str) -> str:
    parts = parse_path(path)
    if not parts:
        raise Invalid(_("The path names no file."), field="path", hint=_("Name a file."))
    return "/".join(parts)


def _bare(sha256: str) -> str:
    return sha256.strip().lower()


def _lines(data: bytes) -> list[str]:
    return data.decode(errors="replace").splitlines()
