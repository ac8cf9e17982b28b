"""Notes that programs keep on agents, environments and conversations: short names and texts.

They mean nothing to this server. Whoever may change the thing may change its notes.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.permissions import require_manager
from conversations.models import Agent, Conversation, Environment
from conversations.permissions import has_staff_permission, require_staff
from harness.errors import Invalid, NotFound, TooLarge

PAIRS = 16
KEY_LIMIT = 64
VALUE_LIMIT = 512


def note_agent(*, actor: User, agent: Agent, metadata: Mapping[str, str]) -> None:
    """In the place of all earlier notes. Raises as `actions.agents.change_agent`."""
    if not has_staff_permission(actor, "conversations.change_agent"):
        if not Agent.objects.visible_to(actor).filter(pk=agent.pk).exists():
            raise NotFound(_("There is no such agent."))
        if agent.organisation is None:
            require_staff(actor, "conversations.change_agent")
        else:
            require_manager(actor, agent.organisation)
    Agent.objects.filter(pk=agent.pk).update(metadata=check_metadata(metadata))


def note_environment(*, actor: User, environment: Environment, metadata: Mapping[str, str]) -> None:
    require_staff(actor, "conversations.change_environment")
    Environment.objects.filter(pk=environment.pk).update(metadata=check_metadata(metadata))


def note_conversation(
    *, actor: User, conversation: Conversation, metadata: Mapping[str, str]
) -> None:
    """NotFound unless it is the actor's."""
    own = Conversation.objects.visible_to(actor).filter(pk=conversation.pk)
    if not own.exists():
        raise NotFound(_("There is no such conversation."))
    Conversation.objects.filter(pk=conversation.pk).update(metadata=check_metadata(metadata))


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """As it is stored; Invalid for too many pairs, TooLarge for too long a name or text."""
    if len(metadata) > PAIRS:
        raise Invalid(
            _("There are more than %(limit)d pairs.") % {"limit": PAIRS},
            field="metadata",
            hint=_("Take some away."),
        )
    for key, value in metadata.items():
        if not key or len(key) > KEY_LIMIT or len(value) > VALUE_LIMIT:
            raise TooLarge(
                _("A name has 1 to %(key)d characters, a text up to %(value)d.")
                % {"key": KEY_LIMIT, "value": VALUE_LIMIT},
                field="metadata",
                hint=_("Shorten it."),
            )
    return dict(metadata)
