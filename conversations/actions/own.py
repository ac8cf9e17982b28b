"""The first step of every action on a conversation: may the actor do this there, and, where something is to
happen in it, is it still open?

What is not said to be others' as well (`readable_`, `copyable_`, `writable_`, `decidable_`) is its owner's
alone.
"""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import Agent
from conversations.models import Conversation
from conversations.models.conversation import ConversationQuerySet
from harness.errors import Conflict, Forbidden, NotFound
from jobs.prepared import Prepared


def _locked(rows: Callable[[User], ConversationQuerySet]) -> Prepared[Conversation]:
    return Prepared(
        lambda given: (
            rows(given.user)
            .select_for_update(of=("self",), no_key=True)
            .select_related("agent_version")  # what follows a message asks for it
            .filter(pk=given.pk)
        )
    )


_HELD = _locked(lambda user: Conversation.objects.owned_by(user))
_HELD_TO_READ = _locked(lambda user: Conversation.objects.visible_to(user))
_HELD_TO_WRITE = _locked(lambda user: Conversation.objects.writable_by(user))
_HELD_TO_DECIDE = _locked(lambda user: Conversation.objects.decidable_by(user))
_OWN = Prepared(
    lambda given: Conversation.objects.owned_by(given.user).filter(pk=given.pk).values_list("pk")
)
_READABLE = Prepared(
    lambda given: Conversation.objects.visible_to(given.user).filter(pk=given.pk).values_list("pk")
)
_WRITABLE = Prepared(
    lambda given: Conversation.objects.writable_by(given.user).filter(pk=given.pk).values_list("pk")
)


def own_conversation(actor: User, conversation: Conversation) -> Conversation:
    """The row as it is now, locked; NotFound unless it is the actor's, Forbidden if she may only read it,
    Conflict if it has ended.

    Needs a transaction, which holds the lock.
    """
    return _open(_HELD.first(user=actor.pk, pk=conversation.pk), actor, conversation)


def writable_conversation(actor: User, conversation: Conversation) -> Conversation:
    """`own_conversation`, also for whom its owner lets write in it, with an agent that is hers to use."""
    return _held(actor, conversation, _HELD_TO_WRITE, by_agent=True)


def copyable_conversation(actor: User, conversation: Conversation) -> Conversation:
    """`own_conversation`, also for whoever may read it, with an agent that is hers to use."""
    return _held(actor, conversation, _HELD_TO_READ, by_agent=True)


def decidable_conversation(actor: User, conversation: Conversation) -> Conversation:
    """`own_conversation`, also for whom its owner lets answer calls in it."""
    return _held(actor, conversation, _HELD_TO_DECIDE)


def own_even_ended(actor: User, conversation: Conversation, *, lock: bool = False) -> Conversation:
    """The row as it is now, also of one that has ended; raises otherwise as `own_conversation`."""
    own = Conversation.objects.owned_by(actor).filter(pk=conversation.pk)
    found = (own.select_for_update(of=("self",)) if lock else own).first()
    if found is None:
        raise _refusal(actor, conversation)
    return found


def readable_conversation(actor: User, conversation: Conversation) -> Conversation:
    """The row as it is now; NotFound unless the actor may read it. For what is each reader's own."""
    found = Conversation.objects.visible_to(actor).filter(pk=conversation.pk).first()
    if found is None:
        raise NotFound(_("There is no such conversation."))
    return found


def require_own(actor: User, conversation: Conversation) -> None:
    """NotFound unless it is the actor's, Forbidden if she may only read it."""
    if not _OWN.exists(user=actor.pk, pk=conversation.pk):
        raise _refusal(actor, conversation)


def require_writable(actor: User, conversation: Conversation) -> None:
    """NotFound, and Forbidden if she may only read it."""
    if not _WRITABLE.exists(user=actor.pk, pk=conversation.pk):
        raise _refusal(actor, conversation)


def may_read(actor: User, conversation: Conversation) -> bool:
    return _READABLE.exists(user=actor.pk, pk=conversation.pk)


def require_readable(actor: User, conversation: Conversation) -> None:
    """NotFound unless the actor may read it."""
    if not may_read(actor, conversation):
        raise NotFound(_("There is no such conversation."))


def _held(
    actor: User,
    conversation: Conversation,
    others: Prepared[Conversation],
    *,
    by_agent: bool = False,
) -> Conversation:
    """Her own, or one of `others`; `by_agent`: whose agent is to work for her there."""
    held = _HELD.first(user=actor.pk, pk=conversation.pk)
    if held is None:
        held = others.first(user=actor.pk, pk=conversation.pk)
        if by_agent:
            _require_agent(actor, held)
    return _open(held, actor, conversation)


def _open(held: Conversation | None, actor: User, conversation: Conversation) -> Conversation:
    if held is None:
        raise _refusal(actor, conversation)
    if held.status == Conversation.Status.TERMINATED:
        raise Conflict(_("This conversation has ended."), hint=_("Begin a new one."))
    return held


def _require_agent(actor: User, held: Conversation | None) -> None:
    """Nobody makes an agent work by way of somebody else's conversation that she could not use herself."""
    if held is None:
        return
    if not Agent.objects.visible_to(actor).filter(versions=held.agent_version_id).exists():
        raise Forbidden(
            _("You may not use the agent of this conversation."),
            hint=_("Its owner can share the agent with your organisation."),
        )


def _refusal(actor: User, conversation: Conversation) -> NotFound | Forbidden:
    if Conversation.objects.visible_to(actor).filter(pk=conversation.pk).exists():
        return Forbidden(
            _("This conversation was shared with you, but not for this."),
            hint=_("Ask its owner."),
        )
    return NotFound(_("There is no such conversation."))
