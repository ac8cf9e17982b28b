"""What is done by key: going somewhere by name, and the list of keys."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from chat.destinations import Destination, conversations_of, pages_of
from harness.errors import Invalid


@login_required
@require_safe
def go(request: SignedInRequest) -> HttpResponse:
    """A page; for htmx what its dialog holds."""
    text = request.GET.get("q", "").strip()
    refusal: Invalid | None = None
    pages, conversations = list[Destination](), list[Destination]()
    try:
        pages = pages_of(request.user, text)
        conversations = conversations_of(request.user, request.organisation, text)
    except Invalid as problem:
        refusal = problem
    context = {"q": text, "pages": pages, "conversations": conversations, "refusal": refusal}
    template = "chat/_go.html" if request.htmx else "chat/go.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=422 if refusal else 200)


@login_required
@require_safe
def keyboard(request: SignedInRequest) -> HttpResponse:
    template = "chat/_keyboard.html" if request.htmx else "chat/keyboard.html"  # type: ignore[attr-defined]
    return render(request, template)
