"""What a person changes about a conversation: its title, pin, archive, switches; its deletion."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.forms import add_error
from accounts.requests import SignedInRequest
from chat.forms import TitleForm
from conversations.actions import conversations as actions
from conversations.actions.messages import set_feature
from conversations.models import Conversation
from harness.errors import Invalid
from keeping.actions.pins import pin_conversation

from .answers import done
from .lookup import find_conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rename(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    form = TitleForm(request.POST or None, initial={"title": conversation.title})
    if request.method == "POST" and form.is_valid():
        try:
            actions.rename_conversation(
                actor=request.user,
                conversation=conversation,
                title=form.cleaned_data["title"],
            )
        except Invalid as problem:
            add_error(form, problem)
        else:
            return done(request, _("Renamed."), to=conversation.get_absolute_url())
    return _dialog(request, "rename", conversation, form, status=422 if form.errors else 200)


@login_required
@require_POST
def pin(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    pinned = request.POST.get("pinned") == "1"
    pin_conversation(actor=request.user, conversation=conversation, pinned=pinned)
    text = _("Pinned to the top of your list.") if pinned else _("No longer pinned.")
    return done(request, text, to=reverse("conversations:list"))


@login_required
@require_POST
def archive(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    archived = request.POST.get("archived") == "1"
    actions.archive_conversation(actor=request.user, conversation=conversation, archived=archived)
    text = _("Moved to the archive.") if archived else _("Back in your list.")
    return done(request, text, to=reverse("conversations:list"))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    """Asks on GET; nothing is deleted by following a link."""
    conversation = find_conversation(request.user, uid)
    if request.method != "POST":
        return _dialog(request, "delete", conversation)
    actions.delete_conversation(actor=request.user, conversation=conversation)
    return done(request, _("Deleted."), to=reverse("conversations:list"))


@login_required
@require_POST
def feature(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    enabled = request.POST.get("enabled") == "1"
    set_feature(
        actor=request.user,
        conversation=conversation,
        feature=request.POST.get("feature", ""),
        enabled=enabled,
    )
    text = _("Switched on.") if enabled else _("Switched off.")
    return done(request, text, to=conversation.get_absolute_url(), event="features-changed")


def _dialog(
    request: SignedInRequest,
    name: str,
    conversation: Conversation,
    form: TitleForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    """A small page of its own, or for htmx what goes into the dialog of the page one is on."""
    shape = "_{}.html" if request.htmx else "{}.html"  # type: ignore[attr-defined]
    return render(
        request,
        f"chat/{shape.format(name)}",
        {"conversation": conversation, "form": form, "next": request.GET.get("next", "")},
        status=status,
    )
