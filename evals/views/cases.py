"""The pages of a case: as YAML, new or changed, and made of an answer of a conversation."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.forms import refuse
from accounts.requests import SignedInRequest
from chat.forms import as_typed
from chat.views.lookup import find_conversation
from conversations.branches import counting
from conversations.models import Conversation
from evals.actions.cases import case_of
from evals.actions.suites import delete_case, save_case
from evals.files import read_case, written_case
from evals.forms import CaseForm, MakeCaseForm
from evals.models import Suite
from evals.shipped import FIRST_CASE
from harness.content import text_of
from harness.errors import AgentError
from harness.events import AgentMessage

from .lookup import find_case, find_suite

SHOWN = 80
"""Characters of an answer by which it is chosen."""
MOST_ANSWERS = 100


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: SignedInRequest, uid: str) -> HttpResponse:
    suite = find_suite(request.user, uid)
    form = CaseForm(
        request.POST if request.method == "POST" else None, initial={"text": FIRST_CASE}
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                spec = read_case(as_typed(form.cleaned_data["text"]))
                save_case(actor=request.user, suite=suite, spec=spec)
                messages.success(request, _("The case is added."))
                return redirect("evals:suite", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    return render(request, "evals/case.html", {"suite": suite, "form": form}, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, uid: str, case_uid: str) -> HttpResponse:
    case = find_case(request.user, uid, case_uid)
    form = CaseForm(
        request.POST if request.method == "POST" else None,
        initial={"text": written_case(case.spec)},
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                spec = read_case(as_typed(form.cleaned_data["text"]))
                save_case(actor=request.user, suite=case.suite, spec=spec, case=case)
                messages.success(
                    request, _("Saved. Evaluations that began before keep the old one.")
                )
                return redirect("evals:suite", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"suite": case.suite, "case": case, "form": form}
    return render(request, "evals/case.html", context, status=status)


@login_required
@require_POST
def remove(request: SignedInRequest, uid: str, case_uid: str) -> HttpResponse:
    delete_case(actor=request.user, case=find_case(request.user, uid, case_uid))
    messages.success(request, _("The case is deleted. What was tried of it stays."))
    return redirect("evals:suite", uid=uid)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def make(request: SignedInRequest, uid: str) -> HttpResponse:
    """Of an answer of a conversation that one may read, in a suite that one may change."""
    conversation = find_conversation(request.user, uid)
    suites = Suite.objects.visible_to(request.user).filter(organisation=conversation.organisation)
    form = MakeCaseForm(request.POST if request.method == "POST" else None)
    fields = form.fields
    fields["suite"].choices = [(each.uid, each.name) for each in suites]  # type: ignore[attr-defined]
    fields["answer"].choices = _answers(conversation)  # type: ignore[attr-defined]
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                suite = find_suite(request.user, form.cleaned_data["suite"])
                spec = case_of(
                    actor=request.user,
                    conversation=conversation,
                    event_uid=form.cleaned_data["answer"],
                    name=form.cleaned_data["name"],
                )
                made = save_case(
                    actor=request.user, suite=suite, spec=spec, source=conversation.uid
                )
                messages.success(request, _("The case is made. Say now what is to be checked."))
                return redirect("evals:case", uid=suite.uid, case_uid=made.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"conversation": conversation, "form": form, "suites": suites}
    return render(request, "evals/make.html", context, status=status)


def _answers(conversation: Conversation) -> list[tuple[str, str]]:
    """The newest first."""
    rows = counting(conversation).filter(type="agent.message").order_by("-seq")[:MOST_ANSWERS]
    found = []
    for row in rows:
        value = row.value
        text = " ".join(text_of(value.content).split()) if isinstance(value, AgentMessage) else ""
        found.append((row.uid, text[:SHOWN] or row.uid))
    return found
