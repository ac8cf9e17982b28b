"""The pages of folders: all of a person's, one with what lies in it, what is changed about it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from chat.starting import start_context, start_form
from chat.views.answers import done
from chat.views.creation import after, begun
from chat.views.lists import rows_of
from chat.views.lookup import find_conversation
from conversations.models import Conversation
from conversations.uploads import received
from harness.errors import AgentError, Invalid, LimitReached, NotFound
from harness.modelcards import card_for
from keeping.finding import understand
from keeping.listing import list_page
from wire.uploads import LimitedUploadHandler

from .actions.files import add_folder_file, open_folder_file, remove_folder_file
from .actions.folders import (
    change_folder,
    create_folder,
    delete_folder,
    share_folder,
    unshare_folder,
)
from .actions.places import begin_in_folder, move_by_uid
from .finding import folder_of, folders_of
from .forms import FolderForm, MemberForm
from .kitpart import tokens_of
from .models import Folder, FolderMember


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_folders(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in, and a form for a new one."""
    form = _form(request, None)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                made = create_folder(
                    actor=request.user, organisation=request.organisation, **form.values()
                )
                messages.success(request, _("The folder is made."))
                return redirect("folders:folder", uid=made.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"folders": folders_of(request.user, request.organisation), "form": form}
    return render(request, "folders/folders.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_folder(request: SignedInRequest, uid: str) -> HttpResponse:
    """What lies in it of one's own; a POST begins a conversation there."""
    folder = find_folder(request, uid)
    agent = folder.default_agent
    form = start_form(request, organisation=folder.organisation, agent=agent.uid if agent else "")
    status, wait = 200, 0
    if request.method == "POST":
        answer = begun(
            request, form, lambda given: begin_in_folder(actor=request.user, folder=folder, **given)
        )
        if isinstance(answer, Conversation):
            return redirect(answer)
        status, wait = answer
    context = {**_shown(request, folder), **start_context(request, form), "begin_at": request.path}
    return after(wait, render(request, "folders/folder.html", context, status=status))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, uid: str) -> HttpResponse:
    folder = find_folder(request, uid)
    form = _form(request, folder)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                change_folder(actor=request.user, folder=folder, **form.values())
                messages.success(
                    request, _("Saved. It holds for conversations that begin from now on.")
                )
                return redirect("folders:folder", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"folder": folder, "form": form}
    return render(request, "folders/change.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    """Asks on GET; nothing is deleted by following a link."""
    folder = find_folder(request, uid)
    if request.method != "POST":
        return render(request, "folders/delete.html", {"folder": folder})
    delete_folder(actor=request.user, folder=folder)
    messages.success(request, _("The folder is deleted. Its conversations are in your list."))
    return redirect("folders:folders")


@login_required
@require_POST
def share(request: SignedInRequest, uid: str) -> HttpResponse:
    folder = find_folder(request, uid)
    form = MemberForm(request.POST)
    try:
        if form.is_valid():
            share_folder(actor=request.user, folder=folder, **form.cleaned_data)
            messages.success(
                request, _("Shared. Members see the folder, and only their own conversations.")
            )
            return redirect("folders:folder", uid=uid)
        status = 422
    except AgentError as problem:
        status = refuse(form, problem)
    start = start_context(request, _unposted(request, folder))
    context = {**_shown(request, folder), **start, "member_form": form}
    return render(request, "folders/folder.html", context, status=status)


@login_required
@require_POST
def unshare(request: SignedInRequest, uid: str, member_uid: str) -> HttpResponse:
    unshare_folder(actor=request.user, folder=find_folder(request, uid), member_uid=member_uid)
    if member_uid == request.user.uid:
        messages.success(request, _("You have left the folder."))
        return redirect("folders:folders")
    messages.success(request, _("No longer shared."))
    return redirect("folders:folder", uid=uid)


@csrf_exempt  # the token is looked for in the body, which may be read only once the limit is known
@login_required
@require_POST
def add_file(request: SignedInRequest, uid: str) -> HttpResponseBase:
    folder = find_folder(request, uid)
    limit: int = settings.AGENTSITE_FILE_BYTES
    request.upload_handlers.insert(0, LimitedUploadHandler(request, limit))
    return _add_file(request, folder)


@csrf_protect
def _add_file(request: HttpRequest, folder: Folder) -> HttpResponse:
    assert request.user.is_authenticated  # noqa: S101 - add_file() requires it
    try:
        uploads = received(request, "file")
        if not uploads:
            raise Invalid(_("No file was sent."), field="file", hint=_("Choose at least one file."))
        for upload in uploads:
            add_folder_file(actor=request.user, folder=folder, upload=upload)
    except (Invalid, LimitReached) as problem:
        messages.error(request, problem.words)
    else:
        messages.success(request, _("Conversations that begin from now on get a copy."))
    return redirect("folders:folder", uid=folder.uid)


@login_required
@require_safe
def download(request: SignedInRequest, uid: str, file_uid: str) -> HttpResponseBase:
    row, source = open_folder_file(
        actor=request.user, folder=find_folder(request, uid), file_uid=file_uid
    )
    return FileResponse(
        source,
        as_attachment=True,
        filename=row.file.filename,
        content_type="application/octet-stream",
    )


@login_required
@require_POST
def remove_file(request: SignedInRequest, uid: str, file_uid: str) -> HttpResponse:
    remove_folder_file(actor=request.user, folder=find_folder(request, uid), file_uid=file_uid)
    messages.success(request, _("Removed. Conversations that have a copy keep it."))
    return redirect("folders:folder", uid=uid)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def move(request: SignedInRequest, uid: str) -> HttpResponse:
    """A small page of its own, or for htmx what goes into the dialog of the page one is on."""
    conversation = find_conversation(request.user, uid)
    if request.method == "POST":
        move_by_uid(request.user, conversation, request.POST.get("folder", ""))
        text = _("Moved. What its agent was told when it began stays.")
        return done(request, text, to=reverse("conversations:list"))
    context = {
        "conversation": conversation,
        "folders": folders_of(request.user, conversation.organisation),
        "folder": folder_of(request.user, conversation),
        "next": request.GET.get("next", ""),
    }
    template = "folders/_move.html" if request.htmx else "folders/move.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def find_folder(request: SignedInRequest, uid: str) -> Folder:
    """NotFound for one that she may not see."""
    mine = Folder.objects.visible_to(request.user)
    rows = mine.select_related("organisation", "owner", "default_agent")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such folder."))
    return found


def _shown(request: SignedInRequest, folder: Folder) -> dict[str, Any]:
    user = request.user
    search = understand(user, folder.organisation, f"in:{folder.uid}")
    found = search.among(Conversation.objects.owned_by(user), folder.organisation)
    page = list_page(found.select_related("agent_version__agent", "owner"), user)
    more = {"q": f"in:{folder.uid}", "after": page.next_cursor}
    agent = folder.default_agent
    config = agent.current.config if agent and agent.current else None
    tokens = tokens_of(folder.name, folder.instructions)
    window = card_for(config.model).context_window if config and config.model else 0
    return {
        "folder": folder,
        "rows": rows_of(user, page, search),
        "plain": True,
        "next_page": urlencode(more) if page.next_cursor else "",
        "files": folder.files.there(),
        "members": folder.members.select_related("user"),
        "tokens": tokens,
        "share": round(100 * tokens / window, 1) if window else None,
        "is_owner": folder.owner_id == user.pk,
        "may_change": Folder.objects.editable_by(user).filter(pk=folder.pk).exists(),
        "roles": FolderMember.Role.choices,
        "member_form": MemberForm(),
    }


def _unposted(request: SignedInRequest, folder: Folder) -> Any:
    """The form in which a conversation begins as it is where nothing was posted to it."""
    agent = folder.default_agent
    return start_form(
        request, organisation=folder.organisation, agent=agent.uid if agent else "", bound=False
    )


def _form(request: SignedInRequest, folder: Folder | None) -> FolderForm:
    initial = {}
    if folder is not None:
        agent = folder.default_agent
        initial = {
            "name": folder.name,
            "instructions": folder.instructions,
            "agent": agent.uid if agent else None,
        }
    return FolderForm(
        request.POST if request.method == "POST" else None,
        initial=initial,
        user=request.user,
        organisation=folder.organisation if folder else request.organisation,
    )
