"""Whose own servers a conversation may use. What others write in it has the agent call them, with whatever
authorises their owner there; so where others may write, nobody's.
"""

from __future__ import annotations

from conversations.models import Conversation, Share
from conversations.models.share import WRITING


def is_hers_alone(conversation: Conversation) -> bool:
    """Whether nobody but its owner may write, or ever wrote, in it and in those that it works for."""
    first: Conversation = conversation
    while True:
        if first.others_wrote:
            return False
        if first.parent is None:
            break
        first = first.parent
    return not Share.objects.filter(conversation=first, role__in=[*WRITING]).exists()
