"""A person puts documents into a collection, has them read anew, and deletes them."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting
from documents.access import held_collection
from documents.fetching import check_address
from documents.indexing import INDEX
from documents.models import NAME_LIMIT, Collection, Document, DocumentBody
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from jobs.dispatch import dispatch

from .collections import check_name

State = Document.State


def add_document(*, actor: User, collection: Collection, name: str, data: bytes) -> Document:
    """One of that name is replaced: it is found as it was until the new one is read. The same once more
    changes nothing. Raises NotFound, Forbidden, Invalid, TooLarge, LimitReached."""
    name = check_name(PurePosixPath(name.replace("\\", "/")).name)
    most = settings.AGENTSITE_DOCUMENT_BYTES
    if len(data) > most:
        raise TooLarge(
            _("%(name)s has more than %(most)d MB.") % {"name": name, "most": most // 1024 // 1024},
            field="data",
            hint=_("Add the part that matters."),
        )
    if not data:
        raise Invalid(
            _("%(name)s is empty.") % {"name": name}, field="data", hint=_("Choose another one.")
        )
    with transaction.atomic():
        held = held_collection(actor, collection)
        there = _under(held, name)
        digest = hashlib.sha256(data).hexdigest()
        if there is not None and there.state == State.READY and there.sha256 == digest:
            return there
        document = _waiting(held, name, "", _hers(there))
        DocumentBody.objects.update_or_create(document=document, defaults={"data": data})
        _tell(AuditEntry.Action.DOCUMENT_ADDED, actor, held, document)
    return document


def add_address(*, actor: User, collection: Collection, address: str) -> Document:
    """What stands there now; `read_again` has it fetched anew. Raises as `add_document`."""
    address = check_address(address)
    name = check_name(address.split("://", 1)[-1][:NAME_LIMIT], field="address")
    with transaction.atomic():
        held = held_collection(actor, collection)
        document = _waiting(held, name, address, _hers(_under(held, name)))
        DocumentBody.objects.filter(document=document).delete()
        _tell(AuditEntry.Action.DOCUMENT_ADDED, actor, held, document)
    return document


def read_again(*, actor: User, document: Document) -> Document:
    """Fetch and read one from an address anew, or once more what was uploaded and could not be read. Raises
    NotFound, Forbidden, Conflict for an uploaded one of which only the text was kept."""
    with transaction.atomic():
        held = held_collection(actor, document.collection)
        there = _under(held, document.name)
        if there is None:
            raise NotFound(_("There is no such document."))
        if not there.address and not DocumentBody.objects.filter(document=there).exists():
            raise Conflict(
                _("Of what was uploaded only the text is kept."), hint=_("Upload it again.")
            )
        made = _waiting(held, there.name, there.address, there)
        _tell(AuditEntry.Action.DOCUMENT_ADDED, actor, held, made)
    return made


def delete_document(*, actor: User, document: Document) -> None:
    """With all passages. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_collection(actor, document.collection)
        there = held.documents.filter(pk=document.pk).first()
        if there is None:
            raise NotFound(_("There is no such document."))
        _tell(AuditEntry.Action.DOCUMENT_DELETED, actor, held, there)
        held.documents.filter(pk=there.pk).delete_held()


def _under(collection: Collection, name: str) -> Document | None:
    rows = Document.objects.select_for_update(of=("self",), no_key=True)
    return rows.filter(collection=collection, name=name).first()


def _hers(there: Document | None) -> Document | None:
    """What is put into the place of a file of a watched directory is kept, whatever becomes of the file."""
    if there is not None:
        there.watched, there.stamp = False, ""
    return there


def _waiting(collection: Collection, name: str, address: str, there: Document | None) -> Document:
    if there is None:
        if collection.documents.count() >= settings.AGENTSITE_DOCUMENTS:
            raise LimitReached(
                _("There are %(most)d documents in this collection already.")
                % {"most": settings.AGENTSITE_DOCUMENTS},
                hint=_("Delete what is not needed any more."),
            )
        there = Document(collection=collection, name=name)
    there.address = address
    there.state, there.claimed_at, there.tries = State.WAITING, None, 0
    there.problem, there.problem_code = "", ""
    there.updated_at = timezone.now()
    there.save()
    dispatch(INDEX, document_id=there.pk)
    return there


def _tell(
    action: AuditEntry.Action, actor: User, collection: Collection, document: Document
) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=collection.organisation_id if collection.owner_id is None else None,
        collection=collection.uid,
        document=document.uid,
    )
