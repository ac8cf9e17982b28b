"""What an MCP server has, on its way into a message: a resource at once, a prompt by a form."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from accounts.forms import add_error
from accounts.formwords import OurForm
from accounts.requests import SignedInRequest
from chat.attaching import chips
from chat.views.lookup import find_conversation
from harness.errors import AgentError, NotFound

from .actions.attaching import LONGEST, attach_prompt, attach_resource, find_prompt
from .offers import OfferedPrompt


@login_required
@require_POST
@never_cache
def attach_a_resource(request: SignedInRequest, uid: str, server_uid: str) -> JsonResponse:
    kept = attach_resource(
        actor=request.user,
        conversation=find_conversation(request.user, uid),
        server_uid=server_uid,
        label=request.GET.get("label", ""),
    )
    return JsonResponse({"files": chips(kept)}, status=201)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def attach_a_prompt(request: SignedInRequest, uid: str, server_uid: str) -> HttpResponse:
    """The form; posted, the script hears `attached` with what is to be shown by the box."""
    conversation = find_conversation(request.user, uid)
    name = request.GET.get("name", "")
    server, prompt = find_prompt(
        actor=request.user, conversation=conversation, server_uid=server_uid, name=name
    )
    form = _form(prompt, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            kept = attach_prompt(
                actor=request.user,
                conversation=conversation,
                server_uid=server_uid,
                name=name,
                arguments=_arguments(form.cleaned_data),
            )
        except AgentError as problem:
            if isinstance(problem, NotFound) or problem.code == "forbidden":
                raise
            add_error(form, problem)
        else:
            if not getattr(request, "htmx", False):
                return redirect(conversation.get_absolute_url())
            return trigger_client_event(
                HttpResponse(status=204), "attached", {"files": chips(kept)}
            )
    context = {"conversation": conversation, "server": server, "prompt": prompt, "form": form}
    htmx = getattr(request, "htmx", False)
    template = "mcpservers/_prompt.html" if htmx else "mcpservers/prompt.html"
    return render(request, template, context, status=422 if form.errors else 200)


def _form(prompt: OfferedPrompt, data: Any) -> forms.Form:
    """A field for each argument, by its own name; the names of fields are ours to begin."""
    form = OurForm(data, prefix=_PREFIX)
    for argument in prompt.arguments:
        form.fields[argument.name] = forms.CharField(
            label=argument.name,
            help_text=argument.about,
            required=argument.required,
            max_length=LONGEST,
            widget=forms.Textarea(attrs={"rows": 1, "autocomplete": "off"}),
        )
    return form


_PREFIX = "argument"


def _arguments(cleaned: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in cleaned.items()}
