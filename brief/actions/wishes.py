"""A person says when and how she wants to be told."""

from __future__ import annotations

from datetime import datetime, time

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_member
from brief.models import BriefWish
from brief.sending import next_due
from harness.errors import Invalid
from schedules.times import zones


def set_brief(
    *,
    actor: User,
    organisation: Organisation,
    is_on: bool,
    at: time,
    zone: str,
    days: str = BriefWish.Days.ALL.value,
    by_mail: bool = True,
    by_webhook: bool = False,
    is_quiet: bool = True,
    now: datetime | None = None,
) -> BriefWish:
    """From now on. Raises NotFound for a stranger, and Invalid naming the field."""
    require_member(actor, organisation)
    if zone not in zones():
        raise Invalid(
            _("There is no time zone “%(name)s”.") % {"name": zone[:60]},
            field="timezone",
            hint=_("Give an IANA name such as Europe/Berlin, or UTC."),
        )
    if days not in BriefWish.Days.values:
        raise Invalid(_("There is no such choice of days."), field="days")
    with transaction.atomic():
        wish, _made = BriefWish.objects.update_or_create(
            user=actor,
            organisation=organisation,
            defaults={
                "is_on": is_on,
                "at": at.replace(second=0, microsecond=0),
                "timezone": zone,
                "days": days,
                "by_mail": by_mail,
                "by_webhook": by_webhook,
                "is_quiet": is_quiet,
            },
        )
        wish.next_at = next_due(wish, now or timezone.now())
        wish.save(update_fields=["next_at"])
    return wish


def stop_brief_mails(*, actor: User, organisation_uid: str) -> None:
    """Her briefs about this organisation are on the page alone, or go the other ways that she chose."""
    BriefWish.objects.filter(user=actor, organisation__uid=organisation_uid).update(by_mail=False)
