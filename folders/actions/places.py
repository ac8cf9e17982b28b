"""Conversations begin in a folder, are moved into one and out of it: each person's own order.

Instructions and files are those of the moment in which a conversation begins. Moving changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent, Environment
from conversations.actions.beginning import begin_conversation
from conversations.actions.choosing import Wish
from conversations.actions.files import add_files
from conversations.actions.stored_files import UPLOADS
from conversations.log import append
from conversations.models import Conversation
from folders.access import visible_folder
from folders.actions.files import uploads_of
from folders.events import FolderEntered
from folders.models import Folder, FolderPlace
from harness.errors import Invalid, NotFound
from harness.history import Entry


def begin_in_folder(
    *,
    actor: User,
    folder: Folder,
    agent: Agent,
    environment: Environment,
    features: Mapping[str, bool],
    vault_uids: Sequence[str] = (),
    text: str = "",
    files: Sequence[str] = (),
    wish: Wish | None = None,
) -> Conversation:
    """A conversation of the actor's that is told the folder's instructions and gets a copy of its files, if
    its workspace is on this server. Raises NotFound, and as `begin_conversation` and `add_files`."""
    held = visible_folder(actor, folder)

    def enter(conversation: Conversation) -> None:
        copied: tuple[str, ...] = ()
        uploads = [] if environment.has_workers else uploads_of(held)
        if uploads:
            entries = add_files(
                actor=actor, conversation=conversation, uploads=uploads, folder=UPLOADS
            )
            copied = tuple(entry.path for entry in entries)
        told = FolderEntered(
            folder_id=held.uid, name=held.name, instructions=held.instructions, files=copied
        )
        append(conversation.pk, [Entry.of(told)], actor=actor)
        FolderPlace.objects.create(user=actor, conversation=conversation, folder=held)

    return begin_conversation(
        actor=actor,
        organisation=held.organisation,
        agent=agent,
        environment=environment,
        features=features,
        vault_uids=vault_uids,
        text=text,
        files=files,
        wish=wish,
        first=enter,
    )


def move_conversation(*, actor: User, conversation: Conversation, folder: Folder | None) -> None:
    """Into a folder of its organisation, or out of any. What its agent was told when it began stays.

    Raises NotFound, and Invalid for a folder of another organisation.
    """
    with transaction.atomic():
        if not Conversation.objects.visible_to(actor).filter(pk=conversation.pk).exists():
            raise NotFound(_("There is no such conversation."))
        if folder is None:
            FolderPlace.objects.filter(user=actor, conversation=conversation).delete()
            return
        held = visible_folder(actor, folder)
        if held.organisation_id != conversation.organisation_id:
            raise Invalid(
                _("The folder is in another organisation."),
                field="folder",
                hint=_("Choose one of the conversation's own."),
            )
        FolderPlace.objects.update_or_create(
            user=actor, conversation=conversation, defaults={"folder": held}
        )


def move_by_uid(actor: User, conversation: Conversation, value: str) -> None:
    """Empty: out of any folder."""
    folder = None
    if value:
        folder = Folder.objects.visible_to(actor).filter(uid=value).first()
        if folder is None:
            raise NotFound(_("There is no such folder."))
    move_conversation(actor=actor, conversation=conversation, folder=folder)
