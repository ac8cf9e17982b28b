"""How a change that worked is answered: an event for htmx, else a redirect with a message."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

CONVERSATIONS_CHANGED = "conversations-changed"
"""Lists of conversations load themselves again."""
FILES_CHANGED = "files-changed"


def done(
    request: HttpRequest, text: str, *, to: str, event: str = CONVERSATIONS_CHANGED
) -> HttpResponse:
    """Says `text`. The form's `next`, an address of this site, counts before `to`.

    htmx stays where it is and gets `event`, unless the form names a `next` to go to.
    """
    wanted = safe_next(request)
    if getattr(request, "htmx", False):
        if wanted:
            messages.success(request, text)
            return HttpResponseClientRedirect(wanted)
        response = HttpResponse(status=204)
        trigger_client_event(response, "notice", {"text": text})
        return trigger_client_event(response, event)
    messages.success(request, text)
    return redirect(wanted or to)


def safe_next(request: HttpRequest) -> str:
    """Where the form asks to go afterwards, if that is an address of this site; else empty."""
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    # What does not begin so would be taken for the name of a view.
    return wanted if safe and wanted.startswith("/") else ""
