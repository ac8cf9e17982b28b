"""`/v1/deployment_runs`: what became of the times at which schedules were to begin a session.

Runs that were left out are no runs to the public API; the pages show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from harness.errors import NotFound
from schedules.models import OrderRun

from .door import READ, Door, Shape, operation
from .paging import Page, choice, describe, flag, page_of, paging, parameter, time_window, times

MOST_RUNS = 1_000
TRIGGERS = ("schedule", "manual")


class AgentRef(Shape):
    type: Literal["agent"] = "agent"
    id: str
    version: int


class RunError(Shape):
    type: Literal[
        "agent_archived_error",
        "environment_archived_error",
        "environment_not_found_error",
        "vault_archived_error",
        "vault_not_found_error",
        "file_not_found_error",
        "self_hosted_resources_unsupported_error",
        "session_rate_limited_error",
        "session_creation_rejected_error",
        "unknown_error",
    ]
    message: str


class ScheduleTrigger(Shape):
    type: Literal["schedule"] = "schedule"
    scheduled_at: datetime


class ManualTrigger(Shape):
    type: Literal["manual"] = "manual"


class DeploymentRunShape(Shape):
    type: Literal["deployment_run"] = "deployment_run"
    id: str
    deployment_id: str
    agent: AgentRef
    trigger_context: ScheduleTrigger | ManualTrigger
    session_id: str | None
    error: RunError | None
    created_at: datetime
    x_trigger: str
    """`schedule`, `manual`, `webhook`, or `after`: the end of another deployment's run."""
    x_state: str
    """`started`, `succeeded` or `failed`: how its session stands."""
    x_failure: str | None
    """The code with which its session failed."""
    x_summary: str
    x_cost_usd: str | None
    x_ended_at: datetime | None


class DeploymentRunPage(Page[DeploymentRunShape]):
    pass


def run_shape(run: OrderRun) -> dict[str, Any]:
    trigger: ScheduleTrigger | ManualTrigger = ManualTrigger()
    if run.due_at is not None:
        trigger = ScheduleTrigger(scheduled_at=run.due_at)
    failed = run.state == OrderRun.State.FAILED
    unbegun = (
        RunError.model_validate({"type": run.error or "unknown_error", "message": run.words})
        if failed and not run.began
        else None
    )
    version = run.agent_version
    return DeploymentRunShape(
        id=run.uid,
        deployment_id=run.order.uid,
        agent=AgentRef(id=version.agent.uid, version=version.number),
        trigger_context=trigger,
        session_id=run.session_uid or None,
        error=unbegun,
        created_at=run.created_at,
        x_trigger=run.trigger,
        x_state=run.state,
        x_failure=run.error if failed and run.began else None,
        x_summary=run.words if run.began else "",
        x_cost_usd=_plain(run.cost),
        x_ended_at=run.ended_at,
    ).wire()


def _plain(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost.normalize():f}"


def visible_runs(caller: Caller) -> Any:
    rows = OrderRun.objects.visible_to(caller.user).attempted()
    return rows.filter(order__organisation=caller.organisation).select_related(
        "order", "agent_version__agent"
    )


def _shapes(rows: Sequence[OrderRun]) -> list[dict[str, Any]]:
    return [run_shape(row) for row in rows]


class DeploymentRuns(Door):
    scopes = {"GET": READ}

    @operation(
        "deployment_runs_list",
        tag="deployments",
        response=DeploymentRunPage,
        query=(
            *paging(MOST_RUNS),
            parameter("deployment_id"),
            parameter("has_error", OpenApiTypes.BOOL, "Whether its session could not be created."),
            parameter("trigger_type", enum=list(TRIGGERS)),
            *times("created_at"),
        ),
        summary="List runs of deployments, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_runs(self.caller).filter(**time_window(query, "created_at", "created_at"))
        if deployment := query.get("deployment_id"):
            rows = rows.filter(order__uid=deployment)
        if "has_error" in query:
            unbegun = {"session_uid": ""}
            failed = flag(query, "has_error")
            rows = rows.filter(**unbegun) if failed else rows.exclude(**unbegun)
        if trigger := choice(query, "trigger_type", TRIGGERS, ""):
            by_clock = {"trigger": OrderRun.Trigger.SCHEDULE}
            rows = rows.filter(**by_clock) if trigger == "schedule" else rows.exclude(**by_clock)
        about = describe("deployment_runs", query)
        return Response(page_of(rows, query, about=about, show=_shapes, most=MOST_RUNS))


class OneDeploymentRun(Door):
    scopes = {"GET": READ}

    @operation(
        "deployment_runs_retrieve",
        tag="deployments",
        response=DeploymentRunShape,
        summary="Read a run of a deployment",
    )
    def get(self, request: Request, uid: str) -> Response:
        found = visible_runs(self.caller).filter(uid=uid).first()
        if found is None:
            raise NotFound(_("There is no such run."))
        return Response(run_shape(found))
