"""What endpoints outside hear of approvals. Writing deliveries is `webhooks.outbox`'s part."""

from __future__ import annotations

from webhooks.outbox import announce, is_heard
from webhooks.types import APPROVAL_DECIDED, APPROVAL_EXPIRED, APPROVAL_REQUESTED

from .models import Approval


def announce_approval(approval: Approval) -> None:
    """`announce` that an approval was asked for or closed, by the state it has now."""
    if not is_heard(approval.organisation_id):
        return
    match approval.state:
        case Approval.State.PENDING:
            event_type = APPROVAL_REQUESTED
        case Approval.State.EXPIRED:
            event_type = APPROVAL_EXPIRED
        case _:
            event_type = APPROVAL_DECIDED
    more = {
        "session_id": approval.root.uid,
        "tool_use_id": approval.call_uid,
        "state": str(approval.state),
    }
    if approval.root_id != approval.conversation_id:
        more["session_thread_id"] = approval.conversation.uid
    announce(approval.organisation_id, event_type, subject=approval.uid, **more)
