"""`/v1/agents`: agents and their versions, as the official SDK knows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.models import User
from agents.actions import agents as actions
from agents.actions.metadata import note_agent
from agents.models import Agent, AgentVersion
from conversations.models import Conversation
from harness.agentconfig import AgentConfig
from harness.errors import Conflict, Invalid, NotFound
from harness.modelfaults import read_as
from mcpservers.actions.handing import hand_to_agent
from wire.fieldnames import written

from . import mcptoolsets, modelnames, multiagent, skilluses, toolsets
from .door import MANAGE, READ, Body, Door, Shape, body_of, hold, operation
from .fieldnames import AGENT
from .mcptoolsets import McpServers
from .metadata import Metadata, MetadataPatch, merged
from .multiagent import MultiagentBody, MultiagentShape
from .paging import (
    Page,
    describe,
    flag,
    page_of,
    paging,
    parameter,
    time_window,
    times,
    whole_number,
)
from .skilluses import SkillRefs
from .toolsets import Tool

Effort = Literal["low", "medium", "high", "xhigh", "max"]


ModelName = Annotated[str, Field(min_length=1, max_length=160)]


class EffortBody(Body):
    type: Effort


class ModelBody(Body):
    id: ModelName
    effort: Effort | EffortBody | None = None
    speed: Literal["standard"] | None = None
    inference_geo: None = None


class ExecutionIdentity(Body):
    type: Literal["service_account"]


class AgentCreate(Body):
    name: str
    model: ModelName | ModelBody
    description: str | None = None
    system: str | None = None
    tools: tuple[Tool, ...] = Field(default=(), max_length=256)
    mcp_servers: McpServers = ()
    skills: SkillRefs = ()
    multiagent: MultiagentBody | None = None
    execution_identity: ExecutionIdentity | None = None
    metadata: Metadata = {}


class AgentUpdate(Body):
    version: int | None = Field(default=None, ge=1)
    name: str | None = None
    model: ModelName | ModelBody | None = None
    description: str | None = None
    system: str | None = None
    tools: tuple[Tool, ...] | None = Field(default=None, max_length=256)
    mcp_servers: McpServers | None = None
    skills: SkillRefs | None = None
    multiagent: MultiagentBody | None = None
    execution_identity: ExecutionIdentity | None = None
    metadata: MetadataPatch | None = None


class EffortShape(Shape):
    type: Effort


class Identity(Shape):
    type: Literal["service_account"] = "service_account"


class ModelShape(Shape):
    id: str
    effort: EffortShape | None = None
    speed: Literal["standard"] | None = None


class ThreadAgent(Shape):
    """What an agent and the snapshots of it in sessions and threads have in common."""

    type: Literal["agent"] = "agent"
    id: str
    version: int
    name: str
    description: str | None
    model: ModelShape
    system: str | None
    tools: list[dict[str, Any]]
    mcp_servers: list[dict[str, Any]] = []
    skills: list[dict[str, Any]] = []
    execution_identity: Identity = Identity()


class ConfiguredAgent(ThreadAgent):
    multiagent: MultiagentShape | None = None


class AgentShape(ConfiguredAgent):
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    x_organization_id: str | None
    """None: everybody on this server may use it."""


class AgentPage(Page[AgentShape]):
    pass


def configured(
    agent: Agent,
    number: int,
    config: AgentConfig,
    conversation: Conversation | None = None,
    reader: User | None = None,
) -> dict[str, Any]:
    """`conversation`: as it is there. `reader`: who is told, where it is shared; of
    somebody's private agent others get neither its instructions nor where its servers are."""
    servers = mcptoolsets.servers_to_wire(agent, config, conversation)
    if agent.private and reader is not None and agent.owner_id != reader.pk:
        config = config.model_copy(update={"instructions": ""})
        servers = [{**server, "url": ""} for server in servers]
    return {
        "id": agent.uid,
        "version": number,
        "name": agent.name,
        "description": agent.description or None,
        "model": ModelShape(
            id=modelnames.to_wire(config.provider, config.model),
            effort=EffortShape(type=config.effort) if config.effort else None,
        ),
        "system": config.instructions or None,
        "tools": toolsets.to_wire(config),
        "mcp_servers": servers,
        "skills": skilluses.to_wire(agent, config),
    }


