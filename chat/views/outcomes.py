"""An outcome for the agent to reach: the form that asks for one, and how those before it were judged."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.forms import add_error
from accounts.requests import SignedInRequest
from chat.forms import OutcomeForm
from chat.presentation.judged import shown
from conversations.actions.outcomes import checks_in, define_outcome
from conversations.outcomes import outcomes_of
from harness.errors import Conflict, Invalid, TooLarge, TooMany

from .answers import done
from .lookup import find_conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def outcome(request: SignedInRequest, uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    form = OutcomeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            define_outcome(
                actor=request.user,
                conversation=conversation,
                description=form.cleaned_data["description"],
                rubric=form.cleaned_data["rubric"],
                checks=checks_in(form.cleaned_data["checks"]),
                max_iterations=form.cleaned_data["max_iterations"],
            )
        except (Invalid, TooLarge, Conflict, TooMany) as problem:
            add_error(form, problem)
        else:
            words = _("The agent works towards it, and is judged when it says that it is done.")
            return done(request, words, to=conversation.get_absolute_url())
    before = outcomes_of([conversation.pk]).get(conversation.pk, [])
    context = {
        "conversation": conversation,
        "form": form,
        "outcomes": [shown(each) for each in reversed(before)],
        "next": request.POST.get("next") or request.GET.get("next", ""),
    }
    template = "chat/_outcome.html" if request.htmx else "chat/outcome.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=422 if form.errors else 200)
