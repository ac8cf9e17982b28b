"""People's hold on subagents: who may have one stopped. All else it does is a conversation's."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import require_writable
from conversations.models import Conversation
from harness.errors import NotFound
from jobs.dispatch import dispatch
from subagents.models import Subagent
from subagents.projection import END
from subagents.stopping import ask_for_end


def stop_subagent(*, actor: User, conversation: Conversation) -> int:
    """Stop what is asked of this conversation by the one above, with everything below it; how many it was.

    One that has ended stays as it is. Raises NotFound for what is not the actor's to see or no subagent's,
    Forbidden where she may only read.
    """
    with transaction.atomic():
        if conversation.parent is None:
            raise NotFound(_("There is no such subagent."))
        require_writable(actor, conversation.parent)
        return _stop(Subagent.objects.filter(child=conversation), conversation.parent)


def stop_subagents(*, actor: User, conversation: Conversation) -> int:
    """Stop all that this conversation's agent has asked, also in the background; how many there were. Raises
    NotFound, and Forbidden where the actor may only read."""
    with transaction.atomic():
        require_writable(actor, conversation)
        return _stop(Subagent.objects.filter(parent=conversation), conversation)


def _stop(rows: QuerySet[Subagent], parent: Conversation) -> int:
    stopped = ask_for_end(rows)
    if stopped:
        dispatch(END, parent=parent.pk)
    return stopped
