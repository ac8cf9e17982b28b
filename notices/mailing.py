"""Mails about what waits for people, and never twice about the same thing.

A mail names the conversation and the tool, and leads to a page that asks who one is; what a call would
do is read there.
"""

from __future__ import annotations

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import ngettext

from accounts.languages import language_of
from accounts.models import User
from harness.ids import new_id
from jobs.metrics import MAILS

from .models import WaitNotice
from .waiting import MOST_TRIES, Item, due

logger = logging.getLogger(__name__)

MOST_LISTED = 20
"""In one mail; more are counted."""


def mail_waiting() -> int:
    """Mail everybody about what waits for them longer than they chose and they have not seen; how
    many mails were sent. Nothing where no mails can be sent, or the site does not know its address."""
    if not (settings.AGENTSITE_EMAIL_CONFIGURED and settings.AGENTSITE_BASE_URL):
        return 0
    sent = 0
    for user, items in due(timezone.now()).items():
        batch, claimed = _claim(user, items)
        if claimed:
            sent += _send(user, batch, claimed)
    return sent


def _claim(user: User, items: list[Item]) -> tuple[str, list[Item]]:
    """Those among `items` that this process, and no other, is to tell of.

    Committed before the mail is handed over: a process that dies in between has told too little
    rather than twice, and what waits stays in the queue.
    """
    batch = new_id("mail")
    refused = WaitNotice.objects.filter(
        user=user, subject__in=[item.subject for item in items], batch="", tries__lt=MOST_TRIES
    )
    refused.update(batch=batch, tries=F("tries") + 1)
    WaitNotice.objects.bulk_create(
        [
            WaitNotice(user=user, conversation=item.conversation, subject=item.subject, batch=batch)
            for item in items
        ],
        ignore_conflicts=True,
    )
    mine = set(WaitNotice.objects.filter(batch=batch).values_list("subject", flat=True))
    return batch, [item for item in items if item.subject in mine]


def _send(user: User, batch: str, items: list[Item]) -> bool:
    rows = WaitNotice.objects.filter(batch=batch)
    message = compose(user, items)
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as refusal:
        # Without the exception's text: a mail server may quote the message.
        kind = type(refusal).__name__
        logger.warning("the mail %s could not be sent: %s", batch, kind)
        MAILS.labels("waiting", "failed").inc()
        rows.update(batch="")
        return False
    rows.update(mailed_at=timezone.now())
    MAILS.labels("waiting", "sent").inc()
    return True


def compose(user: User, items: list[Item]) -> EmailMessage:
    """The mail, in her language."""
    with translation.override(language_of(user)):
        count = len(items)
        subject = ngettext(
            "Something waits for your answer", "%(count)d things wait for your answer", count
        ) % {"count": count}
        context = {
            "user": user,
            "items": items[:MOST_LISTED],
            "more": max(0, count - MOST_LISTED),
            "list_link": settings.AGENTSITE_BASE_URL + reverse("approvals:approvals"),
            "settings_link": settings.AGENTSITE_BASE_URL + reverse("conversations:settings"),
        }
        body = render_to_string("notices/waiting_mail.txt", context)
        return EmailMessage(
            f"[Agentsite] {subject}",
            body,
            to=[user.email],
            # Answering machines do not answer it.
            headers={"Auto-Submitted": "auto-generated"},
        )
