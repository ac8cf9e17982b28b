"""A server that a registry of the operator's describes is added: at its address, or as the package that is
installed here at that version. It is one as any other from then on, and stays at the version that was
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.models import Organisation, User
from accounts.permissions import require_member
from harness.errors import Conflict, Invalid, NotFound
from mcpservers.actions.servers import Published, add_server, waiting_for
from mcpservers.addresses import host_of
from mcpservers.models import McpServer
from mcpservers.packages import Installed, installed_as
from mcpservers.registries import Found, read_version, registry_named, search
from mcpservers.serverjson import Filled, Package, ServerJson, Way, fill, ways_of

OCI = "oci"


def search_registry(
    *, actor: User, organisation: Organisation, number: int, text: str, cursor: str = ""
) -> Found:
    """Raises NotFound, Unregistered, and Busy where the actor or too many wait for one already."""
    require_member(actor, organisation)
    base = registry_named(number)
    with waiting_for.place(actor.pk, among=organisation.pk):
        return search(base, text, cursor)


def read_registered(
    *, actor: User, organisation: Organisation, number: int, name: str, version: str
) -> ServerJson:
    """The same."""
    require_member(actor, organisation)
    base = registry_named(number)
    with waiting_for.place(actor.pk, among=organisation.pk):
        return read_version(base, name, version)


@sensitive_variables("answers")
def add_registered(
    *,
    actor: User,
    organisation: Organisation,
    scope: McpServer.Scope,
    number: int,
    name: str,
    version: str,
    digest: str,
    way: int,
    answers: Mapping[str, str],
    called: str = "",
) -> McpServer:
    """`digest`: of what the actor looked at, `way`: which of its ways, `answers`: by the keys of its
    questions, `called`: what it is to be called here.

    Raises as `read_registered`, `fill` and `add_server`, and Conflict where the registry says something
    else by now or the package is not installed.
    """
    found = read_registered(
        actor=actor, organisation=organisation, number=number, name=name, version=version
    )
    if found.digest != digest:
        raise Conflict(
            _("The registry says something else of this server by now."),
            hint=_("Look at it again."),
        )
    chosen = next((each for each in offered_ways(found) if each.number == way), None)
    if chosen is None:
        raise NotFound(_("There is no such way to have it."))
    if chosen.refusal:
        raise Conflict(chosen.refusal, hint=chosen.hint)
    filled = fill(chosen, answers)
    command, arguments = _started(chosen, filled)
    return add_server(
        actor=actor,
        organisation=organisation,
        scope=scope,
        name=called.strip() or short_name(found.name),
        url=filled.url,
        command=command,
        arguments=arguments,
        headers=filled.headers,
        variables=filled.variables,
        published=Published(host_of(registry_named(number)), found.name, found.version),
    )


def offered_ways(server: ServerJson) -> list[Way]:
    """Those of `ways_of`; packages that are not installed here say how they come."""
    return [_as_installed(way) for way in ways_of(server)]


def short_name(name: str) -> str:
    """What it can be called here."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.rpartition("/")[2].lower()).strip("-")
    return plain[:32].strip("-")


def _as_installed(way: Way) -> Way:
    if way.package is None or way.refusal:
        return way
    if not settings.AGENTSITE_MCP_PROGRAMS:
        return way.refused(_("No MCP server is started as a program here."))
    if way.package.registry_type == OCI or _installed(way.package) is not None:
        return way
    return way.refused(
        _("It is not installed here."),
        hint=_("The operator installs it: manage.py mcp_package install %(package)s")
        % {"package": _spelt(way.package)},
    )


def _started(way: Way, filled: Filled) -> tuple[str, tuple[str, ...]]:
    if way.package is None:
        return "", ()
    if way.package.registry_type == OCI:
        return way.package.identifier, filled.arguments
    found = _installed(way.package)
    if found is None:
        raise Invalid(_("It is not installed here."), field="way")
    return found.command, (*found.arguments, *filled.arguments)


def _installed(package: Package) -> Installed | None:
    roots = [Path(each) for each in settings.AGENTSITE_MOUNT_ROOTS]
    return installed_as(package.registry_type, package.identifier, package.version, roots)


def _spelt(package: Package) -> str:
    between = "@" if package.registry_type == "npm" else "=="
    return f"{package.registry_type}:{package.identifier}{between}{package.version}"
