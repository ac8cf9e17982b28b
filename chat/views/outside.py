"""Answers to questions and custom tools, for a browser without script; with it, the socket does the same.

All cards of a page share one form, in which the button says which call is meant and what is done.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.requests import SignedInRequest
from conversations.actions import answers as actions
from conversations.models import Conversation
from harness.errors import Conflict, Invalid
from tools_app.questions import MOST_QUESTIONS, Answer

from .conversation import render_conversation
from .lookup import find_conversation

BUTTONS = ("answer", "skip", "result", "refuse")


@login_required
@require_POST
def answer(request: SignedInRequest, uid: str) -> HttpResponse:
    """Refused, the page comes back with the person's own words in the box for messages."""
    conversation = find_conversation(request.user, uid)
    pressed = next((name for name in BUTTONS if request.POST.get(name)), "")
    if not pressed:
        raise Invalid(
            _("The form does not say which call it answers."),
            field="answer",
            hint=_("Use one of the buttons of the card."),
        )
    call = request.POST[pressed]
    given = _answers_to(request, call)
    text = request.POST.get(f"{call}.result", "")
    try:
        _act(request, conversation, pressed, call, given, text)
    except (Invalid, Conflict) as problem:
        own_words = [words for words in (*(one.text for one in given), text) if words.strip()]
        draft = "\n\n".join(own_words)
        return render_conversation(request, conversation, draft=draft, refusal=problem)
    return redirect(conversation)


def _act(
    request: SignedInRequest,
    conversation: Conversation,
    pressed: str,
    call: str,
    given: list[Answer],
    text: str,
) -> None:
    actor = request.user
    match pressed:
        case "answer":
            actions.answer_questions(
                actor=actor, conversation=conversation, call_uid=call, answers=given
            )
        case "skip":
            actions.skip_questions(actor=actor, conversation=conversation, call_uid=call)
        case "result":
            actions.answer_custom_tool(
                actor=actor, conversation=conversation, call_uid=call, content=text
            )
        case _:
            actions.refuse_custom_tool(
                actor=actor, conversation=conversation, call_uid=call, reason=text
            )


def _answers_to(request: SignedInRequest, call: str) -> list[Answer]:
    """What was chosen and typed for each question, without open ones at the end."""
    given = [
        Answer(
            chosen=tuple(request.POST.getlist(f"{call}.{number}")),
            text=request.POST.get(f"{call}.{number}.text", ""),
        )
        for number in range(MOST_QUESTIONS)
    ]
    while given and given[-1].is_blank:
        given.pop()
    return given
