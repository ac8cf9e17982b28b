"""`/.well-known/agent-skills/`: the server's own skills, for clients and servers elsewhere."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from harness.errors import NotFound
from skills_app.serving import archive_of, index_text


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    try:
        text = index_text()
    except NotFound as problem:
        raise Http404 from problem
    return HttpResponse(
        text, content_type="application/json", headers={"Cache-Control": "no-cache"}
    )


@require_safe
def archive(request: HttpRequest, digest: str) -> HttpResponse:
    try:
        data = archive_of(digest)
    except NotFound as problem:
        raise Http404 from problem
    return HttpResponse(data, content_type="application/zip")
