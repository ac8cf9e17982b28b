"""The files that the agent changed: the list, and what was changed of one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.requests import SignedInRequest
from chat.presentation.changed import changed_files, changes_of, undoing
from conversations.actions.reverting import revert_files
from conversations.models import Conversation
from reading.unseen import visible
from tools_app.workspace import Workspace, workspace_for

from .files import is_fragment
from .lookup import find_conversation


@login_required
@require_safe
@never_cache
def list_changes(request: SignedInRequest, uid: str) -> HttpResponse:
    """A page; for htmx what the panel holds."""
    conversation = find_conversation(request.user, uid)
    files = changed_files(conversation, Workspace(workspace_for(uid)))
    template = "chat/_changes.html" if is_fragment(request) else "chat/changes.html"
    context = {
        "conversation": conversation,
        "files": files,
        "undoing": undoing(conversation),
        "may_revert": _may_revert(request, conversation),
    }
    return render(request, template, context)


@login_required
@require_safe
@never_cache
def show_change(request: SignedInRequest, uid: str) -> HttpResponse:
    """What was changed of the file that the query's `path` names."""
    conversation = find_conversation(request.user, uid)
    path = request.GET.get("path", "")
    steps, more = changes_of(conversation, path)
    context = {
        "conversation": conversation,
        "path": path,
        "shown": visible(path),
        "steps": steps,
        "more": more,
        "may_revert": _may_revert(request, conversation),
    }
    template = "chat/_change.html" if is_fragment(request) else "chat/change.html"
    return render(request, template, context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def revert(request: SignedInRequest, uid: str) -> HttpResponse:
    """Ask whether the file `path`, or all, shall be put back to before `event`; and have it done."""
    conversation = find_conversation(request.user, uid)
    given = request.POST if request.method == "POST" else request.GET
    event, path = given.get("event", ""), given.get("path", "")
    if request.method == "POST":
        revert_files(actor=request.user, conversation=conversation, event_uid=event, path=path)
        return redirect(conversation)
    context = {
        "conversation": conversation,
        "event": event,
        "path": path,
        "shown": visible(path),
        "undoes": given.get("undo") == "1",
    }
    template = "chat/_revert.html" if is_fragment(request) else "chat/revert.html"
    return render(request, template, context)


def _may_revert(request: SignedInRequest, conversation: Conversation) -> bool:
    return conversation.owner_id == request.user.pk and not conversation.environment.has_workers
