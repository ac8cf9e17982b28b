"""What a worker does with the work queue of its environment, and what people may do to an item of it.

A worker shows the key of its environment or, for one item, the secret it got with that. Neither opens
anything else; nobody else's is *not found*.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.persons import whose_place
from accounts.staff import require_staff
from agents.models import Environment
from conversations.actions.media import check_media
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.wakes import wake
from harness.calls import note_of_edit
from harness.content import Block, Text, as_blocks
from harness.errors import Conflict, InvalidToolInput, NotAwaited, NotFound, WorkLost
from harness.events import ANSWERS, AgentToolUse, CallHandedOut, UserToolResult
from harness.history import Entry
from harness.overflow import LIMIT, previewed
from harness.tools import Tool, check_input
from tools_app.elsewhere import edition_of
from workers import items as work
from workers.models import EnvironmentKey, HandedCall, WorkItem

CHANGE_WORK = "workers.change_workitem"

Holder = EnvironmentKey | WorkItem | User
"""Who acts: any worker of an environment, the worker of one item, or a person."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat found. `kept` says whether the lease was prolonged."""

    item: WorkItem
    kept: bool


def poll_work(*, key: EnvironmentKey, worker: str, reclaim_after: timedelta) -> work.Offered | None:
    """Work of the key's environment for this worker, with the secret of that item; None: there is
    none now. It is the worker's once it acknowledged it."""
    work.note_polling(key.environment, worker)
    return work.offer(key, worker=worker, reclaim_after=reclaim_after)


def find_work(holder: Holder, environment: Environment, uid: str) -> WorkItem:
    """The item, if it is one of `environment` and the holder's to see. Raises NotFound."""
    rows = WorkItem.objects.select_related("conversation", "environment").filter(
        environment=environment, uid=uid
    )
    match holder:
        case EnvironmentKey():
            rows = rows.filter(environment=holder.environment_id)
        case WorkItem():
            rows = rows.filter(pk=holder.pk)
        case User():
            rows = rows.filter(pk__in=WorkItem.objects.visible_to(holder).values("pk"))
    item = rows.first()
    if item is None:
        raise NotFound(_("There is no such work item."))
    return item


def acknowledge_work(*, holder: EnvironmentKey | WorkItem, item: WorkItem) -> WorkItem:
    """Take an item that was offered. Raises NotFound, and Conflict when it is not on offer any more."""
    found = find_work(holder, item.environment, item.uid)
    if not work.acknowledge(found):
        raise Conflict(
            _("This work item is not on offer any more."),
            hint=_("Ask for work again: what is left of it waits under a new id."),
        )
    found.refresh_from_db()
    return found


def heartbeat_work(
    *,
    holder: EnvironmentKey | WorkItem,
    item: WorkItem,
    expected: datetime | None = None,
    compare: bool = True,
    ttl_seconds: int | None = None,
) -> Beat:
    """Prolong the lease if the last heartbeat is the `expected` one (None: there was none).

    A lease that has run out is not prolonged: then the item is ended, and what is left of it waits
    for another worker. Raises NotFound.
    """
    found = find_work(holder, item.environment, item.uid)
    ttl = settings.AGENTSITE_WORK_LEASE_SECONDS if ttl_seconds is None else ttl_seconds
    kept = work.beat(found, expected=expected, compare=compare, ttl=ttl)
    if not kept:
        work.end_lapsed()
    found.refresh_from_db()
    return Beat(found, kept)


def stop_work(*, holder: Holder, item: WorkItem, force: bool) -> WorkItem:
    """Give an item back, or have its worker wind down. Calls without an answer wait for another worker
    or, where they may have happened, for a person.

    Raises NotFound, Forbidden for a person whose conversation it is not and who is not staff with the
    permission, and Conflict when it has ended.
    """
    found = find_work(holder, item.environment, item.uid)
    if isinstance(holder, User):
        _require_own(holder, found)
    done = work.ask_to_stop(found) if not force else False
    if not done and not work.give_back(found):
        raise Conflict(
            _("This work item has ended."), hint=_("What was left of it waits under a new id.")
        )
    found.refresh_from_db()
    return found


