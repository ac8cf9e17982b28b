"""MCP servers are added, changed, switched off and taken away; what their tools say now is released.

Everybody's are staff's, an organisation's its managers', an agent's those who may change the agent, one's own
and those of one's conversations one's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.models import Organisation, User
from accounts.permissions import require_manager, require_member
from accounts.staff import require_staff
from agents.actions.agents import CHANGE as CHANGE_AGENT
from agents.actions.agents import require_editor, require_nobodys_own
from agents.models import Agent
from audit.record import Action
from conversations.actions.own import require_own
from conversations.models import Conversation
from harness.agentconfig import SERVER_NAME
from harness.errors import Busy, Conflict, Forbidden, Invalid, LimitReached, NotFound
from jobs.dispatch import dispatch
from jobs.turnstile import Turnstile
from mcpservers.addresses import check_url
from mcpservers.auditing import about_server
from mcpservers.connecting import connection_of
from mcpservers.listing import Described
from mcpservers.looking import Looked, keep_look, look_now
from mcpservers.mcpjson import read_servers
from mcpservers.models import CHANGE, McpServer, McpServerQuerySet, McpTool
from mcpservers.places import covering, place_of
from mcpservers.programs import checked_command, checked_variables, require_programs
from mcpservers.publishing import may_be_told
from mcpservers.secrets import checked_headers, sealed_headers
from mcpservers.whose import serving_in

LOOK = "mcpservers.look"
Scope = McpServer.Scope
LISTABLE = (Scope.DEPLOYMENT, Scope.ORGANISATION)
LEAST_SECONDS, MOST_SECONDS = 1, 600
waiting_for = Turnstile(4, slow=5)
"""Who waits in a request for a server, in this process; each person once, those of an organisation in half
of all places."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose a server is to be, and which it stands beside."""

    row: dict[str, Any]
    broader: McpServerQuerySet
    """Whose names it may not take."""
    may_cover: bool = False
    """Whether it may stand at the address of one of these."""


@dataclass(frozen=True, slots=True)
class Published:
    """Where a server that is added was found."""

    registry: str
    """Its host."""
    name: str
    version: str


@sensitive_variables("headers", "variables")
def add_server(
    *,
    actor: User,
    organisation: Organisation,
    scope: Scope,
    agent: Agent | None = None,
    conversation: Conversation | None = None,
    name: str,
    url: str = "",
    command: str = "",
    arguments: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_seconds: int = 60,
    look: bool = True,
    looked: Looked | None = None,
    published: Published | None = None,
) -> McpServer:
    """At an address, with headers; or a program, with variables. What it has at its first look is taken as it
    is; afterwards changes are held. `look`: that is now, while the actor waits, unless too many wait already;
    else it is soon. `looked`: what was found there a moment ago, in place of looking. `agent` and
    `conversation`: whose it is to be, by that scope.

    Raises NotFound, Forbidden, LimitReached, Conflict for a name that is taken, NotConfigured where secrets
    cannot be sealed, and Invalid naming the field.
    """
    place = _place(actor, organisation, scope, agent, conversation)
    if command:
        require_programs()
    given = _checked(name, url, command, arguments, timeout_seconds)
    sealed = _sealed(given, headers, variables)
    with transaction.atomic():
        # Its organisation before the person, as for a run that begins.
        if place.row["organisation"] is not None:
            Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        beside = McpServer.objects.filter(**place.row)
        most: int = settings.AGENTSITE_MCP_SERVERS
        if beside.count() >= most:
            raise LimitReached(
                _("There are %(most)d servers already.") % {"most": most},
                hint=_("Take one away first."),
            )
        broader = list(place.broader)
        if not place.may_cover:
            _require_uncovered(given, broader)
        names = {each.name for each in broader} | set(beside.values_list("name", flat=True))
        if given["name"] in names:
            raise Conflict(
                _("There is a server “%(name)s” already.") % {"name": given["name"]},
                hint=_("Give it another name."),
            )
        server = McpServer.objects.create(
            **place.row,
            **given,
            sealed=sealed,
            published_name=published.name if published else "",
            published_version=published.version if published else "",
            created_by=actor,
        )
        about_server(Action.MCP_SERVER_ADDED, actor, server, **_about(published))
        if looked is not None:
            keep_look(server.pk, looked)
        elif not look:
            dispatch(LOOK, server_id=server.pk)
    if look and looked is None:
        try:
            with waiting_for.place(actor.pk, among=server.organisation_id):
                look_now(server)
        except Busy:
            dispatch(LOOK, server_id=server.pk)
        server.refresh_from_db()
    return server


@sensitive_variables("text")
def add_from_json(
    *, actor: User, organisation: Organisation, scope: Scope, text: str
) -> list[McpServer]:
    """All that an `mcp.json` names, or none. Raises as `add_server`, on `json`."""
    named = read_servers(text)
    with transaction.atomic():
        added = []
        for each in named:
            try:
                server = add_server(
                    actor=actor,
                    organisation=organisation,
                    scope=scope,
                    name=each.name,
                    url=each.url,
                    command=each.command,
                    arguments=each.arguments,
                    headers=each.headers,
                    variables=each.variables,
                    look=False,
                )
            except Invalid as problem:
                message = f"{each.name}: {problem.message}"
                raise Invalid(message, field="json", hint=problem.hint) from None
            added.append(server)
    return added


