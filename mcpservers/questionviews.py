"""The page on which a person answers what a server asked in a conversation, and the strip that leads
there.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.requests import SignedInRequest
from conversations.models import Conversation
from harness.errors import Conflict, Invalid, NotFound
from jobs.prepared import Prepared

from .actions import questions as actions
from .addresses import host_of
from .asking import asked_in
from .models import McpQuestion
from .questionforms import AskedForm

SHOWN = 200
"""Characters of a question in the strip."""

_OPEN = Prepared(
    lambda given: McpQuestion.objects.filter(
        conversation=given.conversation, answered_at=None
    ).select_related("server")
)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_question(request: SignedInRequest, uid: str) -> HttpResponse:
    question = (
        McpQuestion.objects.filter(
            uid=uid, conversation__in=Conversation.objects.writable_by(request.user)
        )
        .select_related("conversation", "server")
        .first()
    )
    if question is None:
        raise NotFound(_("There is no such question."))
    back = question.conversation.get_absolute_url()
    if question.answered_at is not None:
        return redirect(back)
    posted = request.POST if request.method == "POST" else None
    accept = posted is not None and posted.get("answer") == "accept"
    parts: list[tuple[str, Any, AskedForm]] = [
        (name, each, AskedForm(each, posted if accept else None, prefix=f"q{number}"))
        for number, (name, each) in enumerate(asked_in(question).items())
    ]
    status = 200
    if posted is not None:
        status = 422
        if not accept or all(form.is_valid() for _name, _each, form in parts):
            contents = {name: form.content() for name, _each, form in parts} if accept else {}
            try:
                actions.answer_server(
                    actor=request.user, question=question, accept=accept, contents=contents
                )
            except Invalid as problem:
                parts[0][2].add_error(None, problem.words)
            except Conflict as problem:
                messages.error(request, problem.words)
                return redirect(back)
            else:
                return redirect(back)
    context = {
        "question": question,
        "server": question.server,
        "server_host": host_of(question.place),
        "parts": parts,
        "back": back,
        "connects": question.kind == McpQuestion.Kind.CONNECT,
        "opens": any(each.url for _name, each, _form in parts),
    }
    return render(request, "mcpservers/question.html", context, status=status)


def draw_asked(conversation: Conversation) -> str:
    """Nothing where no call rests for an answer."""
    if not conversation.waits_for_person:
        return ""
    rows = []
    for row in _OPEN.all(conversation=conversation.pk):
        first = next(iter(asked_in(row).values()))
        rows.append({"question": row, "words": first.message[:SHOWN]})
    if not rows:
        return ""
    return render_to_string("mcpservers/_asked.html", {"rows": rows}).strip()
