"""`subscriptions/listen` (2026-07-28): a client hears that a conversation grew, a task or a list changed.

A stream tells that something changed, and of a task how it stands; the rest the client reads, by what its
token opens. Before it tells anything it looks whether that token is good still, and ends where it is not; it
ends by itself after a while as well, and the client asks again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any, Literal

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from live.hub import Nudge, hub

from .parts import Context, Method, Part
from .taskwire import detailed, takes_tasks
from .threads import in_thread
from .tools import Principal

MOST_STREAMS = 8
"""Of one person in one process."""
MOST_FOLLOWED = 50
"""Resources, and tasks, of one stream."""
MOST_SECONDS = 600.0
GATHER_SECONDS = 0.5
"""In which what happens is told as one."""
LOOK_SECONDS = 20.0
"""Between two looks at lists, which nothing tells of."""
SPARED_SECONDS = 5.0
"""In which they are not looked at again, however much else there is to tell."""

Lists = Literal["tools", "prompts", "resources"]
_NOTICES: Mapping[Lists, type[Any]] = {
    "tools": types.ToolListChangedNotification,
    "prompts": types.PromptListChangedNotification,
    "resources": types.ResourceListChangedNotification,
}
_ENDS = frozenset({"completed", "failed", "cancelled"})
_open: Counter[int] = Counter()


class TaskNews(types.Notification[dict[str, Any], Literal["notifications/tasks"]]):
    method: Literal["notifications/tasks"] = "notifications/tasks"


def listen_method(
    parts: Sequence[Part],
    speaker: Callable[[], Principal],
    names: Callable[[Lists], Awaitable[Sequence[str]]],
) -> Mapping[str, Method]:
    """`names`: what a list of this person's has now."""

    async def listen(
        context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if context.request_id is None:
            raise MCPError(types.INVALID_REQUEST, "subscriptions/listen requires a request id")
        who = speaker()
        with _place(who.user.pk):
            stream = _Stream(parts, who, context, names)
            await stream.begin(params.notifications)
            with suppress(TimeoutError):
                async with asyncio.timeout(MOST_SECONDS):
                    await stream.follow()
        return types.SubscriptionsListenResult(_meta=stream.meta)

    return {"subscriptions/listen": Method(types.SubscriptionsListenRequestParams, listen)}


@contextmanager
def _place(person: int) -> Iterator[None]:
    if _open[person] >= MOST_STREAMS:
        raise MCPError(types.INTERNAL_ERROR, "Subscription limit reached")
    _open[person] += 1
    try:
        yield
    finally:
        _open[person] -= 1
        if not _open[person]:
            del _open[person]


@dataclass(slots=True)
class _Stream:
    parts: Sequence[Part]
    who: Principal
    context: Context
    names: Callable[[Lists], Awaitable[Sequence[str]]]
    resources: dict[str, str] = field(default_factory=dict)
    """Addresses that are followed, with the conversation in whose log each changes."""
    tasks: dict[str, str] = field(default_factory=dict)
    """The same of tasks' ids."""
    lists: dict[Lists, Sequence[str]] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    """How a task stood when it was told last."""
    over: set[str] = field(default_factory=set)
    """Tasks that were told to have ended: nothing more becomes of them."""
    grown: set[str] = field(default_factory=set)
    """Conversations of which nothing was told since they grew."""
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def meta(self) -> dict[str, Any]:
        return {SUBSCRIPTION_ID_META_KEY: self.context.request_id}

    async def begin(self, wanted: types.SubscriptionFilter) -> None:
        """Find what of it is hers, and say so: the first that the client hears."""
        for uri in (wanted.resource_subscriptions or ())[:MOST_FOLLOWED]:
            if (conversation := await self._conversation_of(uri)) is not None:
                self.resources[uri] = conversation
        for uid in self._task_ids(wanted)[:MOST_FOLLOWED]:
            if (conversation := await self._conversation_of_task(uid)) is not None:
                self.tasks[uid] = conversation
        for name in _NOTICES:
            if getattr(wanted, f"{name}_list_changed"):
                self.lists[name] = await self.names(name)

    async def follow(self) -> None:
        """Until it is cancelled, or the token opens nothing any more."""
        async with AsyncExitStack() as open_lines, asyncio.TaskGroup() as followers:
            hearing: list[asyncio.Task[None]] = []
            for uid in {*self.resources.values(), *self.tasks.values()}:
                line = await open_lines.enter_async_context(hub.subscribe(uid))
                hearing.append(followers.create_task(self._hear(uid, line)))
            honoured = self._honoured()
            await self._send(types.SubscriptionsAcknowledgedNotification(params=honoured))
            self.grown.update(self.tasks.values())
            await self._tell_tasks(self._taken())
            looked, due = -inf, monotonic() + LOOK_SECONDS
            while await self._is_let_in_after_waiting(due):
                grown = self._taken()
                for uri, uid in self.resources.items():
                    if uid in grown and await self._conversation_of(uri) is not None:
                        await self._tell_updated(uri)
                await self._tell_tasks(grown)
                if monotonic() >= min(due, looked + SPARED_SECONDS):
                    await self._tell_lists()
                    looked = monotonic()
                    due = looked + LOOK_SECONDS
            for each in hearing:
                each.cancel()

    async def _hear(self, uid: str, line: Any) -> None:
        async for item in line:
            # Text that is arriving is in no log yet.
            if isinstance(item, Nudge):
                self.grown.add(uid)
                self.news.set()

    async def _is_let_in_after_waiting(self, due: float) -> bool:
        """For news, or until lists are due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(due - monotonic(), 0.0)):
                await self.news.wait()
            await asyncio.sleep(GATHER_SECONDS)
        is_let_in: bool = await in_thread(self.who.is_let_in)
        return is_let_in

    def _taken(self) -> set[str]:
        self.news.clear()
        grown, self.grown = self.grown, set()
        return grown

    async def _tell_updated(self, uri: str) -> None:
        params = types.ResourceUpdatedNotificationParams(uri=uri, _meta=self.meta)
        await self._send(types.ResourceUpdatedNotification(params=params))

    async def _tell_tasks(self, grown: set[str]) -> None:
        for uid, conversation in self.tasks.items():
            if conversation not in grown or uid in self.over:
                continue
            for part in self.parts:
                task = await part.task(self.who, self.context, uid)
                if task is None:
                    continue
                stands = {**detailed(task), "_meta": self.meta}
                del stands["resultType"]
                # That it was active meanwhile is no news.
                mark = {**stands, "lastUpdatedAt": ""}
                if self.told.get(uid) != mark:
                    self.told[uid] = mark
                    await self._send(TaskNews(params=stands))
                if task.status in _ENDS:
                    self.over.add(uid)
                    self.told.pop(uid)
                break

    async def _tell_lists(self) -> None:
        for name, before in self.lists.items():
            now = await self.names(name)
            if now != before:
                self.lists[name] = now
                await self._send(_NOTICES[name](params=types.NotificationParams(_meta=self.meta)))

    async def _send(self, notice: Any) -> None:
        await self.context.session.send_notification(notice, self.context.request_id)

    def _honoured(self) -> types.SubscriptionsAcknowledgedNotificationParams:
        agreed: dict[str, Any] = {f"{name}_list_changed": True for name in self.lists}
        if self.resources:
            agreed["resource_subscriptions"] = list(self.resources)
        if self.tasks:
            agreed["taskIds"] = list(self.tasks)
        return types.SubscriptionsAcknowledgedNotificationParams(
            notifications=types.SubscriptionFilter(**agreed), _meta=self.meta
        )

    def _task_ids(self, wanted: types.SubscriptionFilter) -> list[str]:
        given = (wanted.model_extra or {}).get("taskIds")
        if not isinstance(given, list) or not takes_tasks(self.context):
            return []
        return [each for each in given if isinstance(each, str)]

    async def _conversation_of(self, uri: str) -> str | None:
        for part in self.parts:
            if (found := await part.follow(self.who, uri)) is not None:
                return found
        return None

    async def _conversation_of_task(self, uid: str) -> str | None:
        for part in self.parts:
            if (found := await part.follow_task(self.who, uid)) is not None:
                return found
        return None
