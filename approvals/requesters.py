"""Whose words a call repeats, beside the person's that its agent works for: who stands as its requester.

Who may therefore not answer it is `deciders`' to say; what is kept of it is `projection`'s and
`actions.approvals`'.
"""

from __future__ import annotations

from django.db.models import QuerySet

from conversations.ancestry import TreeOf
from conversations.writers import behind, refusing_with_words

from .models import Approval, ApprovalDecision


def also_requesting(approval: Approval) -> set[int]:
    """The keys of whoever else wrote, in whatever turn: what was said stays before the agent, and may have
    told it what to do in another one."""
    return behind(approval.conversation)


def having_told(approval: Approval) -> set[int]:
    """The keys of those who told the agent something by an answer to another call of its tree. Of this one's
    it knows nothing yet: see `writing`."""
    return telling_in(approval.root_id, but=approval.pk)


def telling_in(root: int, but: int | None = None) -> set[int]:
    """The keys of those who told the agents of a tree something by an answer to one of their calls: with the
    reason of a refusal, or by the arguments that they put in the place of an agent's own. `but`: the key of
    an approval whose edits do not count."""
    rows = _edits().filter(approval__root=root, approval__final_input__isnull=False)
    rows = rows.exclude(approval=but)
    edited = {
        row.by_id
        for row in rows.select_related("approval")
        if row.by_id is not None and row.input_sha256 == row.approval.effective_sha256
    }
    return edited | refusing_with_words(TreeOf(root))


def writing(approval: Approval, chosen: str) -> set[int]:
    """The keys of those who wrote the input of this hash, where the agent did not."""
    if chosen == approval.input_sha256:
        return set()
    rows = _edits().filter(approval=approval, input_sha256=chosen)
    return {by for by in rows.values_list("by", flat=True) if by is not None}


def _edits() -> QuerySet[ApprovalDecision]:
    edits = ApprovalDecision.objects.filter(edited_input__isnull=False)
    return edits.filter(verdict=ApprovalDecision.Verdict.APPROVE).order_by()
