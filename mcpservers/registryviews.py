"""The pages on which a registry of the operator's is searched, and a server of it added."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from harness.errors import AgentError
from reading.digits import number_of

from .actions import registry as actions
from .addresses import host_of
from .models import McpServer
from .registryforms import form_of
from .serverjson import LATEST, Way
from .views import say_how_it_went, scopes_of


@login_required
@require_safe
@never_cache
def search(request: SignedInRequest) -> HttpResponse:
    """What a registry has, a page at a time; nothing is asked before somebody searched."""
    given = request.GET
    context: dict[str, Any] = {
        "registries": [host_of(each) for each in settings.AGENTSITE_MCP_REGISTRIES],
        "number": _number(request),
        "searched": given.get("search", ""),
        "asked": "search" in given,
    }
    status = 200
    if "search" in given:
        try:
            context["found"] = actions.search_registry(
                actor=request.user,
                organisation=request.organisation,
                number=_number(request),
                text=given.get("search", ""),
                cursor=given.get("cursor", ""),
            )
        except AgentError as problem:
            context["problem"] = problem.words
            status = 422
    return render(request, "mcpservers/registry.html", context, status=status)


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_registered(request: SignedInRequest) -> HttpResponse:
    """One version of a server with the ways to have it; a POST adds it by one of them."""
    number, given = _number(request), request.GET
    if "name" not in given:
        return redirect("mcpservers:registry")
    name, version = given.get("name", ""), given.get("version", LATEST)
    scopes = scopes_of(request)
    found = actions.read_registered(
        actor=request.user,
        organisation=request.organisation,
        number=number,
        name=name,
        version=version,
    )
    posted = request.POST if request.method == "POST" else None
    chosen = number_of(posted.get("way", "")) if posted is not None else None
    ways: list[tuple[Way, forms.Form | None]] = []
    status = 200
    for way in actions.offered_ways(found):
        form = None
        if not way.refusal and scopes:
            form = form_of(way, found, posted if way.number == chosen else None, scopes)
        ways.append((way, form))
        if form is None or way.number != chosen or posted is None:
            continue
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                server = actions.add_registered(
                    actor=request.user,
                    organisation=request.organisation,
                    scope=McpServer.Scope(form.cleaned_data["scope"]),
                    number=number,
                    name=found.name,
                    version=found.version,
                    digest=posted.get("digest", ""),
                    way=way.number,
                    answers=form.answers(),
                    called=form.cleaned_data["called"],
                )
                say_how_it_went(request, server, server.last_error)
                return redirect("mcpservers:server", uid=server.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"server": found, "ways": ways, "number": number, "may_add": bool(scopes)}
    return render(request, "mcpservers/registered.html", context, status=status)


def _number(request: SignedInRequest) -> int:
    return number_of(request.GET.get("registry", "0")) or 0
