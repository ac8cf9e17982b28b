"""`/v1/deployments`: schedules as the official SDK knows them.

What the public API cannot say of one (dates, what becomes of missed times, who may decide) travels in
fields that begin with `x_`, both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from conversations.actions.lending import MOST_LENT
from harness.errors import Invalid, NotFound
from harness.events import UserDefineOutcome, UserMessage
from harness.faults import place
from schedules import drafts
from schedules.actions import orders as actions
from schedules.actions.runs import run_now
from schedules.drafts import Draft, draft_of
from schedules.models import StandingOrder
from schedules.times import EXPRESSION_LIMIT, MOST_DATES
from tools_app.workspace import PUBLIC_ROOT
from wire.fieldnames import written

from . import fieldnames
from .agents import find_agent
from .deploymentruns import AgentRef, DeploymentRunShape, run_shape
from .door import READ, WRITE, Body, Door, Shape, body_of, hold, operation
from .environments import find_environment
from .idempotency import once
from .incoming import InitialEvent, refuse_unsupported, to_inputs
from .metadata import Metadata, MetadataPatch, merged
from .moments import Moment
from .outgoing import blocks
from .paging import (
    Page,
    choice,
    describe,
    flag,
    page_of,
    paging,
    parameter,
    time_window,
    times,
)
from .resources import FileResourceBody
from .sessions import AgentReference, BudgetBody
from .snapshots import BudgetShape, budget_shape

SHOWN_TIMES = 5
STATUSES = ("active", "paused")


class ScheduleBody(Body):
    type: Literal["cron"]
    expression: str = Field(min_length=1, max_length=EXPRESSION_LIMIT)
    timezone: str = Field(min_length=1, max_length=60)


AgentChoice = str | AgentReference
Events = Annotated[tuple[InitialEvent, ...], Field(min_length=1, max_length=drafts.MOST_MESSAGES)]
Resources = Annotated[tuple[FileResourceBody, ...], Field(max_length=drafts.MOST_FILES)]
VaultIds = Annotated[tuple[str, ...], Field(max_length=MOST_LENT)]
Dates = Annotated[tuple[Moment, ...], Field(max_length=MOST_DATES)]


class Ours(Body):
    """What the public API has no words for; what is left out is usual, or stays."""

    x_dates: Dates | None = None
    x_missed: Literal["skip", "once", "all"] | None = None
    x_most_missed: int | None = None
    x_overlap: Literal["skip", "queue", "replace"] | None = None
    x_jitter_seconds: int | None = None
    x_failures_to_pause: int | None = None
    x_idle_to_pause: int | None = None
    x_approver_ids: tuple[str, ...] | None = None

    def ours(self) -> dict[str, Any]:
        names = {
            "x_dates": "dates",
            "x_missed": "missed",
            "x_most_missed": "most_missed",
            "x_overlap": "overlap",
            "x_jitter_seconds": "jitter",
            "x_failures_to_pause": "failures_to_pause",
            "x_idle_to_pause": "idle_to_pause",
            "x_approver_ids": "approvers",
        }
        given = {ours: getattr(self, theirs) for theirs, ours in names.items()}
        return {name: value for name, value in given.items() if value is not None}


class DeploymentCreate(Ours):
    name: str
    agent: AgentChoice
    environment_id: str
    initial_events: Events
    description: str | None = None
    budget: BudgetBody | None = None
    metadata: Metadata = {}
    resources: Resources = ()
    schedule: ScheduleBody | None = None
    vault_ids: VaultIds = ()


class DeploymentUpdate(Ours):
    name: str | None = None
    agent: AgentChoice | None = None
    environment_id: str | None = None
    initial_events: Events | None = None
    description: str | None = None
    budget: BudgetBody | None = None
    metadata: MetadataPatch | None = None
    resources: Resources | None = None
    schedule: ScheduleBody | None = None
    vault_ids: VaultIds | None = None


class UserMessageShape(Shape):
    type: Literal["user.message"] = "user.message"
    content: list[dict[str, Any]]


class RubricShape(Shape):
    type: Literal["text"] = "text"
    content: str


class CheckShape(Shape):
    run: str
    criterion: int | None
    seconds: int


class DefineOutcomeShape(Shape):
    type: Literal["user.define_outcome"] = "user.define_outcome"
    description: str
    rubric: RubricShape
    max_iterations: int
    x_checks: list[CheckShape]


class FileConfig(Shape):
    type: Literal["file"] = "file"
    file_id: str
    mount_path: str | None


class ScheduleShape(Shape):
    type: Literal["cron"] = "cron"
    expression: str
    timezone: str
    last_run_at: datetime | None
    upcoming_runs_at: list[datetime]


class PauseError(Shape):
    type: Literal[
        "agent_archived_error",
        "environment_archived_error",
        "environment_not_found_error",
        "vault_archived_error",
        "vault_not_found_error",
        "file_not_found_error",
        "self_hosted_resources_unsupported_error",
        "unknown_error",
    ]


class ManualPause(Shape):
    type: Literal["manual"] = "manual"


class ErrorPause(Shape):
    type: Literal["error"] = "error"
    error: PauseError


class DeploymentShape(Shape):
    type: Literal["deployment"] = "deployment"
    id: str
    name: str
    description: str | None
    agent: AgentRef
    environment_id: str
    initial_events: list[UserMessageShape | DefineOutcomeShape]
    resources: list[FileConfig]
    vault_ids: list[str]
    schedule: ScheduleShape | None
    budget: BudgetShape | None
    status: Literal["active", "paused"]
    paused_reason: ManualPause | ErrorPause | None
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    x_dates: list[datetime]
    x_missed: str
    x_most_missed: int
    x_overlap: str
    x_jitter_seconds: int
    x_failures_to_pause: int
    x_idle_to_pause: int
    x_approver_ids: list[str]
    x_model: str
    """What its agent's model meant when it was saved; a run with another does not begin."""
    x_paused_because: str | None
    x_paused_words: str | None
    x_next_due_at: datetime | None


