"""The pages of subagents: the tree of a conversation, what one does now, and stopping them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from chat.presentation.content import duration
from chat.views.answers import done
from chat.views.lookup import find_conversation
from conversations.models import Run

from .actions.subagents import stop_subagent, stop_subagents
from .doing import doing
from .models import Subagent
from .trees import tree_of


@login_required
@require_safe
def tree(request: SignedInRequest, uid: str) -> HttpResponse:
    """All that descends from a conversation, with the cost of each branch."""
    conversation = find_conversation(request.user, uid)
    return render(
        request,
        "subagents/tree.html",
        {"conversation": conversation, "root": tree_of(conversation)},
    )


@login_required
@require_safe
def now(request: SignedInRequest, uid: str) -> HttpResponse:
    """What a subagent does at this moment, as a line."""
    child = find_conversation(request.user, uid)
    row = Subagent.objects.filter(child=child).order_by("-pk").first()
    node = tree_of(child)
    elapsed = ""
    # A teammate's run, where it was not asked as a subagent.
    run: Run | Subagent | None = row
    if row is None:
        run = child.runs.filter(state=Run.State.RUNNING).first()
    if run is not None and run.started_at is not None:
        until = run.ended_at or timezone.now()
        elapsed = duration(round((until - run.started_at).total_seconds() * 1_000))
    context = {
        "doing": doing(child),
        "elapsed": elapsed,
        "used": node.branch,
        "waits": child.waits_for_person,
        "child": child,
    }
    return render(request, "subagents/_now.html", context)


@require_POST
@login_required
def stop(request: SignedInRequest, uid: str) -> HttpResponse:
    child = find_conversation(request.user, uid)
    stopped = stop_subagent(actor=request.user, conversation=child)
    text = _("It is being stopped.") if stopped else _("It has ended already.")
    above = child.parent or child
    return done(request, text, to=above.get_absolute_url())


@require_POST
@login_required
def stop_all(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    count = stop_subagents(actor=request.user, conversation=conversation)
    text = ngettext(
        "%(count)d subagent is being stopped.", "%(count)d subagents are being stopped.", count
    )
    return done(request, text % {"count": count}, to=conversation.get_absolute_url())
