"""What the log says of files that are kept and brought back. When that is done is `checkpoints`' part."""

from __future__ import annotations

from typing import ClassVar, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from harness.events import AppEvent
from tools_app.confinement import shown

NOT_KEPT = {
    "too_large": lambda: _("they are too large"),
    "too_many": lambda: _("they are too many"),
    "too_deep": lambda: _("their folders are too deep"),
    "unreadable": lambda: _("one of them cannot be read"),
    "busy": lambda: _("they were being changed"),
    "off": lambda: _("this server keeps none"),
    "dropped": lambda: _("newer ones took their room"),
    "forked": lambda: _("those of earlier places were not copied"),
    "elsewhere": lambda: _("they are on a worker's machine"),
}


class FilesNotKept(AppEvent):
    """Files were not kept before a turn changes them: going back to before it leaves them as they are.
    Told once, until they are kept again."""

    plain: ClassVar[bool] = True

    type: Literal["x.files_not_kept"] = "x.files_not_kept"
    reason: str
    files: int = 0
    size: int = 0
    """Bytes, as far as they were counted."""

    def remark(self) -> str:
        return _(
            "Files are not kept from here on (%(why)s): going back leaves them as they are."
        ) % {"why": why_not_kept(self.reason)}


class FilesReverted(AppEvent):
    """Somebody has files brought back to how `checkpoint` has them; `FilesRestored` says what came of
    it. The dialogue stays where it is."""

    type: Literal["x.files_reverted"] = "x.files_reverted"
    checkpoint: str
    paths: tuple[str, ...] = ()
    """Empty: all."""

    def remark(self) -> str:
        if not self.paths:
            return _("All files were put back to how they were.")
        first, more = shown(self.paths[0]), len(self.paths) - 1
        if not more:
            return _("%(path)s was put back to how it was.") % {"path": first}
        return ngettext(
            "%(path)s and one more file were put back to how they were.",
            "%(path)s and %(count)d more files were put back to how they were.",
            more,
        ) % {"path": first, "count": more}


class FilesRestored(AppEvent):
    """Files were brought back, or why they were not; `kept` is the checkpoint of how they were before."""

    between_turns: ClassVar[bool] = True

    type: Literal["x.files_restored"] = "x.files_restored"
    checkpoint: str
    kept: str = ""
    written: int = 0
    removed: int = 0
    problem: str = ""

    def remark(self) -> str:
        if self.problem:
            return _("The files stay as they are: %(why)s.") % {"why": why_not_kept(self.problem)}
        if not self.written and not self.removed:
            return ""
        return _("Files brought back: %(written)d written, %(removed)d removed.") % {
            "written": self.written,
            "removed": self.removed,
        }


class Forked(AppEvent):
    """What stands before was copied from another conversation, and these files with it."""

    between_turns: ClassVar[bool] = True
    plain: ClassVar[bool] = True

    type: Literal["x.forked"] = "x.forked"
    files: int = 0
    problem: str = ""
    """Why no files came along; empty: all that there were did."""

    def remark(self) -> str:
        words = _("Forked here: what stands above was copied.")
        if self.problem:
            files = _("Files did not come along (%(why)s).") % {"why": why_not_kept(self.problem)}
        else:
            files = ngettext(
                "%(count)d file came along.", "%(count)d files came along.", self.files
            ) % {"count": self.files}
        return f"{words} {files}"


KINDS = (FilesNotKept, FilesReverted, FilesRestored, Forked)


def why_not_kept(reason: str) -> str:
    """The reason in words, within a sentence."""
    words = NOT_KEPT.get(reason)
    return words() if words else _("they could not be brought back")
