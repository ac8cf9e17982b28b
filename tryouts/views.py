"""A member tries out what the form of her own agent says, beside the form.

It is an ordinary conversation with a version that is nobody else's: log, budgets and approvals are those
of every other. This package only puts the pages of `agents` and `chat` together.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from agents.models import Agent
from agents.views.own import (
    find_agent,
    find_base,
    form_context,
    form_for,
    form_for_new,
    make_from,
    refused,
    render_form,
    save_from,
)
from chat.views.conversation import render_conversation
from chat.views.lookup import find_conversation
from conversations.actions.conversations import create_conversation
from conversations.defaults import default_environment
from conversations.models import Conversation
from harness.errors import AgentError, NotFound


@login_required
@require_POST
def try_new(request: SignedInRequest) -> HttpResponse:
    """Make the agent that the form says, and begin to try it."""
    base = find_base(request)
    if base is None:
        raise NotFound(_("There is no such agent."))
    form = form_for_new(request, base)
    status = 422
    try:
        made = make_from(request, form, base)
        if made is not None:
            return _tried(request, made)
    except AgentError as problem:
        status = refused(form, problem)
    return render_form(request, form, base=base, status=status)


@login_required
@require_POST
def try_out(request: SignedInRequest, uid: str) -> HttpResponse:
    """Keep what the form says as a version to be tried, and begin a conversation with it."""
    agent = _own(request, uid)
    form = form_for(request, agent)
    status = 422
    try:
        saved = save_from(request, form, agent, released=False)
        if saved is not None:
            return _tried(request, saved)
    except AgentError as problem:
        status = refused(form, problem)
    return render_form(request, form, agent=agent, status=status)


@login_required
@require_safe
@never_cache
def show(request: SignedInRequest, uid: str, conversation_uid: str) -> HttpResponse:
    """The form and the conversation side by side."""
    agent = _own(request, uid)
    conversation = find_conversation(request.user, conversation_uid)
    if conversation.agent_version.agent_id != agent.pk:
        raise NotFound(_("There is no such conversation."))
    context = form_context(request, form_for(request, agent), agent=agent)
    context["tried"] = conversation.agent_version
    return render_conversation(
        request, conversation, template="tryouts/tryout.html", context=context
    )


def _tried(request: SignedInRequest, agent: Agent) -> HttpResponse:
    conversation = _conversation(request, agent)
    return redirect("tryouts:tryout", uid=agent.uid, conversation_uid=conversation.uid)


def _conversation(request: SignedInRequest, agent: Agent) -> Conversation:
    """One with the newest version in which nothing was said yet."""
    newest = agent.newest
    assert newest is not None  # noqa: S101 - it was saved just now
    unused = Conversation.objects.visible_to(request.user).filter(
        owner=request.user, agent_version=newest, last_seq=0, archived_at=None, parent=None
    )
    return unused.first() or create_conversation(
        actor=request.user,
        organisation=request.organisation,
        agent=agent,
        environment=default_environment(request.user, request.organisation),
        version=newest.number,
        title=_("Trying out %(agent)s") % {"agent": agent.name},
    )


def _own(request: SignedInRequest, uid: str) -> Agent:
    agent = find_agent(request, uid)
    if agent.owner_id != request.user.pk:
        raise NotFound(_("There is no such agent."))
    return agent
