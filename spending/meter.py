"""The meter beside a transcript: tokens, cost, how full the context is, and the budgets."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db.models import Count, Sum
from django.template.loader import render_to_string
from django.urls import reverse

from conversations.models import Conversation
from jobs.prepared import Prepared
from keeping.contextplans import newest_plan

from .amounts import money, number
from .models import Usage
from .standings import standing_on_page

_SPENT = Prepared(
    lambda given: (
        Usage.objects.filter(conversation=given.conversation)
        .order_by()
        .values_list("conversation")
        .annotate(
            calls=Count("id"),
            priced=Count("cost"),
            cost=Sum("cost"),
            fresh=Sum("input_tokens"),
            written=Sum("cache_creation_input_tokens"),
            cached=Sum("cache_read_input_tokens"),
            output=Sum("output_tokens"),
        )
    )
)


def draw_meter(conversation: Conversation) -> str:
    """The panel that says what a conversation has used, and how its budgets stand."""
    found = _SPENT.first(conversation=conversation.pk)
    _pk, calls, priced, cost, fresh, written, cached, output = found or (0,) * 8
    window = conversation.config.limits.context_window
    fill = min(100, round(100 * conversation.context_tokens / window))
    plan = newest_plan(conversation)
    context: dict[str, Any] = {
        "plan": plan,
        "plan_address": reverse("conversations:context", args=[conversation.uid]),
        "calls": calls,
        "fresh": number(fresh + written),
        "cached": number(cached),
        "output": number(output),
        "cost_known": priced == calls,
        "cost": money(cost or Decimal(0)),
        "some_cost": bool(cost),
        "fill": fill,
        "is_filling": fill >= 80,
        "context_tokens": number(conversation.context_tokens),
        "window": number(window),
        "budgets": standing_on_page(conversation),
    }
    return render_to_string("spending/meter.html", context).strip()
