"""`/v1/sessions`: conversations as the official SDK knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import Field, field_validator
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from approvals.decisions import asks_less, require_decider
from conversations.actions.branching import go_elsewhere
from conversations.actions.conversations import (
    archive_conversation,
    change_tools,
    delete_conversation,
    rename_conversation,
    require_rest,
)
from conversations.actions.lending import MOST_LENT
from conversations.actions.own import require_own
from conversations.actions.setaside import set_aside
from conversations.bearers import find_bearer
from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.errors import Conflict, Invalid, NotFound
from harness.events import WAITS_FOR_WORKER
from mcpservers.actions.handing import hand_to_conversation, look_ahead
from mcpservers.lending import find_bearer_of
from mcpservers.looking import Looked
from mcpservers.models import McpServer
from programs.actions.bringing import Brought, bring_files
from programs.actions.metadata import note_conversation
from programs.actions.sessions import (
    begin_session,
    cap_session,
    fork_session,
    require_at_rest,
    wake_session,
)
from schedules.models import OrderRun
from spending.amounts import units_of
from wire.fieldnames import written

from . import fieldnames, toolsets
from .agents import ModelBody, ModelName, config_from, find_agent, find_version
from .door import READ, WRITE, Body, Door, Shape, body_of, hold, operation
from .environments import find_environment
from .idempotency import once, was_sent
from .incoming import InitialEvent, OutcomeBody, refuse_unsupported, to_inputs
from .mcptoolsets import McpServerBody, McpServers, handed
from .metadata import Metadata, MetadataPatch, merged
from .paging import (
    ASC,
    DESC,
    PageBothWays,
    choice,
    describe,
    flag,
    page_of,
    paging,
    parameter,
    time_window,
    times,
    values,
    whole_number,
)
from .resources import FileResourceBody, MemoryStoreResourceBody, ResourceBody
from .snapshots import SessionShape, session_shape, session_shapes, with_all
from .toolsets import Tool

STATUSES = ("rescheduling", "running", "idle", "terminated")


class AgentReference(Body):
    type: Literal["agent"]
    id: str
    version: int | None = Field(default=None, ge=1)


class AgentWithOverrides(Body):
    type: Literal["agent_with_overrides"]
    id: str
    version: int | None = Field(default=None, ge=1)
    model: ModelName | ModelBody | None = None
    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    mcp_servers: McpServers | None = None
    skills: tuple[Any, ...] | None = Field(default=None, max_length=0)


AgentChoice = str | Annotated[AgentReference | AgentWithOverrides, Field(discriminator="type")]


class MoneyBody(Body):
    amount: str = Field(pattern=r"^[0-9]{1,11}$")
    currency: Literal["USD"]


class BudgetBody(Body):
    type: Literal["limit"]
    max_list_cost: MoneyBody

    @property
    def units(self) -> int:
        return units_of(Decimal(self.max_list_cost.amount) / 100)


class SessionCreate(Body):
    agent: AgentChoice
    environment_id: str
    title: str | None = None
    metadata: Metadata = {}
    budget: BudgetBody | None = None
    initial_events: tuple[InitialEvent, ...] = Field(default=(), max_length=50)

    @field_validator("initial_events")
    @classmethod
    def _one_outcome(cls, events: tuple[InitialEvent, ...]) -> tuple[InitialEvent, ...]:
        if sum(isinstance(event, OutcomeBody) for event in events) > 1:
            raise ValueError("a session begins with one outcome at most; send the next one later")
        return events

    resources: tuple[ResourceBody, ...] = Field(default=(), max_length=500)
    vault_ids: tuple[str, ...] = Field(default=(), max_length=MOST_LENT)
    x_features: dict[str, bool] = {}

    @property
    def files(self) -> list[tuple[str, str]]:
        found = (one for one in self.resources if isinstance(one, FileResourceBody))
        return [(one.file_id, one.path) for one in found]


class SessionAgentUpdate(Body):
    tools: tuple[Tool, ...] | None = Field(default=None, max_length=256)
    mcp_servers: McpServers | None = None


class SessionUpdate(Body):
    title: str | None = None
    metadata: MetadataPatch | None = None
    budget: BudgetBody | None = None
    agent: SessionAgentUpdate | None = None


class SessionDeleted(Shape):
    type: Literal["session_deleted"] = "session_deleted"
    id: str


class SessionPage(PageBothWays[SessionShape]):
    pass


def visible_sessions(caller: Caller) -> Any:
    rows = Conversation.objects.visible_to(caller.user).filter(organisation=caller.organisation)
    return with_all(rows)


def own_sessions(caller: Caller) -> Any:
    """What lists show: what others share is found by its id."""
    rows = Conversation.objects.owned_by(caller.user).filter(organisation=caller.organisation)
    return with_all(rows)


def find_session(caller: Caller, uid: str) -> Conversation:
    """A conversation that the caller may read and no other one started."""
    rows = visible_sessions(caller).filter(parent=None)
    found: Conversation | None = rows.named(uid).first()
    if found is None:
        raise NotFound(_("There is no such session."))
    return found


class Sessions(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "sessions_list",
        tag="sessions",
        response=SessionPage,
        query=(
            *paging(),
            parameter("order", enum=[ASC, DESC]),
            parameter("agent_id"),
            parameter("agent_version", OpenApiTypes.INT, "Only with agent_id."),
            parameter("deployment_id"),
            parameter("statuses[]", many=True, enum=list(STATUSES)),
            parameter("include_archived", OpenApiTypes.BOOL),
            *times("created_at"),
        ),
        summary="List sessions, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = own_sessions(self.caller).listed()
        rows = rows.filter(**time_window(query, "created_at", "created_at"))
        if not flag(query, "include_archived"):
            rows = rows.filter(archived_at=None)
        if agent := query.get("agent_id"):
            rows = rows.filter(agent_version__agent__uid=agent)
        if version := whole_number(query, "agent_version", 0, least=1, most=2**31 - 1):
            if not agent:
                raise Invalid(
                    _("A version needs its agent."), field="agent_version", hint=_("Give agent_id.")
                )
            rows = rows.filter(agent_version__number=version)
        if deployment := query.get("deployment_id"):
            runs = OrderRun.objects.visible_to(self.caller.user).filter(order__uid=deployment)
            rows = rows.filter(pk__in=runs.exclude(conversation=None).values("conversation"))
        if statuses := values(query, "statuses", STATUSES):
            rows = rows.filter(having(statuses))
        order = choice(query, "order", (ASC, DESC), DESC)
        about = describe("sessions", query)
        show = partial(session_shapes, reader=self.caller.user)
        return Response(page_of(rows, query, about=about, show=show, order=order, both_ways=True))

    @operation(
        "sessions_create",
        tag="sessions",
        request=SessionCreate,
        response=SessionShape,
        summary="Create a session",
    )
    def post(self, request: Request) -> Response:
        refuse_unsupported(request)
        body = body_of(request, SessionCreate)
        looked = self._look_ahead(body)
        with self._bring(request, body) as brought:
            return once(request, self.caller, lambda: self._create(body, looked, brought))

    @contextmanager
    def _bring(self, request: Request, body: SessionCreate) -> Iterator[Brought | None]:
        """Its files, as long as nothing is begun. None: the request is answered as it was before."""
        if was_sent(request, self.caller):
            yield None
            return
        with ExitStack() as held:
            with written(fieldnames.SESSION):
                wanted = body.agent
                find_agent(self.caller, wanted if isinstance(wanted, str) else wanted.id)
                brought = held.enter_context(
                    bring_files(
                        actor=self.caller.user,
                        organisation=self.caller.organisation,
                        environment=find_environment(self.caller, body.environment_id),
                        files=body.files,
                        says=bool(body.initial_events),
                    )
                )
            yield brought

    def _look_ahead(self, body: SessionCreate) -> dict[str, Looked]:
        """At servers whose tools the first turn is to have, as long as nothing is begun."""
        caller, wanted = self.caller, body.agent
        servers = wanted.mcp_servers if isinstance(wanted, AgentWithOverrides) else None
        if not servers and not body.vault_ids:
            return {}
        agent = find_agent(caller, wanted if isinstance(wanted, str) else wanted.id)
        here = caller.organisation.pk
        known = agent.current.config.mcp_servers if agent.current else ()
        rows = McpServer.objects.serving(here, caller.user.pk, agents=[agent.pk])
        return look_ahead(
            actor=caller.user,
            organisation=caller.organisation,
            rows=rows.filter(name__in=[use.name for use in known], disabled_at=None),
            servers=handed(servers),
            bearer=lambda url: find_bearer_of(caller.user, here, body.vault_ids, url),
        )

    @transaction.atomic
    def _create(
        self, body: SessionCreate, looked: Mapping[str, Looked], brought: Brought | None
    ) -> dict[str, Any]:
        caller = self.caller
        wanted = body.agent
        agent = find_agent(self.caller, wanted if isinstance(wanted, str) else wanted.id)
        version = None if isinstance(wanted, str) else wanted.version
        overrides: dict[str, Any] = {}
        if isinstance(wanted, AgentWithOverrides):
            base = find_version(caller, agent, version) if version else agent.current
            assert base is not None  # noqa: S101 - selected so
            with written({}, at="agent"):
                overrides = overrides_from(wanted, base.config)
        with written(fieldnames.SESSION):
            conversation = begin_session(
                caller=caller,
                actor=caller.user,
                organisation=caller.organisation,
                agent=agent,
                environment=find_environment(self.caller, body.environment_id),
                version=version,
                title=body.title or "",
                metadata=body.metadata,
                overrides=overrides,
                features=body.x_features,
                cap=body.budget.units if body.budget else None,
                files=body.files,
                brought=brought,
                stores=[
                    one.wanted(place)
                    for place, one in enumerate(body.resources)
                    if isinstance(one, MemoryStoreResourceBody)
                ],
                vaults=body.vault_ids,
                messages=to_inputs(body.initial_events, caller, field="initial_events"),
                called=fieldnames.EVENTS,
            )
            if isinstance(wanted, AgentWithOverrides) and wanted.mcp_servers:
                hand_to_conversation(
                    actor=caller.user,
                    conversation=conversation,
                    servers=handed(wanted.mcp_servers),
                    uses=[use.name for use in conversation.config.mcp_servers],
                    looked=looked,
                )
        return session_shape(find_session(self.caller, conversation.uid), self.caller.user)


def overrides_from(wanted: AgentWithOverrides, config: Any) -> dict[str, Any]:
    """Of an agent's configuration what differs in one session; null clears, what is left out stays."""
    given = wanted.given("model", "system", "tools", "mcp_servers")
    servers = wanted.mcp_servers or () if "mcp_servers" in given else None
    # What is given of servers alone has to fit the agent's toolsets.
    left = {"tools"} if "tools" not in given else {"tools", "mcp_servers"}
    changed = config_from({k: v for k, v in given.items() if k not in left}, before=config)
    overrides: dict[str, Any] = {}
    if "model" in given:
        overrides |= {"provider": changed.provider, "model": changed.model}
        overrides["effort"] = changed.effort
    if "system" in given:
        overrides["instructions"] = changed.instructions
    if "tools" in given:
        overrides |= toolsets.narrowed(given["tools"] or (), config, servers=servers)
    return overrides


