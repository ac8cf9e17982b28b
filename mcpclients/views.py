"""The page on which a person lets a client in, or declines.

Her browser came from the client, which anybody may be: nothing is sent to an address that the client did not
register, nothing is done before she presses, and she is asked for her password if that was not just done, as
for every token.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from csp.decorators import csp_update
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from oauthlib.common import add_params_to_uri
from oauthlib.oauth2.rfc6749.errors import FatalClientError, OAuth2Error

from accounts.forms import add_error
from accounts.models import Organisation, User
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Invalid, NotFound, TooMany

from . import documents, rates
from .actions.consents import allow_client
from .exchange import Asked, read_request
from .forms import ConsentForm
from .metadata import issuer_of, resource_of
from .models import McpClient
from .redirects import fits, host_of, is_on_her_machine, program_of

DOCUMENTS_AN_HOUR = 30
"""That are read for one person."""


@login_required
@require_http_methods(["GET", "POST"])
@never_cache
def authorise(request: SignedInRequest) -> HttpResponse:
    if not settings.AGENTSITE_MCP_OAUTH:
        raise Http404
    if request.method == "POST" and is_reauthentication_required(request, app=""):
        # Asked as a page, not behind the form: a browser holds all that follows a form to where it may lead.
        return redirect(request.get_full_path())
    answer: HttpResponse = _asked(request)
    return answer


@reauthentication_required(allow_get=False)  # type: ignore[untyped-decorator]
def _asked(request: SignedInRequest) -> HttpResponse:
    # Written anew, in the one spelling that the library takes.
    pairs = [(name, value) for name, held in request.GET.lists() for value in held]
    try:
        _look_up(request.user, request.GET.get("client_id", ""))
        asked = read_request(urlencode(pairs), resource=resource_of(request))
    except (Invalid, TooMany) as problem:
        return _refused(request, problem.message)
    except FatalClientError as problem:
        return _refused(request, _fatal(problem))
    except OAuth2Error as problem:
        return _sent_back(request, dict(problem.twotuples))
    return _answered(request, asked)


def _answered(request: SignedInRequest, asked: Asked) -> HttpResponse:
    organisations = list(Organisation.objects.filter(memberships__user=request.user))
    form = ConsentForm(
        request.POST if request.method == "POST" else None,
        scopes=asked.scopes,
        organisations=organisations,
        shown=request.organisation,
    )
    if request.method != "POST":
        return _page(request, asked, form)
    if "allow" not in request.POST:
        return _sent_back(request, {"error": "access_denied"})
    if form.is_valid():
        where = {each.uid: each for each in organisations}[form.cleaned_data["organisation"]]
        try:
            code = allow_client(
                actor=request.user,
                organisation=where,
                client=asked.client,
                scopes=form.cleaned_data["scopes"],
                days=int(form.cleaned_data["days"]),
                redirect_uri=asked.redirect_uri,
                challenge=asked.challenge,
            )
        except NotFound:
            raise
        except AgentError as problem:
            add_error(form, problem)
        else:
            return _sent_back(request, {"code": code})
    return _page(request, asked, form, status=422)


def _look_up(user: User, client_id: str) -> None:
    """Read the document of a client that has one, if that was not just done. Raises Invalid, TooMany."""
    if not documents.is_document(client_id):
        return
    known = McpClient.objects.filter(client_id=client_id).first()
    if documents.is_fresh(known) or (known is not None and known.blocked_at is not None):
        return
    rates.count("document", user.uid, most=DOCUMENTS_AN_HOUR, seconds=rates.HOUR)
    documents.read_client(client_id)


def _sent_back(request: HttpRequest, said: dict[str, str]) -> HttpResponse:
    """To the client, which has registered the address: the last look before a browser goes there."""
    uri = request.GET["redirect_uri"]
    client = McpClient.objects.filter(client_id=request.GET["client_id"]).first()
    if client is None or not any(fits(uri, each) for each in client.redirect_uris):
        return _refused(request, _("Its answers may not go where it wants them."))
    more = {"iss": issuer_of(request)}
    if state := request.GET.get("state"):
        more["state"] = state
    answer = _ToClient(add_params_to_uri(uri, list({**said, **more}.items())))
    answer["Referrer-Policy"] = "no-referrer"
    return answer


class _ToClient(HttpResponseRedirect):
    """Also where that is a program with a scheme of its own."""

    def __init__(self, uri: str) -> None:
        self.allowed_schemes = [*self.allowed_schemes, *filter(None, [program_of(uri)])]
        super().__init__(uri)


def _page(
    request: SignedInRequest, asked: Asked, form: ConsentForm, *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "client": asked.client,
        "form": form,
        "host": host_of(asked.redirect_uri),
        "on_her_machine": is_on_her_machine(asked.redirect_uri),
    }
    answer = render(request, "mcpclients/consent.html", context, status=status)
    # A browser holds all redirects after a posted form to this: that to the client, and those by which the
    # client leads on. It has no word for `[::1]` either, so that no host is named.
    schemes = ["https:", "http:"] if context["on_her_machine"] else ["https:"]
    if program := program_of(asked.redirect_uri):
        schemes.append(f"{program}:")
    csp_update({"form-action": schemes})(lambda _request: answer)(request)
    return answer


def _refused(request: HttpRequest, why: str) -> HttpResponse:
    """Shown here and sent nowhere: who asks is not known."""
    return render(request, "mcpclients/refused.html", {"why": why}, status=400)


def _fatal(problem: FatalClientError) -> str:
    kind = type(problem).__name__
    if "ClientId" in kind:
        return _("It is not registered here, or was blocked.")
    if "RedirectURI" in kind:
        return _("Its answers may not go where it wants them.")
    return _("What it asks for cannot be read.")