def session_agent(
    version: AgentVersion,
    config: AgentConfig,
    conversation: Conversation | None = None,
    reader: User | None = None,
) -> dict[str, Any]:
    """An agent as a session has it, with those it may call on in full. `reader` as for `configured`."""
    own = configured(version.agent, version.number, config, conversation, reader)

    def show(member: AgentVersion) -> dict[str, Any]:
        fields = configured(member.agent, member.number, member.config, reader=reader)
        return ThreadAgent(**fields).model_dump(mode="json")

    return {
        "type": "agent",
        **own,
        "multiagent": multiagent.of_session(
            config, own=ThreadAgent(**own).model_dump(mode="json"), show=show
        ),
    }


def agent_shape(agent: Agent, version: AgentVersion | None = None) -> dict[str, Any]:
    version = version or agent.current
    assert version is not None  # noqa: S101 - rows without one are not selected
    return AgentShape(
        **configured(agent, version.number, version.config),
        multiagent=multiagent.of_agent(version.config, own=(agent.uid, version.number)),
        metadata=agent.metadata,
        created_at=agent.created_at,
        updated_at=version.created_at if version != agent.current else agent.updated_at,
        archived_at=agent.archived_at,
        x_organization_id=agent.organisation.uid if agent.organisation else None,
    ).wire()


def config_from(
    fields: dict[str, Any],
    *,
    before: AgentConfig | None = None,
    own: tuple[str, int] | None = None,
    caller: Caller | None = None,
) -> AgentConfig:
    """The configuration that the given fields (and no others) make of `before`, the version `own` of an agent
    by its id."""
    changes: dict[str, Any] = {}
    if "model" in fields:
        changes |= _model_changes(fields["model"], before)
    if "system" in fields:
        changes["instructions"] = fields["system"] or ""
    servers = mcptoolsets.names_of(fields["mcp_servers"]) if "mcp_servers" in fields else None
    if "tools" in fields:
        changes |= toolsets.changes_of(fields["tools"] or (), before, servers)
    elif servers is not None:
        changes["mcp_servers"] = mcptoolsets.kept_uses(servers, before)
    if "multiagent" in fields:
        changes |= multiagent.changes_of(fields["multiagent"], before, own)
    if "skills" in fields and caller is not None:
        changes["skills"] = skilluses.uses_of(caller, fields["skills"] or (), before=before)
    kept = {name: getattr(before, name) for name in AgentConfig.model_fields} if before else {}
    with written(AGENT):
        return read_as({**kept, **changes}, AgentConfig)


def _model_changes(model: str | ModelBody | None, before: AgentConfig | None) -> dict[str, Any]:
    if model is None:
        raise Invalid(_("An agent has a model."), field="model", hint=_("Name one."))
    name = model if isinstance(model, str) else model.id
    provider, bare = modelnames.from_wire(name)
    changes: dict[str, Any] = {"provider": provider, "model": bare}
    same = before is not None and (before.provider, before.model) == (provider, bare)
    if isinstance(model, ModelBody) and "effort" in model.model_fields_set:
        effort = model.effort
        changes["effort"] = (effort.type if isinstance(effort, EffortBody) else effort) or ""
    elif not same:
        changes["effort"] = ""
    return changes


def visible_agents(caller: Caller) -> Any:
    rows = Agent.objects.visible_to(caller.user).usable_in(caller.organisation)
    return rows.filter(current__isnull=False).select_related("current", "organisation")


def find_agent(caller: Caller, uid: str) -> Agent:
    agent = visible_agents(caller).filter(uid=uid).first()
    if agent is None:
        raise NotFound(_("There is no such agent."))
    found: Agent = agent
    return found


