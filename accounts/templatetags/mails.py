"""Whether mails leave this server, for pages that would promise one."""

from __future__ import annotations

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def mails_are_sent() -> bool:
    return bool(settings.AGENTSITE_EMAIL_CONFIGURED)
