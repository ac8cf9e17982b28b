"""What a conversation was told and given by the folder it began in. It stays so: the log explains itself."""

from __future__ import annotations

from django.utils.translation import gettext as _

from harness.events import AppEvent

TYPE = "x.folder_entered"


class FolderEntered(AppEvent):
    type: str = TYPE
    folder_id: str
    name: str
    instructions: str = ""
    """As they were then, and as every prompt of this conversation has them."""
    files: tuple[str, ...] = ()
    """Paths of the copies in the workspace."""

    def remark(self) -> str:
        told = [_("Begun in the folder “%(name)s”.") % {"name": self.name}]
        if self.instructions:
            told.append(
                _("Its instructions of then hold here: %(text)s") % {"text": self.shortly()}
            )
        if self.files:
            told.append(_("Its files were copied: %(names)s.") % {"names": ", ".join(self.files)})
        return " ".join(told)

    def shortly(self) -> str:
        text = " ".join(self.instructions.split())
        return text if len(text) <= 200 else f"{text[:200]}…"
