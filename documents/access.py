"""Who may change a collection, asked by the actions. Somebody else's is *not found*."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.permissions import may_manage
from harness.errors import Forbidden, NotFound

from .models import Collection


def may_write(actor: User, collection: Collection) -> bool:
    """Her own, and those of organisations she manages. Asked of what she sees."""
    if collection.owner_id is not None:
        return collection.owner_id == actor.pk
    return may_manage(actor, collection.organisation)


def held_collection(actor: User, collection: Collection) -> Collection:
    """It as it is now, held until the transaction ends. Raises NotFound, and Forbidden for who only reads."""
    seen = Collection.objects.visible_to(actor).filter(pk=collection.pk).exists()
    rows = Collection.objects.select_for_update(of=("self",), no_key=True)
    held = rows.select_related("organisation").filter(pk=collection.pk).first()
    if held is None or not seen:
        raise NotFound(_("There is no such collection."))
    if not may_write(actor, held):
        raise Forbidden(
            _("This collection is shared, and you may read it only."),
            hint=_("Owners and administrators of the organisation change what is shared."),
        )
    return held
