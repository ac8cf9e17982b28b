"""The page on which a conversation begins."""

from __future__ import annotations

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


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: SignedInRequest) -> HttpResponse:
    """The form; a POST makes the conversation, and posts the first message if there is one.

    With `agent` in the query the form shows that agent chosen, with its own switches.
    """
    form = start_form(request)
    too_many: TooMany | None = None
    status = 200
    if request.method == "POST":
        try:
            require_shown_organisation(request)
            if form.is_valid():
                return redirect(_begin(request, form))
            status = 422
        except (Conflict, LimitReached) as problem:
            add_error(form, problem)
            status = 409
        except (Invalid, NotFound) as problem:
            add_error(form, _named(problem))
            status = 422
        except TooMany as problem:
            add_error(form, problem)
            too_many = problem
            status = 429
    context = {**start_context(request, form), "open": True}
    response = render(request, "chat/new.html", context, status=status)
    if too_many:
        response["Retry-After"] = str(too_many.retry_after)
    return response


def _begin(request: SignedInRequest, form: NewConversationForm) -> Conversation:
    return begin_conversation(
        actor=request.user,
        organisation=request.organisation,
        agent=form.cleaned_data["agent"],
        environment=form.cleaned_data["environment"],
        features=form.features(),
        vault_uids=form.vault_uids(),
        text=form.cleaned_data["message"],
        files=request.POST.getlist(FILES),
        wish=wish_of(request.POST),
    )


def _named(problem: Declined) -> Declined:
    """The message's refusal under the name its field has here; what is wrong with its files, too."""
    if isinstance(problem, Invalid) and (problem.field or "").partition("[")[0] in {
        "content",
        FILES,
    }:
        problem.field = "message"
    return problem
