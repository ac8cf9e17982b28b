"""The mail to those who manage an organisation when one of its endpoints was switched off by itself."""

from __future__ import annotations

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.languages import language_of
from accounts.models import Membership, Role, User
from jobs.metrics import MAILS

from .models import WebhookEndpoint

logger = logging.getLogger(__name__)

SWITCHED_OFF = "webhooks.mail_switched_off"


def mail_switched_off(endpoint_id: int) -> int:
    """Tell each manager that can be reached; how many were. Nothing where no mails can be sent, or
    when somebody switched it on again meanwhile."""
    if not (settings.AGENTSITE_EMAIL_CONFIGURED and settings.AGENTSITE_BASE_URL):
        return 0
    found = WebhookEndpoint.objects.select_related("organisation")
    endpoint = found.filter(pk=endpoint_id).exclude(disabled_at=None).first()
    if endpoint is None:
        return 0
    managing = [role for role in Role if role.manages]
    members = Membership.objects.filter(organisation=endpoint.organisation, role__in=managing)
    sent = 0
    for membership in members.select_related("user"):
        user = membership.user
        if user.is_active and user.email and not user.is_service:
            sent += _send(endpoint, user)
    return sent


def _send(endpoint: WebhookEndpoint, user: User) -> bool:
    page = reverse("webhooks:webhook", kwargs={"uid": endpoint.uid})
    with translation.override(language_of(user)):
        context = {"endpoint": endpoint, "link": settings.AGENTSITE_BASE_URL + page}
        subject = _("A webhook endpoint was switched off")
        message = EmailMessage(
            f"[Agentsite] {subject}",
            render_to_string("webhooks/webhook_off_mail.txt", context),
            to=[user.email],
            headers={"Auto-Submitted": "auto-generated"},
        )
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as refusal:
        kind = type(refusal).__name__
        logger.warning("a mail about endpoint %s could not be sent: %s", endpoint.uid, kind)
        MAILS.labels("webhook_off", "failed").inc()
        return False
    MAILS.labels("webhook_off", "sent").inc()
    return True
