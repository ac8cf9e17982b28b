"""The first step of every action on a folder: may the actor do this? What she may not see is not found."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Forbidden, NotFound

from .models import Folder, FolderQuerySet


def visible_folder(actor: User, folder: Folder) -> Folder:
    return _held(Folder.objects.visible_to(actor), folder)


def editable_folder(actor: User, folder: Folder) -> Folder:
    """Locked. Forbidden for members who only begin conversations in it."""
    visible_folder(actor, folder)
    return _allowed(Folder.objects.editable_by(actor), folder, _("Ask its owner, or an editor."))


def own_folder(actor: User, folder: Folder) -> Folder:
    """Locked. Forbidden for members."""
    visible_folder(actor, folder)
    return _allowed(Folder.objects.owned_by(actor), folder, _("Ask its owner."))


def _held(rows: FolderQuerySet, folder: Folder) -> Folder:
    found = rows.filter(pk=folder.pk).first()
    if found is None:
        raise NotFound(_("There is no such folder."))
    return found


def _allowed(rows: FolderQuerySet, folder: Folder, hint: str) -> Folder:
    held = rows.select_for_update(of=("self",), no_key=True).filter(pk=folder.pk).first()
    if held is None:
        raise Forbidden(_("You may not change this folder."), hint=hint)
    return held
