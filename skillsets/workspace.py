"""Skills in folders of a conversation's workspace, where other clients keep a project's, and which of them
somebody trusted as they are.

Anybody may have written them: an upload, a repository, the agent itself. So nothing of one is told to an
agent before a person has looked at it, and of one that changed since nothing either. Of a trusted one only
the text and the files count: tools, policy and requirements that it may name are the library's affair, which
has reviews.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext as _

from conversations.models import Conversation
from harness.errors import AgentError, Invalid, NotFound, TooLarge
from jobs.prepared import Prepared
from skills_app.folder import SkillFolder, digest_of_files, placed, read_folder
from skills_app.names import SKILL
from tools_app.confinement import DEPTH_LIMIT, is_reserved, is_text, shown
from tools_app.workspace import Workspace

from .models import TrustedSkill

ROOTS = (".agents/skills", ".claude/skills")
MOST = 50
"""Folders of each root that are looked at, in the order of their names."""
MOST_TRUSTED = 20
"""That one conversation has."""
FILES = 100
BYTES = 512 * 1024
"""Of one, all files together: a person looks through them, and each run reads them again."""

_TRUSTED = Prepared(
    lambda given: TrustedSkill.objects.filter(conversation=given.conversation).order_by("id")
)


@dataclass(frozen=True, slots=True)
class Found:
    place: str
    folder: SkillFolder | None
    """None: it cannot be one."""
    problem: str
    """Why, in words; empty: it can."""

    @property
    def name(self) -> str:
        return self.folder.name if self.folder else shown(self.place.rpartition("/")[2])

    @property
    def digest(self) -> str:
        return self.folder.digest if self.folder else ""


def look(conversation: Conversation, root: Path) -> list[Found]:
    """All that are there now, for a person."""
    if not _has_files(conversation, root):
        return []
    workspace = Workspace(root)
    return [_found(workspace, place) for place in _places(workspace)]


def look_at(conversation: Conversation, root: Path, place: str) -> Found:
    """One of these. Raises NotFound."""
    if _has_files(conversation, root) and _is_place(place):
        workspace = Workspace(root)
        if _is_skill(workspace, place):
            return _found(workspace, place)
    raise NotFound(_("There is no such skill in the workspace."))


def standing(
    conversation: Conversation, root: Path, taken: Collection[str] = ()
) -> list[TrustedSkill]:
    """Those whose files are still what somebody trusted, without those whose name is `taken` by a skill that
    the conversation has. It costs one query where nothing was trusted."""
    rows = _TRUSTED.all(conversation=conversation.pk)
    if not rows or not _has_files(conversation, root):
        return []
    workspace = Workspace(root)
    return [each for each in rows if each.name not in taken and stands(each, workspace)]


def stands(trusted: TrustedSkill, workspace: Workspace) -> bool:
    """Whether each byte is as it was. One that cannot be read any more does not stand either.

    Nothing of it is parsed: this is asked at each key that somebody presses, and the same bytes say the same.
    """
    try:
        return digest_of_files(placed(_files(workspace, trusted.place))) == trusted.digest
    except AgentError:
        return False


def read(workspace: Workspace, place: str) -> SkillFolder:
    """The skill in this folder. Raises Invalid for links and whatever else no skill may hold, TooLarge."""
    return read_folder(_files(workspace, place), called=place.rpartition("/")[2])


def _files(workspace: Workspace, place: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left, names = BYTES, 0
    for entry in workspace.walk(place, skip=None):
        names += 1
        if names > 4 * FILES:
            raise _too_large()
        # Commands reach what no page shows, and could be told to by what was trusted.
        is_named = is_text(entry.name) and not is_reserved(entry.name)
        if not is_named or entry.path.count("/") >= DEPTH_LIMIT - 1:
            raise Invalid(
                _("No page shows “%(path)s”, or what is in it.") % {"path": entry.display_path},
                field="files",
                hint=_("Remove it, or give it another name or place."),
            )
        if entry.kind == "folder":
            continue
        if entry.kind != "file":
            raise Invalid(
                _("“%(path)s” is no ordinary file.") % {"path": entry.display_path},
                field="files",
                hint=_("A skill holds no links; put the file itself there."),
            )
        if len(files) == FILES or entry.size > left:
            raise _too_large()
        data = workspace.read_bytes(entry.path, left)
        left -= len(data)
        files[entry.path.removeprefix(f"{place}/")] = data
    return files


def _has_files(conversation: Conversation, root: Path) -> bool:
    return not conversation.environment.has_workers and root.is_dir()


def _is_place(place: str) -> bool:
    root, _slash, name = place.rpartition("/")
    return root in ROOTS and name not in {"", ".", ".."}


def _places(workspace: Workspace) -> Iterator[str]:
    for root in ROOTS:
        try:
            folders = [each.path for each in workspace.walk(root, depth=1) if each.kind == "folder"]
        except AgentError:  # there is none, or something else has the name
            continue
        yield from (place for place in folders[:MOST] if _is_skill(workspace, place))


def _is_skill(workspace: Workspace, place: str) -> bool:
    try:
        return workspace.stat(f"{place}/{SKILL}").kind != "folder"
    except AgentError:
        return False


def _found(workspace: Workspace, place: str) -> Found:
    try:
        if len(place) > TrustedSkill.PLACE_LIMIT:
            raise Invalid(_("The name of its folder is too long."))
        return Found(place, read(workspace, place), "")
    except AgentError as problem:
        return Found(place, None, problem.words)


def _too_large() -> TooLarge:
    return TooLarge(
        _("A skill of a workspace has at most %(files)d files with %(bytes)d bytes together.")
        % {"files": FILES, "bytes": BYTES},
        field="files",
        hint=_("Put a larger one into the library."),
    )
