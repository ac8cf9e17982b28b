"""A person says when and how she wants to be told."""

from __future__ import annotations

from datetime import datetime, time

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.permissions import require_member
from brief.choosing import usual_writer
from brief.models import BriefWish
from brief.sending import next_due
from conversations.actions.choosing import Wish, overrides_for
from harness.agentconfig import AgentConfig
from harness.errors import Invalid
from schedules.times import zones

THE_SERVERS = Wish()


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
    is_written: bool = False,
    writer: Wish = THE_SERVERS,
    now: datetime | None = None,
) -> BriefWish:
    """From now on. With `is_written` the model of `writer` puts a short text above it, without a provider the
    server's choice. Raises NotFound for a stranger, and Invalid naming the field."""
    require_member(actor, organisation)
    if zone not in zones():
        raise Invalid(
            _("There is no time zone “%(name)s”.") % {"name": zone[:60]},
            field="timezone",
            hint=_("Give an IANA name such as Europe/Berlin, or UTC."),
        )
    if days not in BriefWish.Days.values:
        raise Invalid(_("There is no such choice of days."), field="days")
    chosen = _writer(actor, organisation, writer) if is_written else {}
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
                "is_written": is_written,
                **chosen,
            },
        )
        wish.next_at = next_due(wish, now or timezone.now())
        wish.save(update_fields=["next_at"])
    return wish


def _writer(actor: User, organisation: Organisation, writer: Wish) -> dict[str, str]:
    usual = usual_writer(actor, organisation)
    if usual is None and not writer.provider:
        raise Invalid(
            _("This server names no model for it that you have a key for."),
            field="is_written",
            hint=_("Choose a model below, or store a key under Settings → Provider keys."),
        )
    chosen = overrides_for(actor, organisation, usual or AgentConfig(), writer)
    if not writer.provider:
        return {"provider": "", "model": "", "effort": chosen["effort"]}
    return chosen


def stop_brief_mails(*, actor: User, organisation_uid: str) -> None:
    """Her briefs about this organisation are on the page alone, or go the other ways that she chose."""
    BriefWish.objects.filter(user=actor, organisation__uid=organisation_uid).update(by_mail=False)
