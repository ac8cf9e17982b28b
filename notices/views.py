"""The pages of notifications: what a person is told of, her browsers that take pushes, the link in mails that
stops them, and the script that browsers run for a push."""

from __future__ import annotations

import json

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.forms import add_error
from accounts.requests import SignedInRequest
from harness.errors import Invalid, LimitReached, NotConfigured, NotFound

from .actions.devices import add_device, remove_device, send_test
from .actions.wishes import set_notices
from .browsers import name_of
from .forms import NoticeForm
from .models import Device, NoticeWish
from .pushkeys import public_text, server_key
from .stopping import read_link


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_settings(request: SignedInRequest) -> HttpResponse:
    kept = NoticeWish.objects.filter(user=request.user).first()
    wish = kept or NoticeWish(timezone=str(timezone.get_current_timezone()))
    form = NoticeForm(
        request.POST if request.method == "POST" else None,
        initial={name: getattr(wish, name) for name in NoticeForm.base_fields},
    )
    if request.method == "POST" and form.is_valid():
        try:
            set_notices(actor=request.user, **form.cleaned_data)
        except Invalid as problem:
            add_error(form, problem)
        else:
            messages.success(request, _("Saved."))
            return redirect("notices:settings")
    context = {
        "form": form,
        "is_kept": kept is not None,
        "devices": Device.objects.visible_to(request.user),
        "this_session": request.session.session_key,
        "push_key": _push_key(),
        "mails_are_sent": settings.AGENTSITE_EMAIL_CONFIGURED and bool(settings.AGENTSITE_BASE_URL),
    }
    return render(request, "notices/settings.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def sign_up(request: SignedInRequest) -> HttpResponse:
    """What the browser's push service gave it (`static/js/push.js`)."""
    try:
        add_device(
            actor=request.user,
            session_key=request.session.session_key or "",
            name=name_of(request.headers.get("User-Agent", "")),
            endpoint=request.POST.get("endpoint", ""),
            p256dh=request.POST.get("p256dh", ""),
            auth=request.POST.get("auth", ""),
        )
    except LimitReached as problem:
        # The script loads the page again, which says so.
        messages.error(request, problem.words)
        return HttpResponse(status=409)
    messages.success(request, _("This browser takes pushes now."))
    return HttpResponse(status=204)


@login_required
@require_POST
def remove(request: SignedInRequest, uid: str) -> HttpResponse:
    remove_device(actor=request.user, uid=uid)
    messages.success(request, _("The browser takes no pushes any more."))
    return redirect("notices:settings")


@login_required
@require_POST
def test(request: SignedInRequest, uid: str) -> HttpResponse:
    try:
        send_test(actor=request.user, uid=uid)
    except LimitReached as problem:
        messages.error(request, problem.words)
    else:
        messages.success(request, _("A test is on its way."))
    return redirect("notices:settings")


@csrf_exempt  # the link itself says who asks, and mail programs post without a cookie
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest, token: str) -> HttpResponse:
    """Whoever follows the link in a mail; no signing in. Only posting changes anything."""
    asked = read_link(token)
    if asked is None:
        raise NotFound(_("This link opens nothing."))
    if request.method == "POST":
        asked.stop.stop(asked.user, asked.subject)
    context = {"words": asked.stop.words, "is_stopped": request.method == "POST"}
    return render(request, "notices/stop.html", context)


@require_safe
@cache_control(no_cache=True)
def worker(request: HttpRequest) -> HttpResponse:
    """The script that a browser runs for a push. It stands at the root, since it works for what is below
    its address; what it does is a file like all others. It names nobody."""
    script = f"importScripts({json.dumps(static('js/worker.js'))});\n"
    return HttpResponse(script, content_type="text/javascript; charset=utf-8")


def _push_key() -> str:
    """The public key for browsers; empty where nothing is pushed."""
    if settings.AGENTSITE_PUSH_SECONDS <= 0:
        return ""
    try:
        return public_text(server_key())
    except NotConfigured:
        return ""
