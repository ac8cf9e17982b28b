"""A person says what she wants to be told of, by which ways, and when she is left alone."""

from __future__ import annotations

from datetime import time

from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import Invalid
from notices.models import LONGEST_MAIL_MINUTES, Kind, NoticeWish, When
from notices.quiet import known_zones


def set_notices(
    *,
    actor: User,
    waits_by_mail: str = When.AWAY,
    waits_by_push: str = When.AWAY,
    done_by_mail: str = When.NEVER,
    done_by_push: str = When.AWAY,
    waits_by_webhook: str = When.NEVER,
    done_by_webhook: str = When.NEVER,
    brief_by_push: str = When.NEVER,
    mail_after_minutes: int = 5,
    tells_contents: bool = True,
    quiet_from: time | None = None,
    quiet_until: time | None = None,
    timezone: str = "UTC",
) -> NoticeWish:
    """From now on, all of it. Raises Invalid naming the field."""
    chosen = {
        "waits_by_mail": waits_by_mail,
        "waits_by_push": waits_by_push,
        "done_by_mail": done_by_mail,
        "done_by_push": done_by_push,
        "waits_by_webhook": waits_by_webhook,
        "done_by_webhook": done_by_webhook,
        "brief_by_push": brief_by_push,
    }
    for field, value in chosen.items():
        offered = [w for w in When.values if field != "brief_by_push" or w != When.AWAY]
        if value not in offered:
            raise Invalid(
                _("There is no such choice."),
                field=field,
                hint=_("Choose from: %(names)s.") % {"names": ", ".join(offered)},
            )
    if not 1 <= mail_after_minutes <= LONGEST_MAIL_MINUTES:
        raise Invalid(
            _("The minutes are out of range."),
            field="mail_after_minutes",
            hint=_("Give a number from 1 to %(most)d.") % {"most": LONGEST_MAIL_MINUTES},
        )
    if (quiet_from is None) != (quiet_until is None):
        raise Invalid(
            _("Quiet hours begin and end."),
            field="quiet_until" if quiet_until is None else "quiet_from",
            hint=_("Give both times, or none."),
        )
    if timezone not in known_zones():
        raise Invalid(
            _("There is no time zone “%(name)s”.") % {"name": timezone[:60]},
            field="timezone",
            hint=_("Give an IANA name such as Europe/Berlin, or UTC."),
        )
    wish, _made = NoticeWish.objects.update_or_create(
        user=actor,
        defaults={
            **chosen,
            "mail_after_minutes": mail_after_minutes,
            "tells_contents": tells_contents,
            "quiet_from": quiet_from,
            "quiet_until": quiet_until,
            "timezone": timezone,
        },
    )
    return wish


def stop_mails(*, actor: User, kind: Kind) -> None:
    """No mails of this kind any more; all else stays as she chose."""
    field = {Kind.WAITS: "waits_by_mail", Kind.DONE: "done_by_mail"}[kind]
    NoticeWish.objects.update_or_create(user=actor, defaults={field: When.NEVER.value})
