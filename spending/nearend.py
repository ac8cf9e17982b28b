"""The line above the message box where a budget is near its end: the limit surprises nobody.

While it stands it asks again by itself: a budget is raised or lifted without a word in the log. How budgets
stand is `standings`' part, and the figures beside the transcript are `meter`'s.
"""

from __future__ import annotations

from django.template.loader import render_to_string

from conversations.models import Conversation

from .models import Budget
from .standings import standing_on_page


def draw_near_end(conversation: Conversation) -> str:
    """Empty while none is. What caps a single run begins anew with the next message, and is not told of."""
    near = [
        one
        for one in standing_on_page(conversation)
        if one.is_near and one.period != Budget.Period.RUN.value
    ]
    if not near:
        return ""
    return render_to_string(
        "spending/near_end.html", {"budgets": near, "uid": conversation.uid}
    ).strip()