class DeploymentPage(Page[DeploymentShape]):
    pass


def deployment_shape(order: StandingOrder) -> dict[str, Any]:
    schedule = None
    if order.cron:
        schedule = ScheduleShape(
            expression=order.cron,
            timezone=order.timezone,
            last_run_at=order.last_run_at,
            upcoming_runs_at=order.upcoming(timezone.now(), SHOWN_TIMES),
        )
    version = order.agent_version
    return DeploymentShape(
        id=order.uid,
        name=order.name,
        description=order.description or None,
        agent=AgentRef(id=version.agent.uid, version=version.number),
        environment_id=order.environment.uid,
        initial_events=_initial_events(order),
        resources=[
            FileConfig(file_id=uid, mount_path=f"{PUBLIC_ROOT}/{path}" if path else None)
            for uid, path in order.files
        ],
        vault_ids=order.vaults,
        schedule=schedule,
        budget=budget_shape(order.budget),
        status="paused" if order.is_paused else "active",
        paused_reason=_reason(order),
        metadata=order.metadata,
        created_at=order.created_at,
        updated_at=order.updated_at,
        archived_at=order.archived_at,
        x_dates=[datetime.fromisoformat(at) for at in order.dates],
        x_missed=order.missed,
        x_most_missed=order.most_missed,
        x_overlap=order.overlap,
        x_jitter_seconds=order.jitter,
        x_failures_to_pause=order.failures_to_pause,
        x_idle_to_pause=order.idle_to_pause,
        x_approver_ids=[one.uid for one in order.approvers.all()],
        x_model=f"{order.provider}/{order.model}",
        x_paused_because=order.pause if order.is_paused else None,
        x_paused_words=order.pause_words if order.is_paused else None,
        x_next_due_at=order.next_due_at,
    ).wire()


def _reason(order: StandingOrder) -> ManualPause | ErrorPause | None:
    if not order.is_paused:
        return None
    if order.pause == StandingOrder.Pause.MANUAL:
        return ManualPause()
    return ErrorPause.model_validate({"error": {"type": order.pause_error or "unknown_error"}})


def visible_deployments(caller: Caller) -> Any:
    rows = StandingOrder.objects.visible_to(caller.user).filter(organisation=caller.organisation)
    return rows.with_what_a_page_shows().prefetch_related("approvers")


