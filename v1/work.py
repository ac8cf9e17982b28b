"""`/v1/environments/{id}/work`: the queue that workers of a self-hosted environment take from."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.db.models import Min, QuerySet
from django.utils.timezone import is_naive
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Environment
from harness.errors import Forbidden, Invalid, NotFound
from reading.moments import moment_of
from wire.metadata import check_metadata
from workers.actions import items as actions
from workers.items import LONGEST_TTL, SHORTEST_TTL, workers_polling
from workers.models import EnvironmentKey, WorkItem

from .door import MANAGE, READ, Body, Shape, body_of, operation
from .environments import find_environment
from .metadata import MetadataPatch
from .outgoing import timestamp
from .paging import Page, describe, page_of, paging, parameter, whole_number
from .problems import envelope
from .workers import WorkDoor

NO_HEARTBEAT = "NO_HEARTBEAT"


class SessionWork(Shape):
    type: Literal["session"] = "session"
    id: str


class WorkShape(Shape):
    type: Literal["work"] = "work"
    id: str
    environment_id: str
    data: SessionWork
    state: Literal["queued", "starting", "active", "stopping", "stopped"]
    secret: str | None = None
    """Only in the answer to a poll."""
    metadata: dict[str, str]
    created_at: datetime
    acknowledged_at: datetime | None
    started_at: datetime | None
    latest_heartbeat_at: datetime | None
    stop_requested_at: datetime | None
    stopped_at: datetime | None
    x_worker: str
    x_ending: str
    """How it ended: `given_back`, `lost`, `unclaimed`, `needless`; empty while it has not."""


class WorkPage(Page[WorkShape]):
    pass


class HeartbeatShape(Shape):
    type: Literal["work_heartbeat"] = "work_heartbeat"
    last_heartbeat: str
    lease_extended: bool
    state: Literal["queued", "starting", "active", "stopping", "stopped"]
    ttl_seconds: int


class StatsShape(Shape):
    type: Literal["work_queue_stats"] = "work_queue_stats"
    depth: int
    pending: int
    oldest_queued_at: datetime | None
    workers_polling: int


class WorkUpdate(Body):
    metadata: MetadataPatch


class WorkStop(Body):
    force: bool | None = None


def work_shape(item: WorkItem, secret: str | None = None) -> dict[str, Any]:
    return WorkShape(
        id=item.uid,
        environment_id=item.environment.uid,
        data=SessionWork(id=item.conversation.uid),
        state=item.state,
        secret=secret,
        metadata=item.metadata,
        created_at=item.created_at,
        acknowledged_at=item.acknowledged_at,
        started_at=item.started_at,
        latest_heartbeat_at=item.heartbeat_at,
        stop_requested_at=item.stop_requested_at,
        stopped_at=item.stopped_at,
        x_worker=item.worker,
        x_ending=item.ending,
    ).wire()


class Queue(WorkDoor):
    def environment(self, uid: str) -> Environment:
        """The one in the address, if it is the holder's to work in."""
        holder = self.holder
        if isinstance(holder, EnvironmentKey | WorkItem):
            if holder.environment.uid != uid:
                raise NotFound(_("There is no such environment."))
            return holder.environment
        return find_environment(self.caller, uid)

    def items(self, environment: Environment) -> QuerySet[WorkItem]:
        """Those of its queue that the holder may know of."""
        rows = environment.work_items.select_related("conversation", "environment")
        holder = self.holder
        if not isinstance(holder, EnvironmentKey | WorkItem):
            rows = rows.filter(pk__in=WorkItem.objects.visible_to(holder).values("pk"))
        return rows

    def item(self, uid: str, work: str) -> WorkItem:
        return actions.find_work(self.holder, self.environment(uid), work)

    def for_its_worker(self, uid: str, work: str) -> tuple[EnvironmentKey | WorkItem, WorkItem]:
        """The holder and the item; Forbidden for a person's program that may know of it."""
        item, holder = self.item(uid, work), self.holder
        if isinstance(holder, EnvironmentKey | WorkItem):
            return holder, item
        raise Forbidden(
            _("Only workers may do this."),
            hint=_("Show a key of the environment, or the secret of the work item."),
        )


class Work(Queue):
    scopes = {"GET": READ}
    workers = {"GET": (EnvironmentKey,)}

    @operation(
        "environments_work_list",
        tag="work",
        response=WorkPage,
        query=paging(),
        summary="List an environment's work items, newest first",
    )
    def get(self, request: Request, uid: str) -> Response:
        rows = self.items(self.environment(uid))
        query = request.query_params
        about = describe(f"work of {uid}", query)
        return Response(
            page_of(rows, query, about=about, show=lambda found: list(map(work_shape, found)))
        )


