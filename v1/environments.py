"""`/v1/environments`: where tools run. On this wire one says which hosts a sandbox may reach.

Everything else a sandbox policy can say (`sandbox.policy`) travels in `x_policy`, read only.
"""

from __future__ import annotations

import json
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
from agents.actions import environments as actions
from agents.actions.metadata import note_environment
from agents.models import Environment
from agents.models.environment import DEFAULT_UPLOAD_LIMIT
from harness.errors import Conflict, Invalid, NotFound
from sandbox.policy import EVERY_HOST, read_policy
from wire.fieldnames import written

from .door import MANAGE, READ, Body, Door, Shape, body_of, hold, operation
from .fieldnames import ENVIRONMENT
from .metadata import Metadata, MetadataPatch, merged
from .paging import Page, describe, flag, page_of, paging, parameter

RULE = "v1"
"""Name of the network rule that this wire writes."""
WEB_PORTS = (80, 443)
"""What an unrestricted network opens: the way out speaks HTTP and tunnels for it, nothing else."""


class Packages(Body):
    type: Literal["packages"] | None = None
    apt: tuple[str, ...] | None = None
    cargo: tuple[str, ...] | None = None
    gem: tuple[str, ...] | None = None
    go: tuple[str, ...] | None = None
    npm: tuple[str, ...] | None = None
    pip: tuple[str, ...] | None = None


class Limited(Body):
    type: Literal["limited"]
    allowed_hosts: tuple[str, ...] | None = Field(default=None, max_length=200)
    allow_mcp_servers: Literal[False] | None = None
    allow_package_managers: Literal[False] | None = None


class Unrestricted(Body):
    type: Literal["unrestricted"]


class Cloud(Body):
    type: Literal["cloud"]
    networking: Annotated[Limited | Unrestricted, Field(discriminator="type")] | None = None
    packages: Packages | None = None


class SelfHosted(Body):
    type: Literal["self_hosted"]


Config = Annotated[Cloud | SelfHosted, Field(discriminator="type")]


class EnvironmentCreate(Body):
    name: str
    description: str | None = None
    config: Config | None = None
    metadata: Metadata = {}
    scope: Literal["organization"] | None = None


class EnvironmentUpdate(Body):
    name: str | None = None
    description: str | None = None
    config: Config | None = None
    metadata: MetadataPatch | None = None
    scope: Literal["organization"] | None = None


class LimitedShape(Shape):
    type: Literal["limited"] = "limited"
    allowed_hosts: list[str]
    allow_mcp_servers: bool = False
    allow_package_managers: bool = False


class PackagesShape(Shape):
    type: Literal["packages"] = "packages"
    apt: list[str] = []
    cargo: list[str] = []
    gem: list[str] = []
    go: list[str] = []
    npm: list[str] = []
    pip: list[str] = []


class UnrestrictedShape(Shape):
    type: Literal["unrestricted"] = "unrestricted"


class CloudShape(Shape):
    type: Literal["cloud"] = "cloud"
    networking: LimitedShape | UnrestrictedShape
    packages: PackagesShape = PackagesShape()


class SelfHostedShape(Shape):
    type: Literal["self_hosted"] = "self_hosted"


class EnvironmentShape(Shape):
    type: Literal["environment"] = "environment"
    id: str
    name: str
    description: str | None
    config: CloudShape | SelfHostedShape
    scope: Literal["organization"] = "organization"
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    x_policy: dict[str, Any]
    x_organization_id: str | None


class EnvironmentDeleted(Shape):
    type: Literal["environment_deleted"] = "environment_deleted"
    id: str


class EnvironmentPage(Page[EnvironmentShape]):
    pass


def environment_shape(row: Environment) -> dict[str, Any]:
    policy = row.sandbox_policy
    limited = LimitedShape(allowed_hosts=sorted({endpoint.host for endpoint in policy.endpoints}))
    cloud = CloudShape(networking=UnrestrictedShape() if policy.unrestricted else limited)
    return EnvironmentShape(
        id=row.uid,
        name=row.name,
        description=row.description or None,
        config=SelfHostedShape() if row.has_workers else cloud,
        metadata=row.metadata,
        created_at=row.created_at,
        updated_at=row.updated_at,
        archived_at=row.archived_at,
        x_policy=policy.model_dump(mode="json"),
        x_organization_id=row.organisation.uid if row.organisation else None,
    ).wire()


def backend_from(config: Cloud | SelfHosted | None, before: str = "") -> str:
    """The sandbox that `config` asks for in place of an earlier one; which one of this server's it is,
    staff choose."""
    worker = Environment.Backend.WORKER.value
    if isinstance(config, SelfHosted):
        return worker
    return "" if isinstance(config, Cloud) and before == worker else before


def policy_from(
    config: Cloud | SelfHosted | None, before: str = "", *, worked: bool = False
) -> str:
    """The policy text that `config` makes of an earlier one, of an environment that has workers already where
    it is `worked`. Its other parts stay, and what it says of hosts that stay."""
    if config is None:
        return before
    if isinstance(config, SelfHosted):
        return before if worked else ""
    if config.packages is not None:
        _refuse_packages(config.packages)
    if config.networking is None:
        return before
    held = read_policy(before)
    hosts = _hosts(config.networking)
    known = {endpoint.host for endpoint in held.endpoints}
    if hosts == known or (EVERY_HOST in hosts and held.unrestricted):
        return before
    policy = json.loads(held.model_dump_json(exclude_unset=True))
    rules = policy.get("network_policies", {})
    for rule in rules.values():
        rule["endpoints"] = [one for one in rule["endpoints"] if one["host"] in hosts]
    added = [_endpoint(host) for host in sorted(hosts - known)]
    if added:
        rule = rules.setdefault(RULE, {"endpoints": []})
        rule["endpoints"] += added
    policy["network_policies"] = {name: rule for name, rule in rules.items() if rule["endpoints"]}
    return json.dumps(policy, indent=2)


