"""The list of conversations: the first page a person sees, with search."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.requests import SignedInRequest
from chat.firststeps import first_steps
from chat.links import address_of
from chat.starting import start_context, start_form
from conversations.models import Conversation
from conversations.search import marked
from harness.errors import Invalid
from keeping.finding import Search, understand
from keeping.listing import ListPage, list_page, recent
from keeping.tags import tags_in, tags_of


@login_required
@require_safe
def show_list(request: SignedInRequest) -> HttpResponse:
    """The whole page; for htmx only the results, or only the rows behind `after`."""
    text = request.GET.get("q", "").strip()
    archived = request.GET.get("archived") == "1"
    shared = request.GET.get("shared") == "1"
    after = request.GET.get("after", "")
    user, organisation = request.user, request.organisation
    refusal: Invalid | None = None
    rows: list[dict[str, Any]] = []
    next_cursor = digest = ""
    try:
        search = understand(user, organisation, text, archived=archived)
        chosen = Conversation.objects.shared_with if shared else Conversation.objects.owned_by
        found = search.among(chosen(user), organisation)
        page = list_page(found.select_related("agent_version__agent", "owner"), user, after)
        digest = "" if text or archived or shared or after else page.digest
        if digest and request.GET.get("known") == digest:
            return HttpResponse(status=204)
        rows, next_cursor = rows_of(user, page, search), page.next_cursor
    except Invalid as problem:
        if problem.field != "q":
            raise
        refusal = problem
    given = (("q", text), ("archived", "1" * archived), ("shared", "1" * shared))
    query = {key: value for key, value in given if value}
    context = {
        "rows": rows,
        "next_page": urlencode({**query, "after": next_cursor}) if next_cursor else "",
        "q": text,
        "archived": archived,
        "shared": shared,
        "first_page": not after,
        "digest": digest,
        "refusal": refusal,
        "query": urlencode(query),
    }
    template = "chat/list.html"
    if not (request.htmx or archived or shared or text):  # type: ignore[attr-defined]
        start = start_context(request, start_form(request))
        steps = first_steps(request.user, request.organisation, start["agent"])
        context |= {**start, "first_steps": steps}
        others = Conversation.objects.shared_with(user).filter(organisation=organisation)
        context["shared_with_me"] = others.count()
    if request.htmx:  # type: ignore[attr-defined]
        template = "chat/_rows.html" if after else "chat/_results.html"
    else:
        context["tags"] = tags_in(user, organisation)
    return render(request, template, context, status=422 if refusal else 200)


@login_required
@require_safe
@never_cache
def beside(request: SignedInRequest) -> HttpResponse:
    """The list beside every page, which asks for itself again; nothing where it is as it was `known`.
    `open` is the conversation that the page shows."""
    if request.GET.get("known") == recent(request.user, request.organisation).digest:
        return HttpResponse(status=204)
    return render(request, "chat/_recent.html", {"open_uid": request.GET.get("open", "")})


def rows_of(user: User, page: ListPage, search: Search) -> list[dict[str, Any]]:
    """What `chat/_rows.html` draws: each opens where something was found in it."""
    hits = search.hits(page.conversations)
    pinned = {each.pk for each in page.pinned}
    tags = tags_of(user, page.conversations)
    return [
        {
            "conversation": each,
            "pinned": each.pk in pinned,
            "title": marked(each.title, search.words),
            "tags": tags.get(each.pk, ()),
            "hit": (hit := hits.get(each.pk)),
            "address": address_of(each, hit.subject) if hit else each.get_absolute_url(),
        }
        for each in page.conversations
    ]
