"""The mail that carries an invitation's link."""

from __future__ import annotations

import logging
import smtplib

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from accounts.models import Invitation

logger = logging.getLogger(__name__)


def send_invitation(invitation: Invitation, link: str) -> bool:
    """Mail the link; false if no mail server is configured or it refused. The link stays valid."""
    if not settings.AGENTSITE_EMAIL_CONFIGURED:
        return False
    subject = _("Invitation to %(organisation)s") % {"organisation": invitation.organisation}
    body = render_to_string(
        "accounts/invitation_mail.txt", {"invitation": invitation, "link": link}
    )
    try:
        send_mail(" ".join(subject.split()), body, None, [invitation.email])
    except (OSError, smtplib.SMTPException):
        # Without the exception's text: a mail server may quote the message, and so the link.
        logger.warning("The mail of invitation %s could not be sent.", invitation.uid)
        return False
    return True
