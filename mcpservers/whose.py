"""Which servers a conversation may use, and whose own. What others write in it has the agent call them,
with whatever authorises their owner there; so where others may write, nobody's.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from conversations.ancestry import root_of
from conversations.models import Conversation, Share
from conversations.models.share import WRITING
from jobs.prepared import Prepared

from .models import McpServer, McpServerQuerySet

_SERVING = Prepared(
    lambda given: McpServer.objects.serving(
        given.organisation,
        given.owner,
        agents=(given.agent, given.base),
        conversation_id=given.conversation,
    )
)
"""Asked for each run."""


def may_serve() -> Q:
    """Whether there may be any of `all_serving_in`; a conversation below another one looks for itself, since
    it has those of the topmost."""
    version = OuterRef("agent_version__agent"), OuterRef("agent_version__base__agent")
    there = McpServer.objects.serving(
        OuterRef("organisation"), OuterRef("owner"), agents=version, conversation_id=OuterRef("pk")
    )
    return Q(parent__isnull=False) | Q(Exists(there))


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


def all_serving_in(conversation: Conversation) -> list[McpServer]:
    """`serving_in`, read."""
    version = conversation.agent_version
    return _SERVING.all(
        organisation=conversation.organisation_id,
        owner=conversation.owner_id,
        agent=version.agent_id,
        base=version.base.agent_id if version.base is not None else version.agent_id,
        conversation=root_of(conversation),
    )


def serving_in(conversation: Conversation) -> McpServerQuerySet:
    """Everybody's, its organisation's, its agent's, its owner's and its own, the broadest first. An agent
    that is bounded by another one has that one's."""
    version = conversation.agent_version
    agents = [version.agent_id]
    if version.base is not None:
        agents.append(version.base.agent_id)
    return McpServer.objects.serving(
        conversation.organisation_id,
        conversation.owner_id,
        agents=agents,
        conversation_id=root_of(conversation),
    )