def having(statuses: list[str]) -> Q:
    """Rows whose status on this wire is among `statuses` (`snapshots.status_of`)."""
    about_to_start = Q(status="idle", owes_run=True, queued_count__gt=0) & ~Q(
        stop_reason__in=["requires_action", WAITS_FOR_WORKER]
    )
    each = {
        "terminated": Q(archived_at__isnull=False) | Q(status="terminated"),
        "running": Q(archived_at=None) & (Q(status="running") | about_to_start),
        "idle": Q(archived_at=None, status="idle") & ~about_to_start,
        "rescheduling": Q(archived_at=None, status="rescheduling"),
    }
    wanted = Q(pk__in=[])
    for status in statuses:
        wanted |= each[status]
    return wanted


class OneSession(Door):
    scopes = {"GET": READ, "POST": WRITE, "DELETE": WRITE}

    @operation("sessions_retrieve", tag="sessions", response=SessionShape, summary="Read a session")
    def get(self, request: Request, uid: str) -> Response:
        return Response(session_shape(find_session(self.caller, uid), self.caller.user))

    @operation(
        "sessions_update",
        tag="sessions",
        request=SessionUpdate,
        response=SessionShape,
        summary="Change a session",
    )
    def post(self, request: Request, uid: str) -> Response:
        body = body_of(request, SessionUpdate)
        row = find_session(self.caller, uid)
        if row.archived_at is not None:
            raise Conflict(
                _("This session is archived and changes no more."), hint=_("Begin a new one.")
            )
        actor = self.caller.user
        given = body.agent.given("tools", "mcp_servers") if body.agent is not None else {}
        servers = given.get("mcp_servers")
        if servers:
            # Before anything is connected to, by whatever token its owner lent.
            require_own(actor, row)
        looked = self._look_ahead(row, servers) if servers else {}
        with transaction.atomic():
            hold(Conversation.objects.filter(pk=row.pk))
            row = find_session(self.caller, uid)
            if body.title is not None:
                rename_conversation(actor=actor, conversation=row, title=body.title)
            if body.metadata is not None:
                note_conversation(
                    actor=actor, conversation=row, metadata=merged(row.metadata, body.metadata)
                )
            if given:
                with written(fieldnames.AGENT, at="agent"):
                    self._change_agent(row, given, looked)
            if "budget" in body.model_fields_set:
                with written(fieldnames.SESSION):
                    cap_session(
                        actor=actor,
                        conversation=row,
                        limit=body.budget.units if body.budget else None,
                    )
        return Response(session_shape(find_session(self.caller, uid), self.caller.user))

    def _change_agent(
        self, row: Conversation, given: Mapping[str, Any], looked: Mapping[str, Looked]
    ) -> None:
        actor, servers = self.caller.user, given.get("mcp_servers")
        if "mcp_servers" in given and "tools" not in given:
            # They have to fit the toolsets that the session has.
            config_from({"mcp_servers": servers}, before=row.config)
        if "tools" in given:
            overrides = toolsets.narrowed(
                given["tools"] or (),
                row.agent_version.config,
                now=row.config,
                servers=(servers or ()) if "mcp_servers" in given else None,
            )
            later = map(ToolRule.model_validate, overrides["tools"])
            if asks_less(row.config.tools, later):
                require_decider(self.caller)
            row = change_tools(actor=actor, conversation=row, overrides=overrides)
        elif servers:
            require_rest(row)
        hand_to_conversation(
            actor=actor,
            conversation=row,
            servers=handed(servers),
            uses=[use.name for use in row.config.mcp_servers],
            looked=looked,
        )

    def _look_ahead(self, row: Conversation, servers: Sequence[McpServerBody]) -> dict[str, Looked]:
        there = set(McpServer.objects.filter(conversation=row).values_list("name", "url"))
        return look_ahead(
            actor=self.caller.user,
            organisation=self.caller.organisation,
            rows=(),
            servers=[each for each in handed(servers) if (each.name, each.url) not in there],
            bearer=lambda url: find_bearer(row.pk, url),
        )

    @operation(
        "sessions_delete",
        tag="sessions",
        response=SessionDeleted,
        summary="Delete a session that is at rest, with its log and files",
    )
    def delete(self, request: Request, uid: str) -> Response:
        row = find_session(self.caller, uid)
        require_at_rest(row)
        delete_conversation(actor=self.caller.user, conversation=row)
        return Response(SessionDeleted(id=row.uid).wire())