@sensitive_variables("headers", "variables")
def change_server(
    *,
    actor: User,
    server: McpServer,
    url: str | None = None,
    command: str | None = None,
    arguments: Sequence[str] | None = None,
    headers: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    timeout_seconds: int | None = None,
    enabled: bool | None = None,
    through_provider: bool | None = None,
    listed: bool | None = None,
) -> McpServer:
    """None: as it was. Another address or program is another server: all its tools are held until somebody
    looked, and no model service calls it.

    Raises NotFound, Forbidden, NotConfigured and Invalid.
    """
    with transaction.atomic():
        held = lock_server(actor, server)
        before = (held.url, held.argv)
        given = _checked(
            held.name,
            held.url if url is None else url,
            held.command if command is None else command,
            held.arguments if arguments is None else arguments,
            held.timeout_seconds if timeout_seconds is None else timeout_seconds,
        )
        held.url, held.timeout_seconds = given["url"], given["timeout_seconds"]
        held.command, held.arguments = given["command"], given["arguments"]
        moved = (held.url, held.argv) != before
        if moved:
            if held.command:
                require_programs()
            _require_uncovered(given, _broader_than(held))
            # What was stored for one place is not sent to another.
            held.sealed = ""
            held.protocol = held.software = held.last_output = ""
            held.offers = {}
            held.wants_authorisation = False
            held.through_provider = False
            # What a registry said is of that place; whoever lists this one looks at it again.
            held.published_name = held.published_version = ""
            held.listed = False
            # Connections stay with the address that they were made for, and serve nobody elsewhere.
            held.clients.all().delete()
            # Of those that are gone or refused at the moment as well: no pin means anything elsewhere.
            for tool in held.tools.exclude(pinned=None):
                if tool.state == McpTool.State.RELEASED:
                    tool.state, tool.seen = McpTool.State.CHANGED, tool.pinned
                tool.digest = ""
                tool.save(update_fields=["state", "seen", "digest"])
        if headers is not None or variables is not None:
            held.sealed = _sealed(given, headers, variables)
        if enabled is not None:
            held.disabled_at = None if enabled else held.disabled_at or timezone.now()
        if through_provider is not None:
            held.through_provider = through_provider
        if listed is not None:
            if listed and held.scope not in LISTABLE:
                raise Invalid(
                    _("Only servers of an organisation or of everybody are listed."),
                    field="listed",
                    hint=_("Leave it out."),
                )
            if listed and not may_be_told(held.argv):
                raise Invalid(
                    _("It is a program on this server, which is nothing to others."),
                    field="listed",
                    hint=_("List one at an address, or one that mcp_package has installed."),
                )
            held.listed = listed
        held.updated_at = timezone.now()
        held.save()
        about_server(
            Action.MCP_SERVER_CHANGED,
            actor,
            held,
            enabled=held.disabled_at is None,
            through_provider=held.through_provider,
            listed=held.listed,
            moved=moved,
            secret=headers is not None or variables is not None,
        )
    return held


