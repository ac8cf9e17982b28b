"""Rules saved through an approval: "for this run, this conversation, always".

Shown before they are saved, in words; revoked with `actions.rules`.
"""

from __future__ import annotations

from typing import Any, Literal

from accounts.models import User
from approvals.auditing import about_rule
from approvals.consents import Agreement
from approvals.models import Approval, PolicyRule
from approvals.suggestions import written
from audit import record as audit
from harness.agentconfig import ToolRule
from harness.patterns import When, input_hash
from harness.rules import level_named

WiderScope = Literal["run", "conversation", "always"]


def proposed_rule(
    approval: Approval, given: dict[str, Any] | None = None, pattern: str = ""
) -> ToolRule:
    """What a wider scope will allow: calls of this tool with exactly this input, nothing near it; with
    a `pattern` those that it covers. Raises Invalid where that does not cover this input."""
    chosen = approval.effective_input if given is None else given
    when = written(approval.tool, chosen, pattern) if pattern else When(sha256=input_hash(chosen))
    return ToolRule(tool=approval.tool, permission="always_allow", when=when)


def grant_rule(
    *,
    actor: User,
    approval: Approval,
    agreed: Agreement,
    given: dict[str, Any],
    scope: str,
    pattern: str = "",
) -> PolicyRule:
    """Save what an approval allows beyond its call; called by `decide_approval` alone, which has
    checked who may, in its transaction. `agreed`: all who have given it.

    `always` reaches as far as the agent in this organisation, for the person it worked for here. It
    settles only what this approval could: asking of its rule's level or a narrower one, under the
    conditions that were met. With untrusted content in sight it holds for this run at most.
    """
    rule = proposed_rule(approval, given, pattern)
    conversation = approval.conversation
    always = scope == "always"
    saved = PolicyRule.objects.create(
        scope=PolicyRule.Scope.AGENT if always else PolicyRule.Scope(scope),
        organisation=approval.organisation,
        agent=conversation.agent_version.agent if always else None,
        conversation=None if always else conversation,
        turn_uid=approval.turn_uid if scope == "run" else "",
        for_user=approval.requested_by if always else None,
        tool=rule.tool,
        when=None if rule.when is None else rule.when.model_dump(exclude_none=True),
        permission=rule.permission,
        grant={
            "level": level_named(approval.rule_level or "agent").word,
            "two_people": approval.needed > 1,
            "reviewers_only": approval.reviewers_only,
            "requester_may_not_decide": approval.requester_may_not_decide,
            "tainted": approval.tainted and scope == "run",
            "host": approval.host,
            "givers": [
                {"account": one.by.pk, "persons": sorted(one.behind)} for one in agreed.consents
            ],
        },
        made_by=actor,
        made_from=approval,
    )
    about_rule(
        audit.Action.RULE_SAVED,
        saved,
        actor=actor,
        organisation=approval.organisation,
        through="approval",
    )
    return saved
