"""The first step of every action on comparisons: may the actor do this there? A stranger finds nothing."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation
from harness.errors import Forbidden, NotFound

from .models import Comparison, ComparisonQuerySet


def find_comparison(user: User, uid: str, rows: ComparisonQuerySet | None = None) -> Comparison:
    """Of all that she sees, or of those `rows` among them."""
    rows = (Comparison.objects.all() if rows is None else rows).visible_to(user)
    found = rows.select_related("root__owner", "root__organisation").filter(
        uid=uid.replace("\0", "")
    )
    comparison = found.first()
    if comparison is None:
        raise NotFound(_("There is no such comparison."))
    return comparison


def held_comparison(actor: User, comparison: Comparison) -> Comparison:
    """The row as it is now, locked, for its owner. Needs a transaction. NotFound, Forbidden."""
    rows = Conversation.objects
    if not rows.owned_by(actor).filter(pk=comparison.root_id).exists():
        if not rows.visible_to(actor).filter(pk=comparison.root_id).exists():
            raise NotFound(_("There is no such comparison."))
        raise Forbidden(
            _("This comparison was shared with you, but not for this."), hint=_("Ask its owner.")
        )
    held = Comparison.objects.select_for_update(of=("self",)).select_related("root__owner")
    found = held.filter(pk=comparison.pk).first()
    if found is None:
        raise NotFound(_("There is no such comparison."))
    return found
