"""A call that asks is answered from within its conversation; from the queue it is `actions.approvals`'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.projection import approval_of
from conversations.actions.own import decidable_conversation
from conversations.models import Conversation, Event
from harness.errors import AgentError, NotFound, NotWaiting
from harness.events import ANSWERS

from .approvals import answer_as_shown


def decide_call(
    *,
    actor: User,
    conversation: Conversation,
    call_uid: str,
    allow: bool,
    reason: str = "",
    shown: str = "",
    seen_round: int | None = None,
    edited_input: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Event:
    """See `conversations.actions.deciding`. Goes through `decide_approval`, whose errors it raises."""
    subject = call_uid.replace("\0", "")  # one of the databases cannot look for it
    with transaction.atomic():
        held = decidable_conversation(actor, conversation)
        approval = approval_of(held, subject)
    if approval is None:
        raise _no_question(held, subject)
    return answer_as_shown(
        actor=actor,
        approval=approval,
        allow=allow,
        reason=reason,
        shown=shown,
        seen_round=seen_round,
        edited_input=edited_input,
        key=key,
    )


def _no_question(held: Conversation, subject: str) -> AgentError:
    """Why nobody is asked about it."""
    about = set(
        Event.objects.filter(conversation=held, subject=subject).values_list("type", flat=True)
    )
    if about.isdisjoint({"agent.tool_use", "agent.mcp_tool_use"}):
        return NotFound(_("There is no such call."))
    if not about.isdisjoint(ANSWERS):
        return NotWaiting(_("This call has its answer already."))
    return NotWaiting(_("This call does not wait for anybody."))
