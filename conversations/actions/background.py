"""People's hold on background commands: who may see them, and have one ended."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import require_own
from conversations.background import ask_for_end, end_here
from conversations.models import BackgroundCommand, Conversation
from harness.errors import NotFound


def cancel_background(
    *, actor: User, conversation: Conversation, background_uid: str
) -> BackgroundCommand:
    """End a command with everything it started; one that has ended stays as it is. The end is told in
    the conversation. Raises NotFound for what is not the actor's."""
    with transaction.atomic():
        found = BackgroundCommand.objects.visible_to(actor).filter(
            conversation=conversation, uid=background_uid.replace("\0", "")
        )
        row = found.first()
        if row is None:
            raise NotFound(_("There is no such background command."))
        require_own(actor, conversation)
        pk = ask_for_end(row.conversation_id, row.uid)
        if pk:
            transaction.on_commit(lambda: end_here(pk))
    return row


def cancel_all_background(*, actor: User, conversation: Conversation) -> int:
    """End every background command of the conversation; how many there were."""
    require_own(actor, conversation)
    running = BackgroundCommand.objects.running()
    uids = list(running.filter(conversation=conversation).values_list("uid", flat=True))
    for uid in uids:
        cancel_background(actor=actor, conversation=conversation, background_uid=uid)
    return len(uids)
