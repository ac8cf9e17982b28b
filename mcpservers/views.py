"""The pages of MCP servers: those that one's work may use, one with its tools and what changed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from accounts.staff import has_staff_permission
from harness.errors import AgentError, Conflict, Invalid
from vaults.models import VaultCredential

from .accountviews import account_of
from .actions import servers as actions
from .addresses import host_of
from .differences import pages_of
from .finding import find_server
from .forms import ChangeForm, JsonForm, ProgramChangeForm, ProgramForm, ServerForm
from .models import CHANGE, McpConnection, McpServer, McpTool
from .offers import offers_of
from .packages import package_of
from .programs import command_line
from .publishing import may_be_told

MOST_PEOPLE = 200
"""Who is connected; of more, the latest."""
MOST_CONVERSATIONS = 50
"""Servers of single conversations that are listed; of more, the latest."""
SWITCHES = ("through_provider", "listed")
"""Beside whether it is used at all."""
HELD = Q(tools__state__in=[McpTool.State.NEW, McpTool.State.CHANGED])


@sensitive_post_parameters("headers", "program-variables", "file-json")
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_servers(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in and of everybody, and three ways to add some."""
    scopes = scopes_of(request)
    pasted, started = "file-json" in request.POST, "program-name" in request.POST
    posted = request.POST if request.method == "POST" else None
    form = ServerForm(None if pasted or started else posted, scopes=scopes)
    program = ProgramForm(posted if started else None, scopes=scopes)
    paste = JsonForm(posted if pasted else None, scopes=scopes)
    single = program if started else form
    status = 200
    if posted is not None:
        status = 422
        try:
            require_shown_organisation(request)
            if pasted and paste.is_valid():
                added = actions.add_from_json(
                    actor=request.user,
                    organisation=request.organisation,
                    scope=McpServer.Scope(paste.cleaned_data["scope"]),
                    text=paste.cleaned_data["json"],
                )
                names = ", ".join(each.name for each in added)
                messages.success(request, _("Added: %(names)s.") % {"names": names})
                return redirect("mcpservers:servers")
            if not pasted and single.is_valid():
                data = single.cleaned_data
                given = {**data, "scope": McpServer.Scope(data["scope"])}
                server = actions.add_server(
                    actor=request.user, organisation=request.organisation, **given
                )
                say_how_it_went(request, server, server.last_error)
                return redirect("mcpservers:server", uid=server.uid)
        except AgentError as problem:
            status = refuse(paste if pasted else single, problem)
    rows = McpServer.objects.usable_by(request.user, request.organisation.pk)
    here = rows.filter(conversation=None).values("pk")
    latest = rows.exclude(conversation=None).order_by("-pk").values("pk")[:MOST_CONVERSATIONS]
    rows = McpServer.objects.filter(Q(pk__in=here) | Q(pk__in=latest))
    counted = rows.select_related("organisation", "owner", "agent", "conversation").annotate(
        released=Count("tools", filter=Q(tools__state=McpTool.State.RELEASED)),
        held=Count("tools", filter=HELD),
    )
    context = {
        "rows": [
            (each, host_of(each.url) or each.command) for each in counted.order_by("name", "pk")
        ],
        "form": form,
        "program": program if settings.AGENTSITE_MCP_PROGRAMS else None,
        "paste": paste,
        "may_add": bool(scopes),
        "has_registries": bool(settings.AGENTSITE_MCP_REGISTRIES),
    }
    return render(request, "mcpservers/servers.html", context, status=status)


