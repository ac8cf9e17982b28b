"""Files that a browser draws itself: pictures, and pages in a frame. Each answer is sandboxed: its document
has no origin, runs no script, sends no form and loads nothing, also for whoever opens its address.
"""

from __future__ import annotations

import re

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from chat.presentation.previews import (
    DRAWING_BYTES,
    PAGE_BYTES,
    PICTURE_BYTES,
    ending_of,
    picture_type,
)
from harness.errors import Invalid
from tools_app.textfiles import decode
from tools_app.workspace import Workspace, workspace_for

from .lookup import find_conversation

POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""Without a script, a form, a plugin or a request, so that nothing it says leaves the frame."""
_LINK = re.compile(r"<link(?=[\t\n\f\r />])", re.IGNORECASE)
"""A `<link>` alone connects (`preconnect`) and asks for names (`dns-prefetch`) whatever the policy says,
and what it names may be what was read here. It is told as an element that stands at the same places and
does nothing."""
_NOTHING = "<bgsound"


@login_required
@require_safe
@never_cache
def picture(request: SignedInRequest, uid: str) -> HttpResponse:
    """Only what begins as a picture is one, whatever its name; an SVG is drawn as one by `<img>`."""
    find_conversation(request.user, uid)
    workspace, path = Workspace(workspace_for(uid)), request.GET.get("path", "")
    if ending_of(path) == "svg":
        drawing = _text(workspace, path, DRAWING_BYTES).encode(errors="replace")
        answer = _sandboxed(drawing, "image/svg+xml; charset=utf-8")
        # `<img>` heeds this not. Opened by itself it would be a document, whose links connect.
        answer["Content-Disposition"] = "attachment"
        return answer
    data = workspace.read_bytes(path, PICTURE_BYTES)
    kind = picture_type(data)
    if not kind:
        raise Invalid(_("This file is no picture."), field="path")
    return _sandboxed(data, kind)


@login_required
@require_safe
@never_cache
def page(request: SignedInRequest, uid: str) -> HttpResponse:
    """An HTML file, for a frame of the page that shows it."""
    find_conversation(request.user, uid)
    workspace, path = Workspace(workspace_for(uid)), request.GET.get("path", "")
    if ending_of(path) not in {"htm", "html"}:
        raise Invalid(_("This file is no page."), field="path")
    told = _LINK.sub(_NOTHING, _text(workspace, path, PAGE_BYTES))
    answer = _sandboxed(told.encode(errors="replace"), "text/html; charset=utf-8")
    answer["X-Frame-Options"] = "SAMEORIGIN"
    return answer


def _text(workspace: Workspace, path: str, limit: int) -> str:
    """To be sent in the one encoding that the answer names, so that none can be guessed that reads it
    otherwise."""
    found = decode(workspace.read_bytes(path, limit))
    if found is None:
        raise Invalid(_("This file is not text."), field="path")
    return found.text


def _sandboxed(data: bytes, kind: str) -> HttpResponse:
    answer = HttpResponse(data, content_type=kind)
    answer["Content-Security-Policy"] = POLICY
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cross-Origin-Resource-Policy"] = "same-origin"
    answer["Referrer-Policy"] = "no-referrer"
    answer["X-DNS-Prefetch-Control"] = "off"
    return answer
