"""The list of conversations: the first page a person sees, with search."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts.requests import SignedInRequest
from chat.firststeps import example, first_steps
from chat.listing import ListPage, list_page
from chat.starting import start_context, start_form
from conversations.models import Conversation
from conversations.search import marked, matching, snippets, words_of
from harness.errors import Invalid


@login_required
@require_safe
def show_list(request: SignedInRequest) -> HttpResponse:
    """The whole page; for htmx only the results, or only the rows behind `after`."""
    text = request.GET.get("q", "").strip()
    archived = request.GET.get("archived") == "1"
    after = request.GET.get("after", "")
    conversations = (
        Conversation.objects.visible_to(request.user)
        .listed_in(request.organisation, archived=archived)
        .select_related("agent_version__agent")
        .in_list_order()
    )
    refusal: Invalid | None = None
    page = ListPage([], "")
    try:
        page = list_page(matching(conversations, text), after)
    except Invalid as problem:
        if problem.field != "q":
            raise
        refusal = problem
    words = [] if refusal else words_of(text)
    found = {} if refusal else snippets(page.conversations, text)
    rows = [
        {
            "conversation": conversation,
            "title": marked(conversation.title, words),
            "snippet": found.get(conversation.pk),
        }
        for conversation in page.conversations
    ]
    query = {key: value for key, value in (("q", text), ("archived", "1" * archived)) if value}
    context = {
        "rows": rows,
        "next_page": urlencode({**query, "after": page.next_cursor}) if page.next_cursor else "",
        "q": text,
        "archived": archived,
        "first_page": not after,
        "refusal": refusal,
        "query": urlencode(query),
    }
    template = "chat/list.html"
    if not (request.htmx or archived or text):  # type: ignore[attr-defined]
        start = start_context(request, start_form(request))
        steps = first_steps(request.user, request.organisation, start["agent"])
        context |= {**start, "first_steps": steps, "example": example()}
    if request.htmx:  # type: ignore[attr-defined]
        template = "chat/_rows.html" if after else "chat/_results.html"
    return render(request, template, context, status=422 if refusal else 200)
