"""`in:folder` in the search, and which folder each of a person's conversations lies in."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from conversations.models import Conversation
from harness.errors import Invalid
from jobs.prepared import Prepared
from keeping.finding import one_of

from .models import Folder, FolderPlace

_FOLDERS = Prepared(
    lambda given: Folder.objects.visible_to(given.user).filter(organisation=given.organisation)
)
_FOLDER = Prepared(
    lambda given: Folder.objects.visible_to(given.user).filter(
        pk__in=FolderPlace.objects.filter(user=given.user, conversation=given.conversation).values(
            "folder"
        )
    )
)
"""Asked for what stands beside every page, and on each of a conversation."""


def folders_of(user: User, organisation: Organisation) -> list[Folder]:
    return _FOLDERS.all(user=user.pk, organisation=organisation.pk)


def narrow(user: User, organisation: Organisation, name: str) -> Q:
    """By the folder's name, its beginning or its id."""
    folders = folders_of(user, organisation)
    wanted = name.casefold()
    found = [each for each in folders if wanted in {each.name.casefold(), each.uid}]
    found = found or [each for each in folders if each.name.casefold().startswith(wanted)]
    if not found:
        raise Invalid(
            _("You have no folder “%(name)s” here.") % {"name": name},
            field="q",
            hint=one_of([each.name for each in folders]),
        )
    return in_folders(user, found)


def in_folders(user: User, folders: Collection[Folder]) -> Q:
    """What she put there."""
    places = FolderPlace.objects.filter(
        user=user, folder__in=[each.pk for each in folders], conversation=OuterRef("pk")
    )
    return Q(Exists(places))


def folder_of(user: User, conversation: Conversation) -> Folder | None:
    """Where she has it, if she may see that folder still."""
    return _FOLDER.first(user=user.pk, conversation=conversation.pk)
