"""Calls of the tools that a front end brought: which wait for it, and the results it sends for them.

They are no interrupts: such a run has ended well, and a later one brings the results as messages of
role “tool”. What else waits for a person is `interrupts`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _

from conversations.models import Conversation, Event
from conversations.opencalls import answered
from harness.errors import Conflict, Invalid, NotFound
from harness.events import AgentCustomToolUse, UserCustomToolResult

from .incoming import ToolMessage
from .interrupts import undecided


def front_end_calls(conversation: Conversation, call_uids: Iterable[str]) -> list[str]:
    """Those that are a front end's, in the order they were made."""
    rows = Event.objects.filter(conversation=conversation, uid__in=list(call_uids)).order_by("seq")
    return [row.uid for row in rows if _is_front_ends(row)]


def require_none_pending(conversation: Conversation) -> None:
    """Raises Conflict while the conversation rests with calls that the front end is to answer."""
    conversation.refresh_from_db(fields=["status", "stop_reason"])
    if not conversation.waits_for_person:
        return
    if pending := front_end_calls(conversation, undecided(conversation)):
        raise Conflict(
            _("These calls of the front end's tools have no result: %(ids)s.")
            % {"ids": ", ".join(pending)},
            hint=_("Send a message of role “tool” for each, before the person's."),
        )


def results_of(
    conversation: Conversation, given: Sequence[ToolMessage], *, alone: bool
) -> list[UserCustomToolResult]:
    """What the messages say to the log. Of calls that others answered the client tells again as history.

    `alone`: they are all that the run brings; then each must be of this conversation, and what has a
    result already is taken to be repeated. Raises NotFound, Conflict for a call that no message
    answers, Invalid where nothing is new.
    """
    uids = [each.tool_call_id for each in given]
    if len(set(uids)) != len(uids):
        raise Invalid(_("A call is answered twice."), field="messages", hint=_("Name each once."))
    calls = {row.uid: row for row in Event.objects.filter(conversation=conversation, uid__in=uids)}
    done = answered(conversation, uids)
    results = []
    for each in given:
        uid, row = each.tool_call_id, calls.get(each.tool_call_id)
        wanted = row is not None and _is_front_ends(row) and (alone or uid not in done)
        if wanted:
            results.append(
                UserCustomToolResult(
                    custom_tool_use_id=uid, content=each.said(), is_error=bool(each.error)
                )
            )
        elif alone and row is None:
            raise NotFound(_("There is no call %(id)s in this thread.") % {"id": uid})
        elif alone and uid not in done:
            raise Conflict(
                _("%(id)s is no call of a front end's tool.") % {"id": uid},
                hint=_("If it is an open interrupt, answer it by resume."),
            )
    if alone and not results:
        raise Invalid(
            _("The run brings nothing new."),
            field="messages",
            hint=_("Send results only of calls that the run before left open."),
        )
    return results


def _is_front_ends(row: Event) -> bool:
    return isinstance(row.value, AgentCustomToolUse) and row.value.of_front_end