class WakeSession(Door):
    """Ours, not the public API's."""

    scopes = {"POST": WRITE}

    @operation(
        "sessions_wake",
        tag="sessions",
        response=SessionShape,
        summary="Have somebody look whether a session owes anything",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_session(self.caller, uid)
        wake_session(actor=self.caller.user, conversation=row)
        return Response(session_shape(row, self.caller.user))


class SetAsideBody(Body):
    event_id: str = Field(min_length=1, max_length=60)


class SetAside(Door):
    """Ours, not the public API's."""

    scopes = {"POST": WRITE}

    @operation(
        "sessions_set_aside",
        tag="sessions",
        request=SetAsideBody,
        response=SessionShape,
        summary="Go on without a message or a result that a model service refuses",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_session(self.caller, uid)
        body = body_of(request, SetAsideBody)
        set_aside(actor=self.caller.user, conversation=row, event_uid=body.event_id)
        return Response(session_shape(find_session(self.caller, uid), self.caller.user))


class BranchBody(Body):
    act: Literal["edit", "regenerate", "rewind", "switch"]
    event_id: str = Field(min_length=1, max_length=60)
    content: str = ""
    model: str = Field(default="", max_length=100)
    files: bool = True


class Branch(Door):
    """Ours, not the public API's."""

    scopes = {"POST": WRITE}

    @operation(
        "sessions_branch",
        tag="sessions",
        request=BranchBody,
        response=SessionShape,
        summary="Edit and send again, answer once more, go back, or choose a sibling branch",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_session(self.caller, uid)
        body = body_of(request, BranchBody)
        go_elsewhere(
            actor=self.caller.user,
            conversation=row,
            act=body.act,
            event_uid=body.event_id,
            content=body.content,
            model=body.model,
            files=body.files,
        )
        return Response(session_shape(find_session(self.caller, uid), self.caller.user))


class ForkBody(Body):
    event_id: str = Field(min_length=1, max_length=60)
    title: str = Field(default="", max_length=200)


class Fork(Door):
    """Ours, not the public API's."""

    scopes = {"POST": WRITE}

    @operation(
        "sessions_fork",
        tag="sessions",
        request=ForkBody,
        response=SessionShape,
        summary="Begin a session with a copy of the dialogue up to a place",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_session(self.caller, uid)
        body = body_of(request, ForkBody)
        fork = fork_session(
            caller=self.caller,
            actor=self.caller.user,
            conversation=row,
            event_uid=body.event_id,
            title=body.title,
        )
        return Response(session_shape(find_session(self.caller, fork.uid), self.caller.user))


class ArchiveSession(Door):
    scopes = {"POST": WRITE}

    @operation(
        "sessions_archive",
        tag="sessions",
        response=SessionShape,
        summary="Archive a session that is at rest",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_session(self.caller, uid)
        require_at_rest(row)
        archive_conversation(actor=self.caller.user, conversation=row, archived=True)
        return Response(session_shape(find_session(self.caller, uid), self.caller.user))
