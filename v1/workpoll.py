"""Polling for work: an answer at once where there is some, else as soon as some comes, for a moment.

An async view, so that a worker that waits holds no thread.
"""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, NotAuthenticated
from rest_framework.request import Request

from accounts.api.authentication import caller_with, presented_secret
from accounts.api.request_ids import current_request_id
from agents.models import Environment
from harness.errors import Forbidden, NotFound
from jobs.connections import give_back
from live.hub import hub
from wire.parameters import check_query
from workers.actions.items import poll_work
from workers.items import Offered
from workers.models import EnvironmentKey, WorkItem

from .coroutines import refused
from .door import ALWAYS, operation, refuse_nul
from .paging import parameter, whole_number
from .work import Queue, WorkShape, work_shape
from .workers import worker_with

MOST_WAIT = 999
"""Milliseconds that an empty poll may be held open."""
RECLAIM = 5_000
"""Milliseconds after which what was offered and not acknowledged is offered again."""
LONGEST_RECLAIM = 86_400_000


class Secret(BaseModel):
    """What the secret of an offered item holds, for clients of the public protocol."""

    sessions_token: str

    def wire(self) -> str:
        encoded = json.dumps(self.model_dump()).encode()
        return base64.urlsafe_b64encode(encoded).decode().rstrip("=")


class PollWork(Queue):
    """Only described here; `poll` answers, without a thread while it waits."""

    scopes = {}
    workers = {"GET": (EnvironmentKey,)}

    @operation(
        "environments_work_poll",
        tag="work",
        response=WorkShape,
        query=(
            parameter("block_ms", OpenApiTypes.INT, f"1 to {MOST_WAIT}: how long to wait."),
            parameter("reclaim_older_than_ms", OpenApiTypes.INT, f"{RECLAIM} if left out."),
            OpenApiParameter("Anthropic-Worker-ID", OpenApiTypes.STR, OpenApiParameter.HEADER),
        ),
        summary="Ask for work; null if there is none",
    )
    def get(self, request: Request, uid: str) -> None:
        """Ask for work."""


async def poll(request: HttpRequest, uid: str) -> HttpResponseBase:
    """Work of the environment for the worker that asks, or null after `block_ms`."""
    try:
        if request.method != "GET":
            raise MethodNotAllowed(str(request.method))
        offered = await _poll(request, uid)
    except Exception as error:
        return refused(error)
    response = JsonResponse(offered, safe=False)
    response["request-id"] = current_request_id()
    return response


poll.cls = PollWork  # type: ignore[attr-defined]
poll.initkwargs = {}  # type: ignore[attr-defined]
poll.csrf_exempt = True  # type: ignore[attr-defined]


async def _poll(request: HttpRequest, uid: str) -> dict[str, Any] | None:
    key = await sync_to_async(_key)(request, uid)
    query = request.GET
    check_query(PollWork, "GET", query, ALWAYS)
    wait = whole_number(query, "block_ms", 0, least=1, most=MOST_WAIT) / 1_000
    older = whole_number(query, "reclaim_older_than_ms", RECLAIM, least=0, most=LONGEST_RECLAIM)
    worker = request.headers.get("Anthropic-Worker-ID", "").replace("\0", "")

    def ask() -> dict[str, Any] | None:
        try:
            offered = poll_work(key=key, worker=worker, reclaim_after=timedelta(milliseconds=older))
            return _shown(offered)
        finally:
            give_back()

    # Subscribe, then look: what comes in between is in one of the two.
    subscription = hub.subscribe(uid)
    try:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while (found := await sync_to_async(ask)()) is None:
            try:
                await asyncio.wait_for(anext(subscription), until - loop.time())
            except TimeoutError:
                return None
        return found
    finally:
        subscription.close()


def _key(request: HttpRequest, uid: str) -> EnvironmentKey:
    try:
        secret = presented_secret(request.headers)
        if not secret:
            raise NotAuthenticated
        refuse_nul(request)
        worker = worker_with(secret)
        if not isinstance(worker, EnvironmentKey):
            _refuse(secret, uid, worker)
        elif worker.environment.uid == uid:
            return worker
        raise NotFound(_("There is no such environment."))
    finally:
        give_back()


def _refuse(secret: str, uid: str, item: WorkItem | None) -> None:
    """Tells whoever may know of the environment that this is for its workers."""
    if item is not None:
        known = item.environment.uid == uid
    else:
        caller = caller_with(secret)
        if caller is None:
            raise AuthenticationFailed(_("This token is not valid."))
        rows = Environment.objects.visible_to(caller.user).usable_in(caller.organisation)
        known = rows.filter(uid=uid).exists()
    if known:
        raise Forbidden(_("Only workers may do this."), hint=_("Show a key of the environment."))


def _shown(offered: Offered | None) -> dict[str, Any] | None:
    if offered is None:
        return None
    return work_shape(offered.item, Secret(sessions_token=offered.secret).wire())
