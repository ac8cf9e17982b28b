"""The pages of steering files: those of the organisation one works in, and those of a workspace."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from chat.views.lookup import find_conversation
from conversations.models import Conversation
from harness.errors import AgentError, Conflict, Forbidden, NotFound
from reading.unseen import visible
from tools_app.workspace import workspace_for

from .actions.files import save_steering_file
from .actions.trust import distrust_file, trust_file
from .forms import SteeringForm
from .models import SteeringFile
from .workspacefiles import files_of


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_files(request: SignedInRequest) -> HttpResponse:
    """What is written, for every member; for managers a form, of the file that the query's `agent` names."""
    organisation = request.organisation
    rows = (
        SteeringFile.objects.visible_to(request.user)
        .filter(organisation=organisation)
        .select_related("agent", "changed_by")
    )
    status = 200
    if request.method == "POST":
        form = SteeringForm(request.POST, user=request.user, organisation=organisation)
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                save_steering_file(
                    actor=request.user, organisation=organisation, **form.cleaned_data
                )
                messages.success(request, _("Saved. The next runs are told of it."))
                return redirect("steering:files")
        except AgentError as problem:
            if isinstance(problem, NotFound | Forbidden):
                raise
            add_error(form, problem)
    else:
        named = request.GET.get("agent", "")
        row = rows.filter(agent__uid=named).first() if named else rows.filter(agent=None).first()
        initial = {"agent": named, "text": row.text if row else ""}
        form = SteeringForm(initial=initial, user=request.user, organisation=organisation)
    context = {
        "rows": rows.order_by("agent__name", "pk"),
        "form": form,
        "may_manage": may_manage(request.user, organisation),
    }
    return render(request, "steering/files.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_workspace(request: SignedInRequest, uid: str) -> HttpResponse:
    """The files that want to steer the agent, with their words; posted, `path` is trusted or no more."""
    conversation = find_conversation(request.user, uid)
    problem: Conflict | None = None
    if request.method == "POST":
        path = request.POST.get("path", "")
        try:
            if request.POST.get("trust") == "no":
                distrust_file(actor=request.user, conversation=conversation, path=path)
            else:
                trust_file(
                    actor=request.user,
                    conversation=conversation,
                    path=path,
                    sha256=request.POST.get("sha256", ""),
                )
            return redirect("steering:workspace", uid=uid)
        except Conflict as refused:
            problem = refused
    mine = Conversation.objects.owned_by(request.user).filter(pk=conversation.pk)
    found = files_of(conversation, workspace_for(uid))
    context = {
        "conversation": conversation,
        "files": [(each, visible(each.text)) for each in found],
        "may_trust": mine.exists(),
        "problem": problem,
    }
    return render(request, "steering/workspace.html", context, status=422 if problem else 200)
