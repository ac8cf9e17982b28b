"""The page of API tokens and service accounts. A new secret is in the answer to its form alone.

Whoever makes or replaces one types the password again, if that was not just done: a token outlives
the session, so a session that somebody took is not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.actions.service_accounts import create_service_account, remove_service_account
from accounts.actions.tokens import IssuedToken, create_token, revoke_token, rotate_token
from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.models import ApiToken, User
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from accounts.tokenforms import RotationForm, ServiceAccountForm, TokenForm
from harness.errors import AgentError, Conflict, LimitReached, NotFound

Made = TypeVar("Made")


@login_required
@require_http_methods(["GET", "POST"])
@never_cache
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]
def tokens(request: SignedInRequest) -> HttpResponse:
    if request.method == "GET":
        return _page(request)
    form = _token_form(request, request.POST)

    def create() -> IssuedToken:
        return create_token(
            actor=request.user,
            organisation=request.organisation,
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            expires_at=form.expires_at(),
            user=form.holder(),
        )

    issued, status = _try(request, form, create)
    if issued is None:
        return _page(request, status=status, token_form=form)
    return _page(request, issued=issued)


@login_required
@require_POST
@never_cache
def rotate(request: SignedInRequest, uid: str) -> HttpResponse:
    """Somebody else's token is not found, whatever the password."""
    answer: HttpResponse = _rotated(request, _token(request, uid))
    return answer


@reauthentication_required  # type: ignore[untyped-decorator]
def _rotated(request: SignedInRequest, token: ApiToken) -> HttpResponse:
    form = RotationForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose for how long the old secret goes on working."))
        return redirect("accounts:tokens")
    try:
        issued = rotate_token(actor=request.user, token=token, overlap=form.overlap())
    except (Conflict, LimitReached) as error:
        messages.error(request, error.words)
        return redirect("accounts:tokens")
    return _page(request, issued=issued)


@login_required
@require_POST
def revoke(request: SignedInRequest, uid: str) -> HttpResponse:
    revoke_token(actor=request.user, token=_token(request, uid))
    messages.success(request, _("The token was revoked."))
    return redirect("accounts:tokens")


@login_required
@require_POST
def add_service_account(request: SignedInRequest) -> HttpResponse:
    form = ServiceAccountForm(request.POST, prefix="service")

    def create() -> User:
        return create_service_account(
            actor=request.user,
            organisation=request.organisation,
            name=form.cleaned_data["name"],
            role=form.cleaned_data["role"],
        )

    made, status = _try(request, form, create)
    if made is None:
        return _page(request, status=status, service_form=form)
    messages.success(request, _("The service account was made. Give it a token."))
    return redirect("accounts:tokens")


@login_required
@require_POST
def remove_service(request: SignedInRequest, uid: str) -> HttpResponse:
    account = User.objects.filter(
        uid=uid, kind=User.Kind.SERVICE, memberships__organisation__memberships__user=request.user
    ).first()
    if account is None:
        raise Http404
    require_shown_organisation(request)
    remove_service_account(actor=request.user, organisation=request.organisation, account=account)
    messages.success(request, _("The service account and its tokens were removed."))
    return redirect("accounts:tokens")


def _try(
    request: SignedInRequest, form: Form, action: Callable[[], Made]
) -> tuple[Made | None, int]:
    """What the action made, or None and the status, with the refusal in the form."""
    try:
        require_shown_organisation(request)
    except Conflict as error:
        form.is_valid()
        add_error(form, error)
        return None, 409
    if form.is_valid():
        try:
            return action(), 200
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
    return None, 422


def _token(request: SignedInRequest, uid: str) -> ApiToken:
    token = ApiToken.objects.visible_to(request.user).filter(uid=uid).first()
    if token is None:
        raise Http404
    return token


def _service_accounts(request: SignedInRequest) -> list[User]:
    accounts = User.objects.filter(
        kind=User.Kind.SERVICE, memberships__organisation=request.organisation
    )
    return list(accounts.order_by("first_name", "pk"))


def _token_form(request: SignedInRequest, data: Any = None) -> TokenForm:
    manages = may_manage(request.user, request.organisation)
    accounts = _service_accounts(request) if manages else []
    return TokenForm(data, accounts=accounts, manages=manages)


def _page(request: SignedInRequest, *, status: int = 200, **extra: Any) -> HttpResponse:
    rows = ApiToken.objects.visible_to(request.user).filter(organisation=request.organisation)
    manages = may_manage(request.user, request.organisation)
    context: dict[str, Any] = {
        "tokens": rows.valid_at(timezone.now()).select_related("user"),
        "token_form": _token_form(request),
        "rotation_form": RotationForm(),
        "manages": manages,
        "service_accounts": _service_accounts(request) if manages else [],
        "service_form": ServiceAccountForm(prefix="service"),
        "limits": {
            "reads": settings.AGENTSITE_API_READS_PER_MINUTE,
            "writes": settings.AGENTSITE_API_WRITES_PER_MINUTE,
            "day": settings.AGENTSITE_API_REQUESTS_PER_DAY,
        },
    }
    return render(request, "accounts/tokens.html", {**context, **extra}, status=status)