def find_deployment(caller: Caller, uid: str) -> StandingOrder:
    found: StandingOrder | None = visible_deployments(caller).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such deployment."))
    return found


def _shapes(rows: Sequence[StandingOrder]) -> list[dict[str, Any]]:
    return [deployment_shape(row) for row in rows]


def _initial_events(order: StandingOrder) -> list[UserMessageShape | DefineOutcomeShape]:
    found: list[UserMessageShape | DefineOutcomeShape] = [
        UserMessageShape(content=blocks(said.content)) for said in drafts.messages_of(order)
    ]
    if order.outcome is not None:
        rest = {name: order.outcome[name] for name in ("description", "max_iterations")}
        found.append(
            DefineOutcomeShape(
                rubric=RubricShape(content=order.outcome["rubric"]),
                x_checks=[CheckShape(**each) for each in order.outcome.get("checks", ())],
                **rest,
            )
        )
    return found


def _begins_with(events: Sequence[InitialEvent], caller: Caller) -> dict[str, Any]:
    """As fields of a draft. Raises Invalid for an outcome that is not their last, and as `to_inputs`."""
    inputs = to_inputs(events, caller, field="initial_events")
    for number, each in enumerate(inputs[:-1]):
        if isinstance(each, UserDefineOutcome):
            raise Invalid(
                _("A deployment works towards one outcome, behind its messages."),
                field=place("initial_events", number, "type"),
                hint=_("Send it as the last of the events."),
            )
    last = inputs[-1] if inputs else None
    return {
        "messages": tuple(each for each in inputs if isinstance(each, UserMessage)),
        "outcome": last if isinstance(last, UserDefineOutcome) else None,
    }


class Deployments(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "deployments_list",
        tag="deployments",
        response=DeploymentPage,
        query=(
            *paging(),
            parameter("agent_id"),
            parameter("status", enum=list(STATUSES)),
            parameter("include_archived", OpenApiTypes.BOOL, "Not together with status."),
            *times("created_at"),
        ),
        summary="List deployments, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_deployments(self.caller).filter(
            **time_window(query, "created_at", "created_at")
        )
        status = choice(query, "status", STATUSES, "")
        if status and "include_archived" in query:
            raise Invalid(
                _("A status is asked for, which archived deployments have none of."),
                field="include_archived",
                hint=_("Give one of the two."),
            )
        if not flag(query, "include_archived"):
            rows = rows.filter(archived_at=None)
        if status:
            rows = rows.filter(paused_at__isnull=status == "active")
        if agent := query.get("agent_id"):
            rows = rows.filter(agent_version__agent__uid=agent)
        about = describe("deployments", query)
        return Response(page_of(rows, query, about=about, show=_shapes))

    @operation(
        "deployments_create",
        tag="deployments",
        request=DeploymentCreate,
        response=DeploymentShape,
        summary="Create a deployment",
    )
    def post(self, request: Request) -> Response:
        refuse_unsupported(request)
        body = body_of(request, DeploymentCreate)
        return once(request, self.caller, lambda: self._create(body))

    def _create(self, body: DeploymentCreate) -> dict[str, Any]:
        caller = self.caller
        wanted = body.agent
        draft = Draft(
            name=body.name,
            description=body.description or "",
            agent=find_agent(caller, wanted if isinstance(wanted, str) else wanted.id),
            version=None if isinstance(wanted, str) else wanted.version,
            environment=find_environment(caller, body.environment_id),
            **_begins_with(body.initial_events, caller),
            files=tuple((one.file_id, one.path) for one in body.resources),
            vaults=body.vault_ids,
            budget=body.budget.units if body.budget else None,
            metadata=body.metadata,
            **_timetable(body.schedule),
            **body.ours(),
        )
        with written(fieldnames.DEPLOYMENT):
            made = actions.create_order(
                actor=caller.user, organisation=caller.organisation, draft=draft, caller=caller
            )
        return deployment_shape(find_deployment(caller, made.uid))


def _timetable(schedule: ScheduleBody | None) -> dict[str, Any]:
    if schedule is None:
        return {"cron": ""}
    return {"cron": schedule.expression, "timezone": schedule.timezone}