def note_work(*, actor: User, item: WorkItem, metadata: Mapping[str, str | None]) -> WorkItem:
    """Merge into what programs note on an item; None takes a note away. Raises NotFound, Forbidden."""
    found = find_work(actor, item.environment, item.uid)
    _require_own(actor, found)
    with transaction.atomic():
        held = WorkItem.objects.select_for_update(of=("self",), no_key=True).get(pk=found.pk)
        merged = {**held.metadata, **metadata}
        held.metadata = {name: text for name, text in merged.items() if text is not None}
        held.save(update_fields=["metadata"])
    found.refresh_from_db()
    return found


def give_tool_result(
    *, item: WorkItem, call_uid: str, content: Sequence[Block], is_error: bool = False
) -> Event:
    """Answer a call that was handed out to the item's worker. The same answer sent again is the stored
    one; a longer text than fits a prompt is shortened in its middle.

    Raises NotFound for what is no call of the conversation, NotAwaited for one that this worker was
    not given or that has its answer, WorkLost when the lease is over, Invalid for a picture or a
    document that no model could read, and Busy as `check_media`.
    """
    content = check_media(content, who=of_worker(item))
    subject = call_uid.replace("\0", "")  # one of the databases cannot look for it
    with transaction.atomic():
        held = (
            Conversation.objects.select_for_update(of=("self",), no_key=True)
            .select_related("environment")
            .filter(pk=item.conversation_id)
            .first()
        )
        if held is None:
            raise NotFound(_("There is no such session."))
        about = list(Event.objects.filter(conversation=held, subject=subject).order_by("seq"))
        use = about[0].value if about and about[0].uid == subject else None
        sent = [row.value for row in about if isinstance(row.value, CallHandedOut)]
        if not isinstance(use, AgentToolUse) or not sent:
            raise NotFound(_("There is no such call."))
        result = _result(held, subject, use, sent[-1], content, is_error)
        for row in about:
            if row.type in ANSWERS:
                if row.value == result:
                    return row
                raise NotAwaited(
                    _("This call has its answer already."),
                    field="tool_use_id",
                    hint=_("The first answer counts; leave it."),
                )
        if not work.holds(item):
            raise WorkLost(
                _("This work item is not yours any more: its lease ran out, or it was ended."),
                hint=_("Ask for work again; do not repeat the call."),
            )
        if not HandedCall.objects.filter(call_uid=subject, sent_to=item).exists():
            raise NotAwaited(
                _("This call was not given to this worker."),
                field="tool_use_id",
                hint=_("Answer only the calls that the session's events tell you of."),
            )
        row = append(held.pk, [Entry.of(result)])[0]
        wake(held.pk)
    return row


def of_worker(item: WorkItem) -> Hashable:
    """Whose files a worker's are while they are looked at: its conversation's owner's, beside her own.
    The conversation may be gone."""
    owner = User.objects.filter(conversations=item.conversation_id).first()
    return ("worker", whose_place(owner) if owner is not None else None)


def _result(
    conversation: Conversation,
    call_uid: str,
    use: AgentToolUse,
    sent: CallHandedOut,
    content: Sequence[Block],
    is_error: bool,
) -> UserToolResult:
    tool = edition_of(use.name)
    blocks = _shortened(content)
    if tool is not None and _sent_as(tool, use.input) != sent.input:
        blocks = (*as_blocks(note_of_edit(sent.input)), *blocks)
    return UserToolResult(
        tool_use_id=call_uid,
        content=blocks,
        is_error=is_error,
        # Whatever was asked for: nobody here knows what the worker's machine puts into its answer.
        untrusted=not conversation.environment.trusts_workers,
    )


def _sent_as(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a worker would have been told of the model's own input; None where that was unfit."""
    try:
        check_input(tool, given)
    except InvalidToolInput:
        return None
    return tool.handed_out(given)[1] if tool.handed_out is not None else None


def _shortened(content: Sequence[Block]) -> tuple[Block, ...]:
    texts = [block.text for block in content if isinstance(block, Text)]
    if sum(map(len, texts)) <= LIMIT:
        return tuple(content)
    others = [block for block in content if not isinstance(block, Text)]
    return (Text(text=previewed("\n".join(texts), "")), *others)


def _require_own(actor: User, item: WorkItem) -> None:
    if not Conversation.objects.owned_by(actor).filter(pk=item.conversation_id).exists():
        require_staff(actor, CHANGE_WORK)
