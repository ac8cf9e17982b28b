"""Files that programs upload once, to put them into conversations (`programs.actions.resources`).

The bytes lie where `storedbytes` says. Those whose row goes, or never came, are removed by `removals`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, User
from accounts.persons import sharing_place, whose_place
from conversations import removals
from conversations.models import Conversation, FileResource, ForeignMark, StoredFile
from conversations.models.stored_file import new_file_id
from conversations.storedbytes import path_of
from harness.errors import Invalid, LimitReached, NotFound, TooLarge

CHUNK = 1024 * 1024
UPLOADS = "uploads"
"""Folder of the workspace that copies go to unless the program says otherwise."""
NAME_LIMIT = 255
AT_A_TIME = 200
"""Expired files that one sweep removes; the next one goes on."""
_TYPE = re.compile(r"[\w.+-]{1,63}/[\w.+-]{1,63}", re.ASCII)


def store_file(
    *,
    actor: User,
    organisation: Organisation,
    filename: str,
    mime_type: str,
    chunks: Iterable[bytes],
    expires_in: timedelta | None = None,
    source: str = "",
    noted: str | None = None,
) -> StoredFile:
    """Keep a file, for so long if it is said. `source`: see the model. Within a transaction it is `noted`
    before, by an id of its own in `removals.unless_begun`.

    Raises NotFound, Invalid for its name, TooLarge past AGENTSITE_FILE_BYTES, and LimitReached when the
    files of the actor, counted with all who share her place, would exceed AGENTSITE_FILES_BYTES."""
    if not Organisation.objects.visible_to(actor).filter(pk=organisation.pk).exists():
        raise NotFound(_("There is no such organisation."))
    filename = _clean_name(filename)
    place = whose_place(actor)
    held = _held_in(place)
    uid = noted or new_file_id()
    path = path_of(uid)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with removals.unless_begun(uid) if noted is None else nullcontext():
        with path.open("xb") as out:
            path.chmod(0o600)
            for chunk in chunks:
                size += len(chunk)
                _check_size(size, held)
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        with transaction.atomic():
            # Of uploads at the same time each finds the ones before it counted; nobody closes it meanwhile.
            rows = User.objects.select_for_update(no_key=True).filter(pk__in={place, actor.pk})
            list(rows.order_by("pk"))
            _require_still_there(actor, organisation)
            _check_size(size, _held_in(place))
            removals.begun(uid)
            return StoredFile.objects.create(
                uid=uid,
                organisation=organisation,
                owner=actor,
                filename=filename,
                mime_type=mime_type if _TYPE.fullmatch(mime_type) else "application/octet-stream",
                size=size,
                sha256=digest.hexdigest(),
                source=source[:300],
                expires_at=timezone.now() + expires_in if expires_in is not None else None,
            )


def open_file(*, actor: User, file: StoredFile) -> BinaryIO:
    """The bytes; NotFound for somebody else's, and when they are gone."""
    _require_own(actor, file)
    try:
        return path_of(file.uid).open("rb")
    except FileNotFoundError:
        raise NotFound(_("There is no such file.")) from None


def delete_file(*, actor: User, file: StoredFile) -> None:
    """Forget an upload. Copies in conversations stay."""
    with transaction.atomic():
        _require_own(actor, file)
        remove_files([file])


def expire_files_of(*, account: User, organisation: Organisation) -> None:
    """What a service account uploaded that is being removed: nobody else could open or delete it."""
    files = StoredFile.objects.kept().filter(owner=account, organisation=organisation)
    files.update(expires_at=timezone.now())


def remove_expired() -> None:
    """Forget uploads whose time is over; copies in conversations stay."""
    remove_files(StoredFile.objects.filter(expires_at__lte=timezone.now())[:AT_A_TIME])


def remove_files(files: Iterable[StoredFile]) -> int:
    """Forget these uploads, whosever they are, each in a transaction of its own where there is none. How
    many."""
    removed = 0
    for file in files:
        with transaction.atomic():
            StoredFile.objects.filter(pk=file.pk).delete()
            transaction.on_commit(partial(removals.clear, [file.uid]))
        removed += 1
    return removed


def forget_copies(conversation: Conversation, file_uids: Sequence[str]) -> None:
    """Take the copies of these uploads out of the workspace, whose names nobody may know any more. What was
    made of them stays, and counts as foreign. Needs the transaction that takes out the words."""
    rows = FileResource.objects.filter(conversation=conversation, file_uid__in=file_uids)
    paths = list(rows.values_list("path", flat=True))
    rows.delete()
    for mark in ForeignMark.objects.filter(conversation=conversation, path__in=paths):
        mark.path = f"removed/{mark.pk}"
        mark.save(update_fields=["path"])
    if paths:
        removals.note_paths(conversation, paths)
        transaction.on_commit(partial(removals.clear_paths, conversation.uid, paths))


def _require_still_there(actor: User, organisation: Organisation) -> None:
    """An upload may take an hour, in which its actor may be removed, or her account closed. Whoever does that
    waits for this transaction or is seen by it."""
    memberships = Membership.objects.select_for_update(of=("self",), no_key=True)
    here = memberships.filter(user=actor, user__is_active=True, organisation=organisation)
    if here.first() is None:
        raise NotFound(_("There is no such organisation."))


def _require_own(actor: User, file: StoredFile) -> None:
    if not StoredFile.objects.visible_to(actor).filter(pk=file.pk).exists():
        raise NotFound(_("There is no such file."))


def chunks_of(source: BinaryIO) -> Iterator[bytes]:
    while chunk := source.read(CHUNK):
        yield chunk


def _held_in(place: int) -> int:
    files = StoredFile.objects.kept().filter(owner__in=sharing_place(place))
    held: int = files.aggregate(bytes=Sum("size", default=0))["bytes"]
    return held


def _check_size(size: int, held: int) -> None:
    if size > settings.AGENTSITE_FILE_BYTES:
        raise TooLarge(
            _("The file has more than %(limit)d bytes.") % {"limit": settings.AGENTSITE_FILE_BYTES},
            field="file",
            hint=_("Split it."),
        )
    if size + held > settings.AGENTSITE_FILES_BYTES:
        raise LimitReached(
            _("Your files and your service accounts’ would have more than %(limit)d bytes in all.")
            % {"limit": settings.AGENTSITE_FILES_BYTES},
            hint=_("Delete some first."),
        )


def _clean_name(filename: str) -> str:
    name = re.split(r"[/\\]", filename.replace("\0", ""))[-1].strip()
    if name in {"", ".", ".."} or len(name) > NAME_LIMIT or not name.isprintable():
        raise Invalid(
            _("This is no name of a file."),
            field="file",
            hint=_("Give it 1 to %(limit)d printable characters.") % {"limit": NAME_LIMIT},
        )
    return name