class WorkStats(Queue):
    scopes = {"GET": READ}
    workers = {"GET": (EnvironmentKey,)}

    @operation(
        "environments_work_stats",
        tag="work",
        response=StatsShape,
        summary="How much work waits in an environment",
    )
    def get(self, request: Request, uid: str) -> Response:
        environment = self.environment(uid)
        queued = self.items(environment).filter(state=WorkItem.State.QUEUED)
        depth = queued.filter(offered_at=None).count()
        return Response(
            StatsShape(
                depth=depth,
                pending=queued.exclude(offered_at=None).count(),
                oldest_queued_at=queued.aggregate(oldest=Min("created_at"))["oldest"],
                workers_polling=workers_polling(environment),
            ).wire()
        )


class OneWork(Queue):
    scopes = {"GET": READ, "POST": MANAGE}
    workers = {"GET": (EnvironmentKey,)}

    @operation(
        "environments_work_retrieve", tag="work", response=WorkShape, summary="Read a work item"
    )
    def get(self, request: Request, uid: str, work: str) -> Response:
        return Response(work_shape(self.item(uid, work)))

    @operation(
        "environments_work_update",
        tag="work",
        request=WorkUpdate,
        response=WorkShape,
        summary="Merge into what programs note on a work item",
    )
    def post(self, request: Request, uid: str, work: str) -> Response:
        item = self.item(uid, work)
        body = body_of(request, WorkUpdate)
        changed = {**item.metadata, **body.metadata}
        check_metadata({name: text for name, text in changed.items() if text is not None})
        actor = self.caller.user
        return Response(
            work_shape(actions.note_work(actor=actor, item=item, metadata=body.metadata))
        )


class AckWork(Queue):
    scopes = {"POST": READ}
    workers = {"POST": (EnvironmentKey, WorkItem)}

    @operation(
        "environments_work_ack",
        tag="work",
        response=WorkShape,
        summary="Take a work item that a poll offered",
    )
    def post(self, request: Request, uid: str, work: str) -> Response:
        holder, item = self.for_its_worker(uid, work)
        return Response(work_shape(actions.acknowledge_work(holder=holder, item=item)))


class Heartbeat(Queue):
    scopes = {"POST": READ}
    workers = {"POST": (EnvironmentKey, WorkItem)}

    @operation(
        "environments_work_heartbeat",
        tag="work",
        response=HeartbeatShape,
        query=(
            parameter("expected_last_heartbeat", text=f"Or {NO_HEARTBEAT}."),
            parameter("desired_ttl_seconds", OpenApiTypes.INT),
        ),
        summary="Keep a work item's lease",
    )
    def post(self, request: Request, uid: str, work: str) -> Response:
        query = request.query_params
        holder, item = self.for_its_worker(uid, work)
        given = query.get("expected_last_heartbeat")
        ttl = whole_number(query, "desired_ttl_seconds", 0, least=SHORTEST_TTL, most=LONGEST_TTL)
        beat = actions.heartbeat_work(
            holder=holder,
            item=item,
            expected=_moment(given),
            compare=bool(given),
            ttl_seconds=ttl or None,
        )
        found = beat.item
        state = {
            "last_heartbeat": timestamp(found.heartbeat_at),
            "lease_extended": beat.kept,
            "state": found.state,
            "ttl_seconds": found.ttl_seconds,
        }
        ended_well = (WorkItem.Ending.GIVEN_BACK, WorkItem.Ending.NEEDLESS)
        if beat.kept or found.ending in ended_well:
            shape = {**state, "last_heartbeat": state["last_heartbeat"] or ""}
            return Response(HeartbeatShape.model_validate(shape).wire())
        words = _("The last heartbeat is another one: the lease is not yours any more.")
        body = envelope(
            "invalid_request_error",
            words,
            error_code="heartbeat_precondition_failed",
            current_state=state,
        )
        return Response(body, status=412)


class StopWork(Queue):
    scopes = {"POST": MANAGE}
    workers = {"POST": (EnvironmentKey, WorkItem)}

    @operation(
        "environments_work_stop",
        tag="work",
        request=WorkStop,
        response=WorkShape,
        summary="Give a work item back, or have its worker wind down",
    )
    def post(self, request: Request, uid: str, work: str) -> Response:
        item = self.item(uid, work)
        body = body_of(request, WorkStop)
        stopped = actions.stop_work(holder=self.holder, item=item, force=bool(body.force))
        return Response(work_shape(stopped))


def _moment(given: str | None) -> datetime | None:
    if not given or given == NO_HEARTBEAT:
        return None
    moment = moment_of(given.replace(" ", "+"))
    if moment is None or is_naive(moment):
        raise Invalid(
            _("It is not the time of a heartbeat."),
            field="expected_last_heartbeat",
            hint=_("Send last_heartbeat of the answer before, or NO_HEARTBEAT."),
        )
    return moment
