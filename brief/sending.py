"""Makes each brief that is due, once, and mails it. What a model writes above its lines is `writing`'s part.

Any number of processes may look as often as they like: a due time becomes a row under the lock of its wish,
and a constraint lets it be one row. A mail is claimed before it is handed over, so a process that dies in
between has told too little rather than twice; the page has it all the same.
"""

from __future__ import annotations

import logging
import smtplib
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.languages import language_of
from accounts.models import Membership
from brief.compiling import compile_brief
from brief.models import Brief, BriefWish
from jobs.dispatch import dispatch
from jobs.metrics import MAILS
from notices.models import Kind
from notices.pushing import tell_of
from notices.stopping import headers_of, stop_link
from notices.waiting import may_be_mailed
from schedules.times import Cron
from webhooks.outbox import announce
from webhooks.types import BRIEF_READY

logger = logging.getLogger(__name__)

MAIL = "brief.mail"
WRITE = "brief.write"
AT_A_TIME = 200
LONGEST = timedelta(days=7)
"""A brief tells of no more, however long there was none."""
USUAL = timedelta(days=1)
MOST_TRIES = 5


def next_due(wish: BriefWish, moment: datetime) -> datetime | None:
    """The first due time after `moment`, by the clocks of its zone; None while it is off."""
    if not wish.is_on:
        return None
    days = "1-5" if wish.days == BriefWish.Days.WORKDAYS else "*"
    cron = Cron(f"{wish.at.minute} {wish.at.hour} * * {days}", wish.timezone)
    return next(cron.after(moment.astimezone(UTC)), None)


def since_when(wish_or_brief: BriefWish, until: datetime) -> datetime:
    """Where the next brief begins: where the last one ended, or a day ago."""
    last = Brief.objects.filter(
        user=wish_or_brief.user_id, organisation=wish_or_brief.organisation_id
    ).first()
    since = last.until if last is not None else until - USUAL
    return max(since, until - LONGEST)


def belongs(wish: BriefWish) -> bool:
    """Whether she still does, in the organisation that the wish is about."""
    member = Membership.objects.filter(user=wish.user, organisation=wish.organisation)
    return wish.user.is_active and member.exists()


def make_due(now: datetime | None = None) -> int:
    """Make every brief whose time has come; how many wishes were due. One query where none is."""
    now = now or timezone.now()
    due = BriefWish.objects.filter(next_at__lte=now).order_by("next_at")
    found = list(due.values_list("pk", flat=True)[:AT_A_TIME])
    for wish_id in found:
        try:
            _make(wish_id, now)
        except Exception:
            # One person's brief must not keep the others from theirs.
            logger.exception("the brief of wish %s could not be made", wish_id)
            _pass_over(wish_id, now)
    return len(found)


def _make(wish_id: int, now: datetime) -> None:
    with transaction.atomic():
        held = BriefWish.objects.filter(pk=wish_id, next_at__lte=now)
        wish = (
            held.select_for_update(of=("self",), no_key=True, skip_locked=True)
            .select_related("user", "organisation")
            .first()
        )
        if wish is None or wish.next_at is None:
            return  # somebody else has it
        due_at = wish.next_at
        # Times that passed while nobody looked are one brief, about all that time.
        wish.next_at = next_due(wish, now)
        wish.save(update_fields=["next_at"])
        if not belongs(wish):
            return
        since = since_when(wish, now)
        contents = compile_brief(wish.user, wish.organisation, since=since, until=now)
        is_written = wish.is_written and not contents.is_empty
        brief = Brief(
            user=wish.user,
            organisation=wish.organisation,
            due_at=due_at,
            since=since,
            until=now,
            stored_contents=contents.model_dump(mode="json"),
            is_held=is_written,
            writing=Brief.Writing.WANTED if is_written else Brief.Writing.NONE,
        )
        # The constraint is the claim: what was told at this due time is not told again.
        Brief.objects.bulk_create([brief], ignore_conflicts=True)
        made = Brief.objects.filter(uid=brief.uid).first()
        if made is None:
            return
        if made.is_held:
            dispatch(WRITE, brief_id=made.pk)
        else:
            send_off(made, wish, now=now)


