"""What a person does with a message or an answer: say it anew, have it done anew, go back, link to it.

With script, the frequent ones go by the socket. What is rare stands on a small page, or in the dialog.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from agents.modelnames import known_names
from chat.forms import as_typed
from chat.links import address_of
from conversations.actions import branching
from conversations.actions.forking import fork_conversation
from conversations.actions.redacting import is_redacted, redact_content
from conversations.checkpoints import files_follow
from conversations.kits import choose_provider
from conversations.models import Conversation, Event
from harness.errors import Conflict, Invalid, LimitReached, TooMany
from harness.events import FeedbackGiven
from keeping.actions.feedback import give_feedback
from keeping.actions.pinning import pin_message
from keeping.pinnedmessages import PINNABLE, wanted_in

from .conversation import render_refused
from .lookup import find_conversation, find_event


@login_required
@require_safe
@never_cache
def show(request: SignedInRequest, event_uid: str) -> HttpResponse:
    """What may be done with an event; a page of its own, or for htmx what goes into the dialog."""
    event = find_event(request.user, event_uid)
    conversation = find_conversation(request.user, event.conversation.uid)
    owner, organisation = conversation.owner, conversation.organisation
    choice = choose_provider(conversation.config, owner, organisation)
    is_owner = owner.pk == request.user.pk
    context = {
        "conversation": conversation,
        "event": event,
        "is_message": event.type == "user.message",
        "link": request.build_absolute_uri(address_of(conversation, event.subject)),
        "model": choice.model,
        "models": known_names(),
        "feedback": _feedback(request, event),
        "files_follow": files_follow(conversation),
        "is_owner": is_owner,
        "may_redact": is_owner and not is_redacted(conversation, event),
    }
    if event.type in PINNABLE:
        writable = Conversation.objects.writable_by(request.user).filter(pk=conversation.pk)
        context["may_pin"] = writable.exists()
        context["pinned"] = event.subject in wanted_in(conversation)
    template = "chat/_event.html" if request.htmx else "chat/event.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@login_required
@require_POST
def resend(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    """Refused, the page comes back with the new words in the box, so that they are not lost."""
    conversation = find_conversation(request.user, uid)
    text = as_typed(request.POST.get("content", ""))
    try:
        branching.edit_and_resend(
            actor=request.user,
            conversation=conversation,
            message_uid=event_uid,
            text=text,
            files=_with_files(request),
        )
    except (Invalid, Conflict, LimitReached, TooMany) as problem:
        return render_refused(request, conversation, text, problem)
    return redirect(conversation)


@login_required
@require_POST
def regenerate(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    model = request.POST.get("model", "")
    branching.regenerate(
        actor=request.user,
        conversation=conversation,
        event_uid=event_uid,
        model=model,
        files=_with_files(request),
    )
    return redirect(conversation)


@login_required
@require_POST
def rewind(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    branching.rewind(
        actor=request.user,
        conversation=conversation,
        event_uid=event_uid,
        files=_with_files(request),
    )
    return redirect(conversation)


@login_required
@require_POST
def switch(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    branching.switch_branch(
        actor=request.user,
        conversation=conversation,
        event_uid=event_uid,
        files=_with_files(request),
    )
    return redirect(conversation)


@login_required
@require_POST
def fork(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    return redirect(
        fork_conversation(actor=request.user, conversation=conversation, event_uid=event_uid)
    )


@login_required
@require_POST
def copy(request: SignedInRequest, uid: str) -> HttpResponse:
    """All of it, for whoever may read it."""
    conversation = find_conversation(request.user, uid)
    return redirect(fork_conversation(actor=request.user, conversation=conversation))


@login_required
@require_POST
def redact(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    """Only with the box ticked: what is taken out cannot be brought back."""
    conversation = find_conversation(request.user, uid)
    if request.POST.get("sure") != "1":
        raise Invalid(
            _("Nothing was removed."), field="sure", hint=_("Tick the box that you are sure.")
        )
    redact_content(actor=request.user, conversation=conversation, event_uid=event_uid)
    return redirect(conversation)


@login_required
@require_POST
def feedback(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    give_feedback(
        actor=request.user,
        conversation=conversation,
        event_uid=event_uid,
        rating=request.POST.get("rating", ""),
        comment=request.POST.get("comment", ""),
    )
    return redirect(conversation)


@login_required
@require_POST
def pin(request: SignedInRequest, uid: str, event_uid: str) -> HttpResponse:
    conversation = find_conversation(request.user, uid)
    pin_message(
        actor=request.user,
        conversation=conversation,
        event_uid=event_uid,
        pinned=request.POST.get("pinned", "") != "false",
    )
    return redirect(conversation)


def _with_files(request: SignedInRequest) -> bool:
    """Unless the form says otherwise."""
    return request.POST.get("files", "") != "stay"


def _feedback(request: SignedInRequest, event: Event) -> FeedbackGiven | None:
    """Her last word about an answer; None for what is none."""
    if event.type != "agent.message":
        return None
    about = Event.objects.filter(conversation=event.conversation_id, subject=event.subject)
    last = about.filter(type="x.feedback_given", actor=request.user).order_by("seq").last()
    value = last.value if last is not None else None
    nothing = FeedbackGiven(event_id=event.subject, rating="none")
    return value if isinstance(value, FeedbackGiven) else nothing
