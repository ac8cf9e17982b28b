"""The page on which a conversation begins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.requests import SignedInRequest
from chat.attaching import FILES
from chat.forms import NewConversationForm
from chat.modelpicker import wish_of
from chat.starting import start_context, start_form
from conversations.actions.beginning import begin_conversation
from conversations.models import Conversation
from harness.errors import Conflict, Declined, Invalid, LimitReached, NotFound, TooMany

Given = dict[str, Any]
"""What the form says, by the names of `begin_conversation`."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: SignedInRequest) -> HttpResponse:
    """The form; a POST makes the conversation, and posts the first message if there is one.

    With `agent` in the query the form shows that agent chosen, with its own switches.
    """
    form = start_form(request)
    status, wait = 200, 0
    if request.method == "POST":
        answer = begun(request, form, partial(_begin, request))
        if isinstance(answer, Conversation):
            return redirect(answer)
        status, wait = answer
    context = {**start_context(request, form), "open": True}
    return after(wait, render(request, "chat/new.html", context, status=status))


def begun(
    request: SignedInRequest, form: NewConversationForm, begin: Callable[[Given], Conversation]
) -> Conversation | tuple[int, int]:
    """The conversation that `begin` makes of what the form says; else the form has why not, and this is the
    answer's status, with the seconds to wait before the next try."""
    try:
        require_shown_organisation(request)
        return begin(_given(request, form)) if form.is_valid() else (422, 0)
    except (Conflict, LimitReached) as problem:
        add_error(form, problem)
        return 409, 0
    except (Invalid, NotFound) as problem:
        add_error(form, _named(problem))
        return 422, 0
    except TooMany as problem:
        add_error(form, problem)
        return 429, problem.retry_after


def after(wait: int, response: HttpResponse) -> HttpResponse:
    if wait:
        response["Retry-After"] = str(wait)
    return response


def _given(request: SignedInRequest, form: NewConversationForm) -> Given:
    return {
        "agent": form.cleaned_data["agent"],
        "environment": form.cleaned_data["environment"],
        "features": form.features(),
        "vault_uids": form.vault_uids(),
        "text": form.cleaned_data["message"],
        "files": request.POST.getlist(FILES),
        "wish": wish_of(request.POST),
    }


def _begin(request: SignedInRequest, given: Given) -> Conversation:
    return begin_conversation(actor=request.user, organisation=request.organisation, **given)


def _named(problem: Declined) -> Declined:
    """The message's refusal under the name its field has here; what is wrong with its files, too."""
    if isinstance(problem, Invalid) and (problem.field or "").partition("[")[0] in {
        "content",
        FILES,
    }:
        problem.field = "message"
    return problem
