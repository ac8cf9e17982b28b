"""A person makes a collection of documents, her own or her organisation's, deletes one, and says that what
was in its watched directory is gone."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import may_manage, require_member
from accounts.persons import hold_place
from audit.models import AuditEntry
from audit.record import about_setting
from documents.access import held_collection
from documents.models import DESCRIPTION_LIMIT, NAME_LIMIT, Collection
from harness.errors import Conflict, Forbidden, Invalid, LimitReached


def create_collection(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    description: str = "",
    shared: bool = False,
) -> Collection:
    """The actor's own, or the organisation's. Raises NotFound for a stranger, Forbidden for a shared one
    unless she manages it, Invalid, LimitReached."""
    require_member(actor, organisation)
    if shared and not may_manage(actor, organisation):
        raise Forbidden(
            _("Owners and administrators of the organisation make shared collections."),
            hint=_("Make one of your own."),
        )
    name = check_name(name)
    if len(description) > DESCRIPTION_LIMIT or "\0" in description:
        raise Invalid(
            _("A description has %(most)d characters at most.") % {"most": DESCRIPTION_LIMIT},
            field="description",
            hint=_("Shorten it."),
        )
    with transaction.atomic():
        if _held_beside(actor, organisation, shared=shared) >= settings.AGENTSITE_COLLECTIONS:
            raise LimitReached(
                _("There are %(most)d collections already.")
                % {"most": settings.AGENTSITE_COLLECTIONS},
                hint=_("Delete one that is not needed any more."),
            )
        made = Collection.objects.create(
            organisation=organisation,
            owner=None if shared else actor,
            name=name,
            description=description.strip(),
        )
        _tell(AuditEntry.Action.COLLECTION_MADE, actor, made)
    return made


def _held_beside(actor: User, organisation: Organisation, *, shared: bool) -> int:
    """How many count with one more. Whose they are is locked, or two at once would be one too many."""
    there = Collection.objects.filter(organisation=organisation)
    hers = hold_place(actor, organisation)
    return (there.filter(owner=None) if shared else there.filter(owner__in=hers)).count()


def delete_collection(*, actor: User, collection: Collection) -> None:
    """With all that is in it. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = held_collection(actor, collection)
        _tell(AuditEntry.Action.COLLECTION_DELETED, actor, held)
        held.documents.all().delete_held()
        held.delete()


def forget_held(*, actor: User, collection: Collection) -> int:
    """That what is missing of a watched directory is gone for good; how many documents. Files that come back
    are read anew. Raises NotFound, Forbidden, Conflict where nothing is held back."""
    with transaction.atomic():
        held = held_collection(actor, collection)
        if not held.held_back:
            raise Conflict(
                _("The directory of this collection is there."),
                hint=_("What is deleted in it is forgotten by itself."),
            )
        gone = held.documents.filter(watched=True)
        count = gone.count()
        gone.delete_held()
        Collection.objects.filter(pk=held.pk).update(held_back="")
        _tell(AuditEntry.Action.DOCUMENT_DELETED, actor, held, documents=count)
    return count


def check_name(name: str, *, field: str = "name") -> str:
    """Without what is around it. Raises Invalid."""
    name = " ".join(name.split())
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise Invalid(
            _("A name has 1 to %(most)d visible characters.") % {"most": NAME_LIMIT},
            field=field,
            hint=_("Choose another one."),
        )
    return name


def _tell(action: AuditEntry.Action, actor: User, collection: Collection, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=collection.organisation_id if collection.owner_id is None else None,
        collection=collection.uid,
        **details,
    )
