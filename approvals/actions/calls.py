"""A call that asks is answered from within its conversation; from the queue it is `actions.approvals`'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.projection import approval_of
from conversations.actions.own import decidable_conversation
from conversations.models import Conversation, Event
from harness.errors import AgentError, AskedAnew, Invalid, NotFound, NotWaiting
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
    read_to: str = "",
    edited_input: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Event:
    """See `conversations.actions.deciding`. Goes through `decide_approval`, whose errors it raises.

    Where no `seen_round` says which question is answered, it is the one that stood in the log up to the
    event `read_to`; with neither, the one that the conversation rests with. Raises AskedAnew where it was
    asked anew since, and Invalid for a `read_to` that is no event of the conversation. Denying needs none of
    these.
    """
    subject = call_uid.replace("\0", "")  # one of the databases cannot look for it
    with transaction.atomic():
        held = decidable_conversation(actor, conversation)
        approval = approval_of(held, subject)
        again = allow and approval is not None and approval.round > 1
        untold = again and _is_untold(held, subject, read_to)
    if approval is None:
        raise _no_question(held, subject)
    if seen_round is None and untold:
        raise AskedAnew(
            _("This call was asked about anew since: %(reason)s") % {"reason": approval.reason},
            hint=_("Look at the call as it is now, and answer again."),
        )
    return answer_as_shown(
        actor=actor,
        approval=approval,
        allow=allow,
        reason=reason,
        shown=shown,
        seen_round=approval.round if seen_round is None else seen_round,
        edited_input=edited_input,
        key=key,
    )


def _is_untold(held: Conversation, subject: str, read_to: str) -> bool:
    """Whether it was asked since `read_to`, or since the conversation last said what it waits for."""
    log = Event.objects.filter(conversation=held)
    anew = log.filter(subject=subject, type="x.approval_requested")
    asked = anew.aggregate(at=Max("seq"))["at"] or 0
    if not read_to:
        return not log.filter(type="session.status_idle", seq__gt=asked).exists()
    read = log.filter(uid=read_to.replace("\0", "")).first()
    if read is None:
        raise Invalid(
            _("This is no event of the conversation of this call."),
            field="read_to",
            hint=_("Give the id of the last event that was read, or leave it out."),
        )
    return read.seq < asked


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