class Agents(Door):
    scopes = {"GET": READ, "POST": MANAGE}

    @operation(
        "agents_list",
        tag="agents",
        response=AgentPage,
        query=(
            *paging(),
            parameter("include_archived", OpenApiTypes.BOOL),
            *times("created_at"),
        ),
        summary="List agents, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_agents(self.caller).filter(**time_window(query, "created_at", "created_at"))
        if not flag(query, "include_archived"):
            rows = rows.filter(archived_at=None)
        about = describe("agents", query)
        return Response(page_of(rows, query, about=about, show=_shapes))

    @operation(
        "agents_create",
        tag="agents",
        request=AgentCreate,
        response=AgentShape,
        summary="Create an agent",
    )
    def post(self, request: Request) -> Response:
        body = body_of(request, AgentCreate)
        caller = self.caller
        fields = {
            "model": body.model,
            "system": body.system,
            "tools": body.tools,
            "mcp_servers": body.mcp_servers,
            "skills": body.skills,
            "multiagent": body.multiagent,
        }
        with written(AGENT), transaction.atomic():
            agent = actions.create_agent(
                actor=caller.user,
                organisation=caller.organisation,
                name=body.name,
                description=body.description or "",
                config=config_from(fields, caller=caller),
            )
            hand_to_agent(
                actor=caller.user,
                organisation=caller.organisation,
                agent=agent,
                servers=mcptoolsets.handed(body.mcp_servers),
            )
            note_agent(actor=caller.user, agent=agent, metadata=body.metadata)
        return Response(agent_shape(find_agent(self.caller, agent.uid)))


def _shapes(rows: Sequence[Agent]) -> list[dict[str, Any]]:
    return [agent_shape(row) for row in rows]


class OneAgent(Door):
    scopes = {"GET": READ, "POST": MANAGE}

    @operation(
        "agents_retrieve",
        tag="agents",
        response=AgentShape,
        query=(parameter("version", OpenApiTypes.INT, "Left out: the current one."),),
        summary="Read an agent",
    )
    def get(self, request: Request, uid: str) -> Response:
        agent = find_agent(self.caller, uid)
        number = whole_number(request.query_params, "version", 0, least=1, most=2**31 - 1)
        if not number:
            return Response(agent_shape(agent))
        return Response(agent_shape(agent, find_version(self.caller, agent, number)))

    @operation(
        "agents_update",
        tag="agents",
        request=AgentUpdate,
        response=AgentShape,
        summary="Change an agent",
    )
    def post(self, request: Request, uid: str) -> Response:
        body = body_of(request, AgentUpdate)
        agent = find_agent(self.caller, uid)
        if agent.archived_at is not None:
            raise Conflict(
                _("This agent is archived and changes no more."), hint=_("Create a new one.")
            )
        if "name" in body.model_fields_set and body.name is None:
            raise Invalid(_("An agent has a name."), field="name", hint=_("Type one."))
        given = body.given("model", "system", "tools", "mcp_servers", "skills", "multiagent")
        described = "description" in body.model_fields_set
        with written(AGENT), transaction.atomic():
            hold(Agent.objects.filter(pk=agent.pk))
            agent = find_agent(self.caller, uid)
            before = agent.current
            assert before is not None  # noqa: S101 - selected so
            changed = actions.change_agent(
                actor=self.caller.user,
                agent=agent,
                name=body.name if body.name is not None else agent.name,
                description=(body.description or "") if described else agent.description,
                config=config_from(
                    given,
                    before=before.config,
                    own=(agent.uid, before.number),
                    caller=self.caller,
                ),
                expected_version=body.version,
            )
            hand_to_agent(
                actor=self.caller.user,
                organisation=self.caller.organisation,
                agent=changed,
                servers=mcptoolsets.handed(body.mcp_servers),
            )
            if body.metadata is not None:
                metadata = merged(changed.metadata, body.metadata)
                note_agent(actor=self.caller.user, agent=changed, metadata=metadata)
        return Response(agent_shape(find_agent(self.caller, uid)))


class ArchiveAgent(Door):
    scopes = {"POST": MANAGE}

    @operation("agents_archive", tag="agents", response=AgentShape, summary="Archive an agent")
    def post(self, request: Request, uid: str) -> Response:
        agent = find_agent(self.caller, uid)
        actions.archive_agent(actor=self.caller.user, agent=agent)
        return Response(agent_shape(find_agent(self.caller, uid)))


class AgentVersions(Door):
    scopes = {"GET": READ}

    @operation(
        "agents_versions_list",
        tag="agents",
        response=AgentPage,
        query=paging(),
        summary="List an agent's versions, newest first",
    )
    def get(self, request: Request, uid: str) -> Response:
        agent = find_agent(self.caller, uid)
        rows = AgentVersion.objects.visible_to(self.caller.user).filter(agent=agent)

        def show(versions: Sequence[AgentVersion]) -> list[dict[str, Any]]:
            return [agent_shape(agent, version) for version in versions]

        about = f"versions of {agent.uid}"
        return Response(page_of(rows, request.query_params, about=about, show=show, key="number"))


def find_version(caller: Caller, agent: Agent, number: int) -> AgentVersion:
    seen = AgentVersion.objects.visible_to(caller.user)
    version = seen.filter(agent=agent, number=number).first()
    if version is None:
        raise NotFound(
            _("%(agent)s has no version %(number)d.") % {"agent": agent.name, "number": number}
        )
    return version
