"""The webhooks of an organisation: its endpoints, what was delivered to each, and what to do about it.

For those who manage it. A secret is on the very page that answers its making, and never again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error, refuse
from accounts.permissions import require_manager
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Conflict, Invalid, NotFound
from reading.digits import number_of

from .actions import endpoints as actions
from .forms import EndpointForm, RotationForm
from .models import WebhookDelivery, WebhookEndpoint

PAGE_SIZE = 25


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def webhooks(request: SignedInRequest) -> HttpResponse:
    """The endpoints of the organisation one works in, and a form for a new one."""
    require_manager(request.user, request.organisation)
    if request.method != "POST":
        return _list(request, EndpointForm())
    form = EndpointForm(request.POST)
    try:
        require_shown_organisation(request)
        if form.is_valid():
            issued = actions.create_endpoint(
                actor=request.user, organisation=request.organisation, **form.values()
            )
            # The page itself is the answer, not a redirect: the secret is kept nowhere.
            return _show(request, issued.endpoint, secret=issued.secret)
    except AgentError as error:
        return _list(request, form, status=refuse(form, error))
    return _list(request, form, status=422)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def endpoint(request: SignedInRequest, uid: str) -> HttpResponse:
    """One endpoint with its deliveries; changing it."""
    found = _find(request, uid)
    if request.method != "POST":
        return _show(request, found)
    form = EndpointForm(request.POST)
    if form.is_valid():
        try:
            actions.change_endpoint(actor=request.user, endpoint=found, **form.values())
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("webhooks:webhook", uid=uid)
    return _show(request, found, form=form, status=422)


@login_required
@require_POST
@never_cache
def rotate(request: SignedInRequest, uid: str) -> HttpResponse:
    found = _find(request, uid)
    form = RotationForm(request.POST)
    if form.is_valid():
        try:
            issued = actions.rotate_secret(
                actor=request.user, endpoint=found, grace_hours=form.cleaned_data["grace_hours"]
            )
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            return _show(request, issued.endpoint, secret=issued.secret)
    return _show(request, found, rotation=form, status=422)


@login_required
@require_POST
def switch(request: SignedInRequest, uid: str) -> HttpResponse:
    """On or off, as `enabled` says."""
    found = _find(request, uid)
    try:
        match request.POST.get("enabled"):
            case "1":
                actions.enable_endpoint(actor=request.user, endpoint=found)
                messages.success(request, _("It is switched on; what waited is being sent."))
            case "0":
                actions.disable_endpoint(actor=request.user, endpoint=found)
                messages.success(request, _("It is switched off; what waits is kept."))
            case _other:
                raise Invalid(
                    _("It is neither to be on nor off."), field="enabled", hint=_("Give 1 or 0.")
                )
    except NotFound:
        raise
    except AgentError as error:
        messages.error(request, error.words)
    return redirect("webhooks:webhook", uid=uid)


@login_required
@require_POST
def remove(request: SignedInRequest, uid: str) -> HttpResponse:
    actions.remove_endpoint(actor=request.user, endpoint=_find(request, uid))
    messages.success(request, _("The endpoint and its deliveries are removed."))
    return redirect("webhooks:webhooks")


@login_required
@require_POST
def test(request: SignedInRequest, uid: str) -> HttpResponse:
    found = _find(request, uid)
    try:
        made = actions.send_test(actor=request.user, endpoint=found)
    except Conflict as error:
        messages.error(request, error.words)
        return redirect("webhooks:webhook", uid=uid)
    return redirect("webhooks:webhook-delivery", uid=uid, event_uid=made.event_id)


@login_required
@require_POST
def redeliver_dead(request: SignedInRequest, uid: str) -> HttpResponse:
    found = _find(request, uid)
    try:
        count = actions.redeliver_dead(actor=request.user, endpoint=found)
    except Conflict as error:
        messages.error(request, error.words)
    else:
        message = ngettext("%(count)d is sent again.", "%(count)d are sent again.", count)
        messages.success(request, message % {"count": count})
    return redirect("webhooks:webhook", uid=uid)


@login_required
@require_safe
@never_cache
def delivery(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    """One delivery with its body and its attempts. Asked by htmx, only what changes."""
    found = _find(request, uid)
    row = _find_delivery(found, event_uid)
    context = {"endpoint": found, "delivery": row, "attempts": row.attempt_log.all()}
    part = "webhooks/_webhook_attempts.html"
    whole = "webhooks/webhook_delivery.html"
    return render(request, part if getattr(request, "htmx", False) else whole, context)


@login_required
@require_POST
def redeliver(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    row = _find_delivery(_find(request, uid), event_uid)
    try:
        actions.redeliver(actor=request.user, delivery=row)
    except Conflict as error:
        messages.error(request, error.words)
    else:
        messages.success(request, _("It is sent again."))
    return redirect("webhooks:webhook-delivery", uid=uid, event_uid=event_uid)


def _find(request: SignedInRequest, uid: str) -> WebhookEndpoint:
    found = WebhookEndpoint.objects.visible_to(request.user).select_related("organisation")
    endpoint = found.filter(uid=uid).first()
    if endpoint is None:
        raise NotFound(_("There is no such webhook endpoint."))
    return endpoint


def _find_delivery(endpoint: WebhookEndpoint, event_uid: str) -> WebhookDelivery:
    found = WebhookDelivery.objects.select_related("endpoint")
    row = found.filter(endpoint=endpoint, event_id=event_uid).first()
    if row is None:
        raise NotFound(_("There is no such delivery."))
    return row


def _list(request: SignedInRequest, form: EndpointForm, *, status: int = 200) -> HttpResponse:
    shown = WebhookEndpoint.objects.visible_to(request.user)
    endpoints = list(shown.filter(organisation=request.organisation))
    State = WebhookDelivery.State  # noqa: N806 - a name of the model's
    # Those that were delivered are many, and nobody asks how many.
    states = [State.PENDING, State.FAILED, State.DEAD]
    others = WebhookDelivery.objects.filter(endpoint__in=endpoints, state__in=states)
    counts: Counter[tuple[int, str]] = Counter()
    for pk, state, count in (
        others.order_by().values_list("endpoint", "state").annotate(Count("pk"))
    ):
        counts[pk, "dead" if state == State.DEAD else "waiting"] += count
    context = {
        "rows": [(one, counts[one.pk, "waiting"], counts[one.pk, "dead"]) for one in endpoints],
        "form": form,
    }
    return render(request, "webhooks/webhooks.html", context, status=status)


@sensitive_variables("extra")
def _show(
    request: SignedInRequest, endpoint: WebhookEndpoint, *, status: int = 200, **extra: Any
) -> HttpResponse:
    state = request.GET.get("state", "")
    deliveries = endpoint.deliveries.all()
    if state in WebhookDelivery.State.values:
        deliveries = deliveries.filter(state=state)
    if (before := number_of(request.GET.get("before"))) is not None:
        deliveries = deliveries.filter(pk__lt=before)
    found = list(deliveries.order_by("-pk")[: PAGE_SIZE + 1])
    context: dict[str, Any] = {
        "endpoint": endpoint,
        "deliveries": found[:PAGE_SIZE],
        "before": found[PAGE_SIZE - 1].pk if len(found) > PAGE_SIZE else None,
        "state": state,
        "states": WebhookDelivery.State.choices,
        "dead": endpoint.deliveries.filter(state=WebhookDelivery.State.DEAD).count(),
        "form": EndpointForm.of(endpoint),
        "rotation": RotationForm(),
        "old_secrets": endpoint.secrets.exclude(expires_at=None).order_by("-pk"),
    }
    return render(request, "webhooks/webhook.html", {**context, **extra}, status=status)
