"""What tests of retention begin with: conversations that were last touched some days ago."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Organisation, User
from conversations.models import Conversation
from retention.actions.rules import put_in_force, save_rule
from retention.models import GRACE, RetentionRule
from tests.chat.drawing import make_conversation

Old = Callable[..., Conversation]


@pytest.fixture
def old(acme: Organisation) -> Old:
    def make(owner: User, days: float = 100, **fields: object) -> Conversation:
        conversation = make_conversation(owner, acme)
        touched = timezone.now() - timedelta(days=days)
        Conversation.objects.filter(pk=conversation.pk).update(active_at=touched, **fields)
        conversation.refresh_from_db()
        return conversation

    return make


@pytest.fixture
def in_force(alice: User, acme: Organisation) -> Callable[..., RetentionRule]:
    """A rule that deletes by now."""

    def make(days: int = 90, **fields: bool) -> RetentionRule:
        rule = save_rule(actor=alice, organisation=acme, days=days, **fields)
        put_in_force(actor=alice, organisation=acme, version=rule.version)
        RetentionRule.objects.update(in_force_at=timezone.now() - GRACE)
        rule.refresh_from_db()
        return rule

    return make
