"""A person answers what a server asked of her, or declines. The first answer counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_conversation, writable_conversation
from conversations.broughtwords import bring_words
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.opencalls import open_call
from conversations.wakes import wake
from harness.content import as_blocks
from harness.errors import Conflict, Invalid, NotFound
from harness.events import AgentToolResult
from harness.history import Entry
from mcpservers.asking import ACCOUNT, ASK, asked_in, words_of
from mcpservers.elicitation import faults_of
from mcpservers.models import McpQuestion, McpServer


def answer_server(
    *,
    actor: User,
    question: McpQuestion,
    accept: bool,
    contents: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """`contents`: of each form, by the server's name for it. Raises NotFound, Conflict where it is not asked
    any more, and Invalid where a value is none that the server takes."""
    asked = asked_in(question)
    given = contents or {}
    responses: dict[str, Any] = {}
    for name, each in asked.items():
        if not accept:
            responses[name] = {"action": "decline"}
        elif each.url:
            responses[name] = {"action": "accept"}
        else:
            content = dict(given.get(name, {}))
            if faults := faults_of(each, content):
                raise Invalid(
                    _("The server would not take this: %(why)s") % {"why": "; ".join(faults)[:500]},
                    field="answer",
                    hint=_("Put it right, or decline."),
                )
            responses[name] = {"action": "accept", "content": content}
    with transaction.atomic():
        conversation = writable_conversation(actor, question.conversation)
        if question.kind == McpQuestion.Kind.CONNECT:
            own_conversation(actor, question.conversation)
            if accept:
                raise Conflict(_("Nothing is connected yet."), hint=_("Connect first, or decline."))
            responses = {ACCOUNT: {"action": "decline"}}
        _give(actor, conversation, question, responses)


def answer_connected(*, actor: User, server: McpServer) -> None:
    """Have her own calls that waited for it go on. The connection itself was told of where it was made."""
    waiting = McpQuestion.objects.filter(
        server=server,
        kind=McpQuestion.Kind.CONNECT,
        answered_at=None,
        conversation__owner=actor,
    ).select_related("conversation")
    for question in waiting:
        try:
            with transaction.atomic():
                conversation = own_conversation(actor, question.conversation)
                _give(actor, conversation, question, {ACCOUNT: {"action": "accept"}})
        except (Conflict, NotFound):
            continue  # its call was stopped meanwhile


def _give(
    actor: User, conversation: Conversation, question: McpQuestion, responses: Mapping[str, Any]
) -> None:
    """`conversation` is locked and the actor may write in it."""
    held = McpQuestion.objects.select_for_update().get(pk=question.pk)
    use = Event.objects.filter(
        conversation=conversation,
        type="agent.tool_use",
        payload__name=ASK,
        payload__within=held.call_uid,
        payload__input__question=held.uid,
    ).first()
    waits = use is not None and open_call(conversation, use.uid) is not None
    if use is None or held.answered_at is not None or not waits:
        raise Conflict(
            _("This is not asked any more."), hint=_("It was answered, or its call was stopped.")
        )
    held.answered_at, held.answered_by = timezone.now(), actor
    held.save(update_fields=["answered_at", "answered_by"])
    result = AgentToolResult(tool_use_id=use.uid, content=as_blocks(words_of(responses)))
    append(conversation.pk, [Entry.of(result)], actor=actor)
    # The server may say them to the agent.
    bring_words(conversation, [actor.pk], way="answer")
    Conversation.objects.filter(pk=conversation.pk).update(owes_run=True)
    wake(conversation.pk)
