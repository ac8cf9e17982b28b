"""A person takes along all that is kept of her."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import Forbidden, LimitReached
from owndata.archive import archive_of

A_DAY = 10
"""Archives of one person: each reads everything of hers."""


def export_own_data(*, actor: User) -> Iterator[bytes]:
    """The pieces of the archive, made as they are asked for. Raises Forbidden for a service account, whose
    data are its organisation's, and LimitReached."""
    if actor.is_service or not actor.is_active:
        raise Forbidden(_("A person takes her own data along."))
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        since = timezone.now() - timedelta(days=1)
        mine = AuditEntry.objects.filter(
            actor=actor, action=AuditEntry.Action.DATA_EXPORTED, at__gt=since
        )
        if mine.count() >= A_DAY:
            raise LimitReached(
                _("There were %(most)d archives within a day already.") % {"most": A_DAY},
                hint=_("Come back tomorrow."),
            )
        about_setting(AuditEntry.Action.DATA_EXPORTED, actor=actor, organisation_id=None)
    return archive_of(actor)
