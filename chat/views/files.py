"""The files of a conversation: list, preview, download, upload."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST, require_safe

from accounts.persons import whose_place
from accounts.requests import SignedInRequest
from chat.attachables import attachables_of
from chat.presentation.changed import missing_files
from chat.presentation.previews import document_text, ending_of, kind_of_preview, table_of
from conversations.actions.files import add_files, megabytes
from conversations.models import Conversation
from conversations.uploads import received
from rendering.code import highlighted, language_of
from rendering.markdown import to_html
from tools_app.workspace import Workspace, workspace_for
from wire.uploads import LimitedUploadHandler

from .answers import FILES_CHANGED, done
from .lookup import find_conversation

LISTED_FILES = 500
OFFERED_FILES = 12
NAMED_MISSING = 20
NAME_CHARACTERS = 100


@login_required
@require_safe
@never_cache
def list_files(request: SignedInRequest, uid: str) -> HttpResponse:
    """A page; for htmx what the files panel holds."""
    conversation = find_conversation(request.user, uid)
    template = "chat/_files.html" if is_fragment(request) else "chat/files.html"
    return render(request, template, files_context(conversation))


@login_required
@require_safe
@never_cache
def name_files(request: SignedInRequest, uid: str) -> JsonResponse:
    """`paths`: files whose path holds the query's `q`, letters of any case; those whose name begins
    with it first. `attachables`: what can be attached by such a name."""
    conversation = find_conversation(request.user, uid)
    wanted = request.GET.get("q", "")[:NAME_CHARACTERS].casefold()
    listing = Workspace(workspace_for(conversation.uid)).entries(limit=LISTED_FILES)
    found = [entry.path for entry in listing.entries if wanted in entry.path.casefold()]
    found.sort(key=lambda path: not path.rpartition("/")[2].casefold().startswith(wanted))
    offered = [asdict(each) for each in attachables_of(conversation, request.user, wanted)]
    return JsonResponse({"paths": found[:OFFERED_FILES], "attachables": offered})


def files_context(conversation: Conversation) -> dict[str, Any]:
    workspace = Workspace(workspace_for(conversation.uid))
    listing = workspace.entries(limit=LISTED_FILES)
    missing: list[str] = []
    if not listing.entries and not conversation.environment.has_workers:
        missing = missing_files(conversation, workspace)
    return {
        "conversation": conversation,
        "files": listing.entries,
        "missing": missing[:NAMED_MISSING],
        "more_missing": max(0, len(missing) - NAMED_MISSING),
        "complete": listing.complete,
        "upload_limit": megabytes(conversation.environment.upload_limit),
    }


@login_required
@require_safe
@never_cache
def show_file(request: SignedInRequest, uid: str) -> HttpResponse:
    """The beginning of one file: drawn as what it is, or, where that is all and with `as=text`, as text.
    Its path is the query's `path`."""
    conversation = find_conversation(request.user, uid)
    workspace = Workspace(workspace_for(uid))
    preview = workspace.preview(request.GET.get("path", ""))
    fragment = is_fragment(request)
    possible = kind_of_preview(workspace, preview)
    kind = "" if request.GET.get("as") == "text" else possible
    context: dict[str, Any] = {"conversation": conversation, "preview": preview, "kind": kind}
    if kind == "prose":
        # Below the name of the file, which is the page's heading or the dialog's.
        context["prose"] = to_html(preview.text, first_heading=3 if fragment else 2, key="file")
    elif kind == "table":
        context["table"] = table_of(preview.text, ending_of(preview.entry.path))
        context["kind"] = kind = "table" if context["table"] else ""
    elif kind == "document":
        text, problem = document_text(workspace, preview.entry.path, whose_place(request.user))
        context |= {"text": text, "problem": problem}
    context["other"] = "" if preview.binary or not possible else "preview" if not kind else "text"
    if not kind:
        context["language"] = language_of(preview.entry.path)
        context["code"] = highlighted(preview.text, context["language"])
    return render(request, "chat/_file.html" if fragment else "chat/file.html", context)


@login_required
@require_safe
@never_cache
def download(request: SignedInRequest, uid: str) -> HttpResponseBase:
    """The whole file, to be saved: never shown by the browser as what it claims to be."""
    find_conversation(request.user, uid)
    workspace = Workspace(workspace_for(uid))
    path = request.GET.get("path", "")
    file = workspace.open_for_read(path)
    response = FileResponse(
        file,
        as_attachment=True,
        filename=path.rstrip("/").rpartition("/")[2],
        content_type="application/octet-stream",
    )
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


@csrf_exempt  # the token stands in the body, which may be read only once the limit is known
@login_required
@require_POST
def upload(request: SignedInRequest, uid: str) -> HttpResponseBase:
    conversation = find_conversation(request.user, uid)
    handler = LimitedUploadHandler(request, conversation.environment.upload_limit)
    request.upload_handlers.insert(0, handler)
    return _upload(request, conversation)


@csrf_protect
def _upload(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    assert request.user.is_authenticated  # noqa: S101 - upload() requires it
    stored = add_files(
        actor=request.user,
        conversation=conversation,
        uploads=received(request, "files"),
    )
    text = ngettext("%(count)d file uploaded.", "%(count)d files uploaded.", len(stored))
    return done(
        request,
        text % {"count": len(stored)},
        to=reverse("conversations:files", args=[conversation.uid]),
        event=FILES_CHANGED,
    )


def is_fragment(request: HttpRequest) -> bool:
    return bool(request.htmx)  # type: ignore[attr-defined]
