"""A person's own account at an MCP server, on its page: connect, come back, end it; and the client that
whoever manages the server registered.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Declined, NotFound

from .actions import connections as actions
from .actions.questions import answer_connected
from .actions.servers import look_again
from .connecting import connection_of, is_over
from .finding import find_server
from .forms import ClientForm
from .models import McpServer


def account_of(request: SignedInRequest, server: McpServer) -> dict[str, Any]:
    """What a server's page shows of it."""
    found = connection_of(server, request.user.pk, request.organisation.pk)
    return {
        "connection": found,
        "connection_over": found is not None and is_over(found),
        "clients": list(server.clients.all()),
        "client_form": ClientForm(),
        "redirect_uri": redirect_uri(request, server),
    }


def redirect_uri(request: HttpRequest, server: McpServer) -> str:
    """One of each server's own, so that no authorisation server can answer in another's place."""
    return f"{_site(request)}{reverse('mcpservers:server-connected', args=[server.uid])}"


@login_required
@require_POST
@never_cache
def connect(request: SignedInRequest, uid: str) -> HttpResponse:
    """Where one would go to allow it, before one goes there."""
    server = find_server(request, uid)
    require_shown_organisation(request)
    try:
        way = actions.begin_connection(
            actor=request.user,
            organisation=request.organisation,
            server=server,
            redirect_uri=redirect_uri(request, server),
            document=_document(request, uid),
            back=request.POST.get("back", ""),
        )
    except NotFound:
        raise
    except AgentError as problem:
        messages.error(request, problem.words)
        return redirect("mcpservers:server", uid=uid)
    context = {"server": server, "way": way, "back": request.POST.get("back", "")}
    return render(request, "mcpservers/connect.html", context)


@sensitive_variables("given")
@login_required
@require_GET
@never_cache
def come_back(request: SignedInRequest, uid: str) -> HttpResponse:
    """From the authorisation server, with a code that serves once."""
    server = find_server(request, uid)
    given = {name: str(value) for name, value in request.GET.items()}
    try:
        back = actions.finish_connection(actor=request.user, server=server, given=given)
    except AgentError as problem:
        messages.error(request, problem.words)
        return redirect("mcpservers:server", uid=uid)
    if back.connection is None:
        messages.error(request, _("It was not allowed there. Nothing is connected."))
    else:
        messages.success(request, _("You are connected."))
        answer_connected(actor=request.user, server=server)
        if not server.tools.exists() and McpServer.objects.manageable_by(request.user).contains(
            server
        ):
            look_again(
                actor=request.user,
                server=server,
                organisation_id=back.connection.organisation_id,
            )
    return redirect(back.path or reverse("mcpservers:server", args=[uid]))


@login_required
@require_POST
def disconnect(request: SignedInRequest, uid: str) -> HttpResponse:
    server = find_server(request, uid)
    require_shown_organisation(request)
    actions.end_connection(actor=request.user, organisation=request.organisation, server=server)
    messages.success(request, _("You are not connected any more."))
    return redirect("mcpservers:server", uid=uid)


@sensitive_post_parameters("client_secret")
@login_required
@require_POST
@never_cache
def set_client(request: SignedInRequest, uid: str) -> HttpResponse:
    server = find_server(request, uid)
    form = ClientForm(request.POST)
    if form.is_valid():
        try:
            actions.register_client(actor=request.user, server=server, **form.cleaned_data)
        except NotFound:
            raise
        except Declined as problem:
            if problem.code == "forbidden":
                raise
            add_error(form, problem)
        else:
            messages.success(request, _("The client is registered here."))
            return redirect("mcpservers:server", uid=uid)
    for faults in form.errors.values():
        messages.error(request, " ".join(map(str, faults)))
    return redirect("mcpservers:server", uid=uid)


@require_GET
def show_document(request: HttpRequest, uid: str) -> HttpResponse:
    """Who we are, for authorisation servers that take an address for a client's id. It is the same for every
    id, whether there is such a server or not."""
    place = f"{_site(request)}{reverse('mcpservers:server-connected', args=[uid])}"
    return JsonResponse(
        {
            "client_id": f"{_site(request)}{reverse('mcpservers:client-document', args=[uid])}",
            "client_name": "Agentsite",
            "client_uri": _site(request),
            "redirect_uris": [place],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
    )


def _document(request: HttpRequest, uid: str) -> str:
    """Its address; empty where nobody else could read it."""
    if not (settings.AGENTSITE_MCP_CLIENT_DOCUMENT and _site(request).startswith("https://")):
        return ""
    return f"{_site(request)}{reverse('mcpservers:client-document', args=[uid])}"


def _site(request: HttpRequest) -> str:
    return settings.AGENTSITE_BASE_URL or request.build_absolute_uri("/").rstrip("/")