@sensitive_post_parameters("headers", "variables")
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_server(request: SignedInRequest, uid: str) -> HttpResponse:
    """One server with its tools; a POST changes it."""
    server = find_server(request, uid)
    names = ("command", "arguments") if server.argv else ("url",)
    initial = {name: getattr(server, name) for name in (*names, "timeout_seconds")}
    make = ProgramChangeForm if server.argv else ChangeForm
    form = make(request.POST if request.method == "POST" else None, initial=initial)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                given = dict(form.cleaned_data)
                secret = "variables" if server.argv else "headers"
                emptied: dict[str, str] | None = {} if given.pop("forget") else None
                given[secret] = given[secret] or emptied
                actions.change_server(actor=request.user, server=server, **given)
                messages.success(request, _("Saved. It holds from the next call on."))
                return redirect("mcpservers:server", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {
        **account_of(request, server),
        "server": server,
        "host": host_of(server.url),
        "line": command_line(server) if server.argv else "",
        "package": package_of(server.argv, settings.AGENTSITE_MOUNT_ROOTS),
        "tools": pages_of(server),
        "offers": offers_of(server),
        "people": _people(request, server),
        "form": form,
        "may_be_listed": server.scope in actions.LISTABLE and may_be_told(server.argv),
        "through_provider_allowed": settings.AGENTSITE_MCP_THROUGH_PROVIDER,
        "may_change": McpServer.objects.manageable_by(request.user).filter(pk=server.pk).exists(),
    }
    return render(request, "mcpservers/server.html", context, status=status)


@login_required
@require_POST
def look(request: SignedInRequest, uid: str) -> HttpResponse:
    server = find_server(request, uid)
    fault = actions.look_again(
        actor=request.user,
        server=server,
        organisation_id=request.organisation.pk,
    )
    server.refresh_from_db()
    say_how_it_went(request, server, fault)
    return redirect("mcpservers:server", uid=uid)


@login_required
@require_POST
def release(request: SignedInRequest, uid: str) -> HttpResponse:
    try:
        actions.release_tool(
            actor=request.user,
            server=find_server(request, uid),
            tool=request.POST.get("tool", ""),
            digest=request.POST.get("digest", ""),
        )
    except Conflict as problem:
        messages.error(request, problem.words)
    else:
        messages.success(request, _("Released. Agents have it from the next message on."))
    return redirect("mcpservers:server", uid=uid)


@login_required
@require_POST
def switch(request: SignedInRequest, uid: str) -> HttpResponse:
    name = next((each for each in SWITCHES if each in request.POST), "enabled")
    on = request.POST.get(name) == "1"
    change: dict[str, Any] = {name: on}
    try:
        actions.change_server(actor=request.user, server=find_server(request, uid), **change)
    except Invalid as problem:
        messages.error(request, problem.words)
        return redirect("mcpservers:server", uid=uid)
    if name == "listed":
        messages.success(request, _("Listed.") if on else _("Not listed any more."))
    else:
        messages.success(request, _("Switched on.") if on else _("Switched off."))
    return redirect("mcpservers:server", uid=uid)


@login_required
@require_POST
def remove(request: SignedInRequest, uid: str) -> HttpResponse:
    actions.remove_server(actor=request.user, server=find_server(request, uid))
    messages.success(request, _("The server is taken away."))
    return redirect("mcpservers:servers")


def _people(request: SignedInRequest, server: McpServer) -> list[McpConnection]:
    """Whose accounts are connected there, as far as she may know, the latest first."""
    rows = McpConnection.objects.visible_to(request.user).filter(
        server=server, url=server.url, credential__in=VaultCredential.objects.in_force()
    )
    return list(rows.select_related("user", "organisation").order_by("-pk")[:MOST_PEOPLE])


def scopes_of(request: SignedInRequest) -> list[tuple[str, Any]]:
    """Those in which she may add one, the narrowest first."""
    scope = McpServer.Scope
    found = []
    if settings.AGENTSITE_MCP_PERSONAL:
        found.append((scope.PERSON.value, scope.PERSON.label))
    if may_manage(request.user, request.organisation):
        found.append((scope.ORGANISATION.value, scope.ORGANISATION.label))
    if has_staff_permission(request.user, CHANGE):
        found.append((scope.DEPLOYMENT.value, scope.DEPLOYMENT.label))
    return found


def say_how_it_went(request: HttpRequest, server: McpServer, fault: str) -> None:
    if fault and server.wants_authorisation and server.failing_since is None:
        messages.info(
            request, _("It wants people to connect accounts of their own. Connect yours below.")
        )
    elif fault:
        messages.error(request, _("It could not be looked at: %(why)s") % {"why": fault})
    else:
        messages.success(request, _("It was looked at just now."))
