"""The line above the message box of a conversation that a rule will delete soon, with what keeps it."""

from __future__ import annotations

from datetime import timedelta

from django.template.loader import render_to_string
from django.utils import timezone

from conversations.models import Conversation
from jobs.prepared import Prepared

from .expiring import goes_at, meant_by
from .models import RetentionRule

FRESH = timedelta(hours=12)
"""No rule warns of what was touched since: the shortest is a day, and it warns for half of it."""

_RULE = Prepared(
    lambda given: RetentionRule.objects.filter(
        organisation=given.organisation, in_force_at__isnull=False
    )
)


def draw_notice(conversation: Conversation) -> str:
    if timezone.now() - conversation.active_at < FRESH:
        return ""
    rule = _RULE.first(organisation=conversation.organisation_id)
    if rule is None:
        return ""
    if not meant_by(rule, within=rule.warning, only=conversation.pk).exists():
        return ""
    context = {"at": goes_at(rule, conversation), "rule": rule}
    return render_to_string("retention/_notice.html", context).strip()