def send_off(brief: Brief, wish: BriefWish, *, now: datetime) -> None:
    """Have it go out by the ways that she chose, once. In the transaction that says that it may."""
    tells = not (wish.is_quiet and brief.contents.is_empty)
    mails = settings.AGENTSITE_EMAIL_CONFIGURED and bool(settings.AGENTSITE_BASE_URL)
    if wish.by_webhook and tells:
        announce(wish.organisation_id, BRIEF_READY, subject=brief.uid, user_id=wish.user.uid)
    if tells:
        tell_of(wish.user, Kind.BRIEF, brief.get_absolute_url(), now)
    if wish.by_mail and tells and mails and may_be_mailed(wish.user):
        brief.mail = Brief.Mail.WAITING
        brief.save(update_fields=["mail"])
        dispatch(MAIL)


def _pass_over(wish_id: int, now: datetime) -> None:
    """Leave out the due time at which it failed."""
    with transaction.atomic():
        held = BriefWish.objects.select_for_update(no_key=True).filter(pk=wish_id).first()
        if held is not None and held.next_at is not None and held.next_at <= now:
            held.next_at = next_due(held, now)
            held.save(update_fields=["next_at"])


def mail_made() -> int:
    """Mail what is to be mailed; how many mails were sent."""
    sent = 0
    for brief_id in list(Brief.objects.to_mail().values_list("pk", flat=True)[:AT_A_TIME]):
        claimed = Brief.objects.to_mail().filter(pk=brief_id)
        if claimed.update(mail=Brief.Mail.SENDING, tries=F("tries") + 1):
            brief = Brief.objects.select_related("user", "organisation").get(pk=brief_id)
            sent += _send(brief)
    return sent


def _send(brief: Brief) -> bool:
    try:
        compose(brief).send()
    except (OSError, smtplib.SMTPException) as refusal:
        # Without the exception's text: a mail server may quote the message.
        logger.warning("the brief %s could not be mailed: %s", brief.uid, type(refusal).__name__)
        MAILS.labels("brief", "failed").inc()
        brief.mail = Brief.Mail.FAILED if brief.tries >= MOST_TRIES else Brief.Mail.WAITING
        brief.save(update_fields=["mail"])
        return False
    brief.mail = Brief.Mail.SENT
    brief.save(update_fields=["mail"])
    MAILS.labels("brief", "sent").inc()
    return True


def compose(brief: Brief) -> EmailMessage:
    """In her language, on the clocks that the person wished for. Links lead to pages that ask who
    one is; nothing can be decided by a link alone."""
    wish = BriefWish.objects.filter(user=brief.user, organisation=brief.organisation).first()
    site = settings.AGENTSITE_BASE_URL
    with (
        translation.override(language_of(brief.user)),
        timezone.override(wish.timezone if wish is not None else settings.TIME_ZONE),
    ):
        contents = brief.contents
        if contents.waits:
            subject = _("Your brief: %(count)d wait for you, %(failed)d failed") % {
                "count": len(contents.waits),
                "failed": len(contents.failed),
            }
        else:
            subject = _("Your brief: %(ran)d ran, %(failed)d failed") % {
                "ran": len(contents.ran),
                "failed": len(contents.failed),
            }
        body = render_to_string(
            "brief/mail.txt",
            {
                "brief": brief,
                "contents": contents,
                "site": site,
                "page": site + brief.get_absolute_url(),
                "settings_link": site + reverse("brief:settings"),
                "stop_link": stop_link(brief.user, Kind.BRIEF, brief.organisation.uid),
            },
        )
        return EmailMessage(
            f"[Agentsite] {subject}",
            body,
            to=[brief.user.email],
            headers=headers_of(brief.user, Kind.BRIEF, brief.organisation.uid),
        )


def prune(now: datetime | None = None, *, days: int) -> int:
    """Forget briefs so old, some at a time; how many."""
    before = (now or timezone.now()) - timedelta(days=days)
    keys = list(
        Brief.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:AT_A_TIME]
    )
    return Brief.objects.filter(pk__in=keys).delete()[0] if keys else 0
