"""A conversation as a file to keep."""

from __future__ import annotations

from functools import partial
from typing import Literal

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from rest_framework.request import Request

from accounts.requests import SignedInRequest
from accounts.streaming import streamed
from conversations.actions.own import may_read
from conversations.models import Conversation
from keeping.export import as_json, as_markdown

from .lookup import find_conversation


@login_required
@require_safe
@never_cache
def export_markdown(request: SignedInRequest, uid: str) -> StreamingHttpResponse:
    return export_of(request, find_conversation(request.user, uid), "markdown")


@login_required
@require_safe
@never_cache
def export_json(request: SignedInRequest, uid: str) -> StreamingHttpResponse:
    return export_of(request, find_conversation(request.user, uid), "json")


def export_of(
    request: HttpRequest | Request, conversation: Conversation, form: Literal["markdown", "json"]
) -> StreamingHttpResponse:
    """The conversation as a download, for whoever may read it and as long as she may."""
    if form == "markdown":
        pieces, media_type, suffix = as_markdown(conversation), "text/markdown", "md"
    else:
        pieces, media_type, suffix = as_json(conversation), "application/json", "json"
    name = f"{slugify(conversation.title)[:60].strip('-') or conversation.uid}.{suffix}"

    return StreamingHttpResponse(
        streamed(request, pieces, still=partial(may_read, conversation=conversation)),
        content_type=f"{media_type}; charset=utf-8",
        headers={
            "Content-Disposition": content_disposition_header(True, name) or "attachment",
            "X-Content-Type-Options": "nosniff",
        },
    )
