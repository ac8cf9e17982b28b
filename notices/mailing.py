"""Mails about what waits for people and what has ended, and never twice about the same thing.

A mail names the conversation and the tool, and leads to a page that asks who one is; what a call would
do is read there.
"""

from __future__ import annotations

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import ngettext

from accounts.languages import language_of
from accounts.models import User
from jobs.metrics import MAILS

from .claims import claim_items
from .models import Channel, Kind, WaitNotice
from .stopping import headers_of, stop_link
from .waiting import Item, due

logger = logging.getLogger(__name__)

MOST_LISTED = 20
"""In one mail; more are counted."""
TOLD = (Kind.WAITS, Kind.DONE)


def mail_waiting() -> int:
    """Mail everybody about what waits for them longer than they chose, or has ended, and they have not
    seen; how many mails were sent. Nothing where no mails can be sent, or the site does not know its
    address."""
    if not (settings.AGENTSITE_EMAIL_CONFIGURED and settings.AGENTSITE_BASE_URL):
        return 0
    sent = 0
    for user, items in due(timezone.now(), Channel.MAIL).items():
        for kind in TOLD:
            of_kind = [item for item in items if item.kind == kind]
            if not of_kind:
                continue
            # Committed before the mail is handed over: a process that dies in between has told too little
            # rather than twice, and what waits stays in the queue.
            batch, claimed = claim_items(user, of_kind, channel=Channel.MAIL)
            if claimed:
                sent += _send(user, kind, batch, claimed)
    return sent


def _send(user: User, kind: Kind, batch: str, items: list[Item]) -> bool:
    rows = WaitNotice.objects.filter(batch=batch)
    message = compose(user, kind, items)
    label = "waiting" if kind == Kind.WAITS else "done"
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as refusal:
        # Without the exception's text: a mail server may quote the message.
        logger.warning("the mail %s could not be sent: %s", batch, type(refusal).__name__)
        MAILS.labels(label, "failed").inc()
        rows.update(batch="")
        return False
    rows.update(mailed_at=timezone.now())
    MAILS.labels(label, "sent").inc()
    return True


def compose(user: User, kind: Kind, items: list[Item]) -> EmailMessage:
    """The mail, in her language."""
    with translation.override(language_of(user)):
        count = len(items)
        if kind == Kind.WAITS:
            page, template = "approvals:approvals", "notices/waiting_mail.txt"
            subject = ngettext(
                "Something waits for your answer", "%(count)d things wait for your answer", count
            )
        else:
            page, template = "conversations:list", "notices/done_mail.txt"
            subject = ngettext(
                "A conversation has ended", "%(count)d conversations have ended", count
            )
        context = {
            "user": user,
            "items": items[:MOST_LISTED],
            "more": max(0, count - MOST_LISTED),
            "list_link": settings.AGENTSITE_BASE_URL + reverse(page),
            "settings_link": settings.AGENTSITE_BASE_URL + reverse("notices:settings"),
            "stop_link": stop_link(user, kind),
        }
        return EmailMessage(
            f"[Agentsite] {subject % {'count': count}}",
            render_to_string(template, context),
            to=[user.email],
            headers=headers_of(user, kind),
        )