class OneDeployment(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "deployments_retrieve",
        tag="deployments",
        response=DeploymentShape,
        summary="Read a deployment",
    )
    def get(self, request: Request, uid: str) -> Response:
        return Response(deployment_shape(find_deployment(self.caller, uid)))

    @operation(
        "deployments_update",
        tag="deployments",
        request=DeploymentUpdate,
        response=DeploymentShape,
        summary="Change a deployment",
    )
    def post(self, request: Request, uid: str) -> Response:
        refuse_unsupported(request)
        body = body_of(request, DeploymentUpdate)
        caller = self.caller
        order = find_deployment(caller, uid)
        with written(fieldnames.DEPLOYMENT), transaction.atomic():
            hold(StandingOrder.objects.filter(pk=order.pk))
            order = find_deployment(caller, uid)
            draft = replace(draft_of(order), **self._changes(body, order))
            actions.change_order(actor=caller.user, order=order, draft=draft, caller=caller)
        return Response(deployment_shape(find_deployment(caller, uid)))

    def _changes(self, body: DeploymentUpdate, order: StandingOrder) -> dict[str, Any]:
        given = body.model_fields_set
        for name in ("name", "agent", "environment_id", "initial_events"):
            if name in given and getattr(body, name) is None:
                raise Invalid(
                    _("It cannot be taken away."), field=name, hint=_("Leave it out to keep it.")
                )
        changes: dict[str, Any] = body.ours()
        if body.name is not None:
            changes["name"] = body.name
        if body.agent is not None:
            named = isinstance(body.agent, str)
            changes["agent"] = find_agent(
                self.caller, body.agent if isinstance(body.agent, str) else body.agent.id
            )
            changes["version"] = None if named else body.agent.version  # type: ignore[union-attr]
        if body.environment_id is not None:
            changes["environment"] = find_environment(self.caller, body.environment_id)
        if body.initial_events is not None:
            changes |= _begins_with(body.initial_events, self.caller)
        if "description" in given:
            changes["description"] = body.description or ""
        if "budget" in given:
            changes["budget"] = body.budget.units if body.budget else None
        if body.metadata is not None:
            changes["metadata"] = merged(order.metadata, body.metadata)
        if "resources" in given:
            changes["files"] = tuple((one.file_id, one.path) for one in body.resources or ())
        if "schedule" in given:
            changes |= _timetable(body.schedule)
        if "vault_ids" in given:
            changes["vaults"] = body.vault_ids or ()
        return changes


class ArchiveDeployment(Door):
    scopes = {"POST": WRITE}

    @operation(
        "deployments_archive",
        tag="deployments",
        response=DeploymentShape,
        summary="Archive a deployment for good",
    )
    def post(self, request: Request, uid: str) -> Response:
        actions.archive_order(actor=self.caller.user, order=find_deployment(self.caller, uid))
        return Response(deployment_shape(find_deployment(self.caller, uid)))


class PauseDeployment(Door):
    scopes = {"POST": WRITE}

    @operation(
        "deployments_pause",
        tag="deployments",
        response=DeploymentShape,
        summary="Pause a deployment",
    )
    def post(self, request: Request, uid: str) -> Response:
        actions.pause_order(actor=self.caller.user, order=find_deployment(self.caller, uid))
        return Response(deployment_shape(find_deployment(self.caller, uid)))


class UnpauseDeployment(Door):
    scopes = {"POST": WRITE}

    @operation(
        "deployments_unpause",
        tag="deployments",
        response=DeploymentShape,
        summary="Let a deployment go on",
    )
    def post(self, request: Request, uid: str) -> Response:
        actions.resume_order(actor=self.caller.user, order=find_deployment(self.caller, uid))
        return Response(deployment_shape(find_deployment(self.caller, uid)))


class RunDeployment(Door):
    scopes = {"POST": WRITE}

    @operation(
        "deployments_run",
        tag="deployments",
        response=DeploymentRunShape,
        summary="Have a deployment begin a session now",
    )
    def post(self, request: Request, uid: str) -> Response:
        order = find_deployment(self.caller, uid)
        return once(request, self.caller, lambda: self._run(order))

    def _run(self, order: StandingOrder) -> dict[str, Any]:
        return run_shape(run_now(actor=self.caller.user, order=order))
