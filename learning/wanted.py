"""Whether conversations are read for what is to be remembered: on this server, of this person, this one."""

from __future__ import annotations

from django.conf import settings

from accounts.models import Organisation, User
from conversations.models import Conversation
from recall.models import MemoryOff
from recall.reach import reach_of

from .models import LearningOff


def is_on() -> bool:
    """Whether a model is named for it, with tokens for a day."""
    return bool(settings.AGENTSITE_LEARNING_MODELS and settings.AGENTSITE_LEARNING_TOKENS_PER_DAY)


def switched_off(user: User, organisation: Organisation) -> bool:
    return LearningOff.objects.filter(user=user, organisation=organisation).exists()


def is_wanted(conversation: Conversation) -> bool:
    """Where its owner's own memory may be used, and she has not switched this off."""
    return reach_of(conversation).personal and not switched_off(
        conversation.owner, conversation.organisation
    )


def may_switch(user: User, organisation: Organisation) -> bool:
    """Whether a switch for it would change anything."""
    off = MemoryOff.objects.filter(user=user, organisation=organisation)
    return is_on() and not off.exists()
