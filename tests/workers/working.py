"""What workers do in tests, and the scripts whose calls they are to carry out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.content import as_blocks
from providers.scripted import call, reply
from workers import items as work
from workers.actions.items import acknowledge_work, give_tool_result, heartbeat_work, poll_work
from workers.models import EnvironmentKey, HandedCall, WorkItem

RECLAIM = timedelta(seconds=5)
WRITE = reply(call("write_file", path="a.txt", content="x"))
RUN = reply(call("bash", command="make"))
EDIT = reply(call("edit_file", path="a.txt", old_text="a", new_text="b"))
READ = reply(call("read_file", path="a.txt"))
ASKS = (ToolRule(tool="*", permission="always_ask"),)


def taken(key: EnvironmentKey, worker: str = "one") -> WorkItem:
    """An item as its worker has it: offered, acknowledged, alive, told of its calls."""
    offered = poll_work(key=key, worker=worker, reclaim_after=RECLAIM)
    assert offered is not None
    item = acknowledge_work(holder=key, item=offered.item)
    assert heartbeat_work(holder=item, item=item).kept
    work.send_calls(item)
    item.refresh_from_db()
    return item


def only_call(conversation: Conversation) -> str:
    return conversation.events.filter(type="agent.tool_use").latest("seq").uid


def answer(item: WorkItem, call_uid: str, words: str = "done", **more: Any):
    return give_tool_result(item=item, call_uid=call_uid, content=as_blocks(words), **more)


def lapse(item: WorkItem) -> None:
    """Its worker is silent for longer than its lease."""
    WorkItem.objects.filter(pk=item.pk).update(lease_until=Now() - timedelta(seconds=1))


def unanswered(conversation: Conversation) -> int:
    return HandedCall.objects.filter(conversation=conversation).count()
