"""Rules of a conversation go along into a fork of it, as far as they ask or deny; what was allowed there
was allowed there alone."""

from __future__ import annotations

from accounts.models import User
from audit.models import AuditEntry
from conversations.ancestry import ancestors
from conversations.models import Conversation

from .auditing import about_rule
from .models import PolicyRule

_COPIED = ("scope", "tool", "when", "permission", "options")


def go_along(actor: User, origin: Conversation, fork: Conversation) -> None:
    """Also those of the conversations above, which hold there (`policyrules`) and are not above the fork.
    They are hers who forks, as if she had made them in a conversation of her own."""
    held = PolicyRule.objects.active().filter(
        scope=PolicyRule.Scope.CONVERSATION, conversation__in=[origin.pk, *ancestors(origin)]
    )
    for rule in held.exclude(permission=PolicyRule.Permission.ALLOW).order_by("pk"):
        copied = PolicyRule.objects.create(
            conversation=fork,
            organisation_id=fork.organisation_id,
            made_by=actor,
            # Whoever only reads it was never told why.
            note=rule.note if origin.owner_id == actor.pk else "",
            **{name: getattr(rule, name) for name in _COPIED},
        )
        about_rule(
            AuditEntry.Action.RULE_SAVED,
            copied,
            actor=actor,
            organisation=fork.organisation,
            reason=copied.note,
            options=copied.options,
            copy_of=rule.uid,
        )
