"""Takes out of decisions what a person said in denying a call, where the call's result was taken out.

What was asked and allowed stays: the decision was taken on it. So does what the audit log says, which is only
ever added to.
"""

from __future__ import annotations

from conversations.forgetting import Removed
from harness.events import UserToolConfirmation
from harness.redacted import REMOVED

from .models import ApprovalDecision


def forget(removed: Removed) -> None:
    answers = removed.of(UserToolConfirmation).values()
    for call in {event.tool_use_id for event in answers if event.deny_message}:
        decisions = ApprovalDecision.objects.filter(
            approval__conversation=removed.conversation, approval__call_uid=call
        )
        denied = decisions.filter(verdict=ApprovalDecision.Verdict.DENY).exclude(reason="")
        ApprovalDecision.objects.filter(pk__in=denied.values("pk")).update(reason=REMOVED)