def remove_server(*, actor: User, server: McpServer) -> None:
    """Its tools are gone from the next call on, also in runs. Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = lock_server(actor, server)
        about_server(Action.MCP_SERVER_REMOVED, actor, held)
        held.delete()


def look_again(*, actor: User, server: McpServer, organisation_id: int | None = None) -> str:
    """Why it could not be looked at now; empty: it was. By the actor's own connection in the organisation,
    where she has one. Raises NotFound, Forbidden, and Busy where the actor
    or too many wait for one already."""
    with transaction.atomic():
        held = lock_server(actor, server)
    with waiting_for.place(actor.pk, among=held.organisation_id or organisation_id):
        return look_now(held, by=connection_of(held, actor.pk, organisation_id))


def release_tool(*, actor: User, server: McpServer, tool: str, digest: str) -> McpTool:
    """Take what a tool of that name says now for good. `digest` is that of what the actor looked at.

    Raises NotFound, Forbidden, and Conflict where it says something else by now, or nothing new.
    """
    with transaction.atomic():
        held = lock_server(actor, server)
        row = held.tools.select_for_update().filter(remote_name=tool).first()
        if row is None:
            raise NotFound(_("There is no such tool."))
        said = Described.model_validate(row.seen) if row.seen else None
        if said is None or said.digest != digest:
            raise Conflict(
                _("The tool says something else by now, or was released."),
                hint=_("Look at it again."),
            )
        row.pinned, row.digest, row.seen = row.seen, digest, None
        row.state, row.fault = McpTool.State.RELEASED, ""
        row.released_by, row.released_at = actor, timezone.now()
        row.save()
        about_server(Action.MCP_TOOL_RELEASED, actor, held, tool=row.remote_name, digest=digest)
    return row


def _place(
    actor: User,
    organisation: Organisation,
    scope: Scope,
    agent: Agent | None,
    conversation: Conversation | None,
) -> _Place:
    """Raises NotFound and Forbidden unless the actor may add one there."""
    row: dict[str, Any] = {
        "organisation": organisation,
        "owner": None,
        "agent": None,
        "conversation": None,
    }
    everybodys = McpServer.objects.filter(organisation=None, agent=None)
    match scope:
        case Scope.DEPLOYMENT:
            require_staff(actor, CHANGE)
            return _Place({**row, "organisation": None}, McpServer.objects.none(), may_cover=True)
        case Scope.ORGANISATION:
            require_manager(actor, organisation)
            return _Place(row, everybodys, may_cover=True)
        case Scope.AGENT if agent is not None:
            require_editor(actor, agent, CHANGE_AGENT)
            require_nobodys_own(actor, agent)
            row |= {"organisation": agent.organisation, "agent": agent}
            return _Place(row, McpServer.objects.serving(agent.organisation_id or 0, 0))
        case Scope.CONVERSATION if conversation is not None:
            require_own(actor, conversation)
            _require_personal()
            row |= {
                "organisation": conversation.organisation,
                "owner": actor,
                "conversation": conversation,
            }
            return _Place(row, serving_in(conversation).exclude(conversation=conversation))
        case _:
            require_member(actor, organisation)
            _require_personal()
            return _Place({**row, "owner": actor}, McpServer.objects.serving(organisation.pk, 0))


def _require_personal() -> None:
    if not settings.AGENTSITE_MCP_PERSONAL:
        raise Forbidden(
            _("Nobody adds servers of her own here."),
            hint=_("Ask who manages the organisation to add it."),
        )


def _about(published: Published | None) -> dict[str, str]:
    """What the audit log is told of where it was found."""
    if published is None:
        return {}
    return {
        "registry": published.registry,
        "registered_as": published.name,
        "version": published.version,
    }


def _checked(
    name: str,
    url: str,
    command: str,
    arguments: Sequence[str],
    timeout_seconds: int,
) -> dict[str, Any]:
    name = name.strip()
    if not SERVER_NAME.fullmatch(name):
        raise Invalid(
            _("A server's name has 1 to 32 small letters, digits and hyphens inside."),
            field="name",
            hint=_("Type one such as “github”."),
        )
    if not LEAST_SECONDS <= timeout_seconds <= MOST_SECONDS:
        raise Invalid(
            _("A call may take %(least)d to %(most)d seconds.")
            % {"least": LEAST_SECONDS, "most": MOST_SECONDS},
            field="timeout_seconds",
            hint=_("Type such a number."),
        )
    given = {"name": name, "url": "", "command": "", "arguments": []}
    if url.strip() and (command.strip() or arguments):
        raise Invalid(
            _("A server has an address or a command, not both."),
            field="command",
            hint=_("Leave one of them empty."),
        )
    # An empty address is refused in the words of one.
    where = checked_command(command, arguments) if command.strip() else {"url": check_url(url)}
    return {**given, **where, "timeout_seconds": timeout_seconds}


@sensitive_variables("headers", "variables")
def _sealed(
    given: Mapping[str, Any],
    headers: Mapping[str, str] | None,
    variables: Mapping[str, str] | None,
) -> str:
    """Headers of an address, variables of a program."""
    if headers and given["command"]:
        raise Invalid(
            _("Nothing is sent to a program but what it is asked."),
            field="headers",
            hint=_("Give it variables in place of headers."),
        )
    if variables and not given["command"]:
        raise Invalid(
            _("A server at an address finds no variables."),
            field="variables",
            hint=_("Send it headers in place of them."),
        )
    if given["command"]:
        return sealed_headers(checked_variables(variables or {}))
    return sealed_headers(checked_headers(headers or {}))


def _require_uncovered(given: Mapping[str, Any], broader: Iterable[McpServer]) -> None:
    argv = [given["command"], *given["arguments"]] if given["command"] else []
    if covering(place_of(given["url"], argv), broader):
        raise Conflict(
            _("There is a server at this address already."),
            hint=_("Use that one: rules about it would not know yours."),
        )


def _broader_than(server: McpServer) -> McpServerQuerySet:
    """Those at whose address it may not stand."""
    if server.conversation is not None:
        return serving_in(server.conversation).exclude(conversation=server.conversation)
    if server.agent_id is None and server.owner_id is None:
        return McpServer.objects.none()
    return McpServer.objects.serving(server.organisation_id or 0, 0)


def lock_server(actor: User, server: McpServer) -> McpServer:
    """The row, held; NotFound and Forbidden unless the actor may change it."""
    if not McpServer.objects.visible_to(actor).filter(pk=server.pk).exists():
        raise NotFound(_("There is no such MCP server."))
    mine = McpServer.objects.manageable_by(actor).filter(pk=server.pk).values("pk")
    held = McpServer.objects.select_for_update().filter(pk__in=mine).first()
    if held is None:
        raise Forbidden(_("You may not change this MCP server."), hint=_("Ask who manages it."))
    return held