def _hosts(networking: Limited | Unrestricted) -> set[str]:
    if isinstance(networking, Unrestricted):  # whether it is allowed, the action says
        return {EVERY_HOST}
    hosts = networking.allowed_hosts or ()
    if EVERY_HOST in hosts:
        raise Invalid(
            _("“*” is not a host."),
            field="config.networking.allowed_hosts",
            hint=_("List single hosts, or give the type “unrestricted”."),
        )
    return set(hosts)


def _endpoint(host: str) -> dict[str, Any]:
    return {"host": host, "ports": list(WEB_PORTS)} if host == EVERY_HOST else {"host": host}


def _refuse_packages(packages: Packages) -> None:
    """This server builds no sandboxes, so a list of packages would be a promise that nothing keeps."""
    for manager in PackagesShape.model_fields:
        if manager != "type" and getattr(packages, manager):
            raise Invalid(
                _("This server installs no packages into sandboxes."),
                field=f"config.packages.{manager}",
                hint=_(
                    "Leave it out. Whoever runs the server can install them on its host, or in the "
                    "image that AGENTSITE_DOCKER_IMAGE names; an agent can install what it needs into its "
                    "workspace where the network reaches an index."
                ),
            )


def visible_environments(caller: Caller) -> Any:
    rows = Environment.objects.visible_to(caller.user).usable_in(caller.organisation)
    return rows.select_related("organisation")


def find_environment(caller: Caller, uid: str) -> Environment:
    row = visible_environments(caller).filter(uid=uid).first()
    if row is None:
        raise NotFound(_("There is no such environment."))
    found: Environment = row
    return found


def _shapes(rows: Sequence[Environment]) -> list[dict[str, Any]]:
    return [environment_shape(row) for row in rows]


class Environments(Door):
    scopes = {"GET": READ, "POST": MANAGE}

    @operation(
        "environments_list",
        tag="environments",
        response=EnvironmentPage,
        query=(*paging(), parameter("include_archived", OpenApiTypes.BOOL)),
        summary="List environments, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_environments(self.caller)
        if not flag(query, "include_archived"):
            rows = rows.filter(archived_at=None)
        about = describe("environments", query)
        return Response(page_of(rows, query, about=about, show=_shapes))

    @operation(
        "environments_create",
        tag="environments",
        request=EnvironmentCreate,
        response=EnvironmentShape,
        summary="Create an environment",
    )
    def post(self, request: Request) -> Response:
        body = body_of(request, EnvironmentCreate)
        caller = self.caller
        with written(ENVIRONMENT), transaction.atomic():
            row = actions.create_environment(
                actor=caller.user,
                organisation=caller.organisation,
                name=body.name,
                description=body.description or "",
                upload_limit=DEFAULT_UPLOAD_LIMIT,
                backend=backend_from(body.config),
                policy=policy_from(body.config),
            )
            note_environment(actor=caller.user, environment=row, metadata=body.metadata)
        return Response(environment_shape(find_environment(self.caller, row.uid)))


class OneEnvironment(Door):
    scopes = {"GET": READ, "POST": MANAGE, "DELETE": MANAGE}

    @operation(
        "environments_retrieve",
        tag="environments",
        response=EnvironmentShape,
        summary="Read an environment",
    )
    def get(self, request: Request, uid: str) -> Response:
        return Response(environment_shape(find_environment(self.caller, uid)))

    @operation(
        "environments_update",
        tag="environments",
        request=EnvironmentUpdate,
        response=EnvironmentShape,
        summary="Change an environment",
    )
    def post(self, request: Request, uid: str) -> Response:
        body = body_of(request, EnvironmentUpdate)
        row = find_environment(self.caller, uid)
        if row.archived_at is not None:
            raise Conflict(
                _("This environment is archived and changes no more."),
                hint=_("Create a new one."),
            )
        actor = self.caller.user
        described = "description" in body.model_fields_set
        with written(ENVIRONMENT), transaction.atomic():
            hold(Environment.objects.filter(pk=row.pk))
            row = find_environment(self.caller, uid)
            row = actions.change_environment(
                actor=actor,
                environment=row,
                name=body.name if body.name is not None else row.name,
                description=(body.description or "") if described else row.description,
                upload_limit=row.upload_limit,
                backend=backend_from(body.config, row.backend),
                policy=policy_from(body.config, row.policy, worked=row.has_workers),
            )
            if body.metadata is not None:
                metadata = merged(row.metadata, body.metadata)
                note_environment(actor=actor, environment=row, metadata=metadata)
        return Response(environment_shape(find_environment(self.caller, uid)))

    @operation(
        "environments_delete",
        tag="environments",
        response=EnvironmentDeleted,
        summary="Delete an environment that no session uses",
    )
    def delete(self, request: Request, uid: str) -> Response:
        row = find_environment(self.caller, uid)
        actions.delete_environment(actor=self.caller.user, environment=row)
        return Response(EnvironmentDeleted(id=uid).wire())


class ArchiveEnvironment(Door):
    scopes = {"POST": MANAGE}

    @operation(
        "environments_archive",
        tag="environments",
        response=EnvironmentShape,
        summary="Archive an environment",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_environment(self.caller, uid)
        actions.archive_environment(actor=self.caller.user, environment=row)
        return Response(environment_shape(find_environment(self.caller, uid)))
