"""Agents as people see and make them: the list, the form of one's own, and its versions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.requests import SignedInRequest
from agents.actions.agents import archive_agent, is_somebodys_own
from agents.actions.own import (
    change_own_agent,
    duplicate_agent,
    make_own_agent,
    next_bound,
    restore_own_version,
)
from agents.actions.reviews import ask_for_review
from agents.forms import OwnAgentForm, ReviewForm, show_refusal
from agents.listing import SEARCH_LIMIT, listed_agents, place_of
from agents.models import Agent, AgentReview, AgentVersion
from agents.namesakes import told_apart
from agents.toolwords import words_for
from agents.versiondiff import PERMISSION_LABELS, changes_between, description_of
from harness.errors import AgentError, Conflict, LimitReached, NotFound
from reading.digits import number_of

AGENTS_A_PAGE = 50
VERSIONS_A_PAGE = 50


@login_required
@require_safe
def show_agents(request: SignedInRequest) -> HttpResponse:
    """One's own, the organisation's and the server's, by name; with `q` those that hold its words."""
    search = request.GET.get("q", "").replace("\0", "")[:SEARCH_LIMIT]
    archived = request.GET.get("archived") == "1"
    rows = listed_agents(request.user, request.organisation, search=search, archived=archived)
    page = Paginator(rows.order_by("name", "pk"), AGENTS_A_PAGE).get_page(request.GET.get("page"))
    groups: dict[str, list[Agent]] = {"own": [], "organisation": [], "server": []}
    for agent in told_apart(page.object_list):
        groups[place_of(agent, request.user)].append(agent)
    context = {
        "page": page,
        "groups": [(place, agents) for place, agents in groups.items() if agents],
        "q": search,
        "archived": archived,
        "waiting": _waiting(request),
    }
    return render(request, "agents/agents.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new_agent(request: SignedInRequest) -> HttpResponse:
    """The form of a new one, which begins from the agent `base` of the query; a POST makes it."""
    base = find_base(request)
    if base is None:
        return render(request, "agents/no_base.html", {})
    form = form_for_new(request, base)
    status = 200
    if request.method == "POST":
        try:
            made = make_from(request, form, base)
        except AgentError as problem:
            status = refused(form, problem)
        else:
            if made is not None:
                messages.success(request, _("The agent is made. It is yours alone."))
                return redirect("agents:agent", uid=made.uid)
            status = 422
    return render_form(request, form, base=base, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_agent(request: SignedInRequest, uid: str) -> HttpResponse:
    """The form of one's own agent, or what another is; a POST saves."""
    agent = find_agent(request, uid)
    if agent.owner_id != request.user.pk:
        if request.method == "POST":
            raise NotFound(_("There is no such agent."))
        return _show_anothers(request, agent)
    form = form_for(request, agent)
    status = 200
    if request.method == "POST":
        try:
            saved = save_from(request, form, agent)
        except AgentError as problem:
            status = refused(form, problem)
        else:
            if saved is not None:
                messages.success(request, _("Saved."))
                return redirect("agents:agent", uid=uid)
            status = 422
    return render_form(request, form, agent=agent, status=status)


@login_required
@require_POST
def duplicate(request: SignedInRequest, uid: str) -> HttpResponse:
    agent = find_agent(request, uid)
    try:
        made = duplicate_agent(actor=request.user, organisation=request.organisation, agent=agent)
    except LimitReached as problem:
        messages.error(request, problem.words)
        return redirect("agents:agents")
    messages.success(request, _("The copy is yours alone. Give it a name."))
    return redirect("agents:agent", uid=made.uid)


@login_required
@require_POST
def archive(request: SignedInRequest, uid: str) -> HttpResponse:
    archived = request.POST.get("archived") == "1"
    agent = archive_agent(actor=request.user, agent=find_agent(request, uid), archived=archived)
    text = _("%(agent)s is archived.") if archived else _("%(agent)s is offered again.")
    messages.success(request, text % {"agent": agent.name})
    return redirect("agents:agents")


@login_required
@require_POST
def share(request: SignedInRequest, uid: str) -> HttpResponse:
    """Ask for a review of the newest version."""
    agent = find_agent(request, uid)
    form = ReviewForm(request.POST)
    if form.is_valid():
        try:
            ask_for_review(actor=request.user, agent=agent, note=form.cleaned_data["note"])
        except Conflict as problem:
            messages.error(request, problem.words)
        else:
            messages.success(request, _("Whoever manages the organisation is asked to review it."))
    else:
        messages.error(request, " ".join(str(each) for each in form.errors["note"]))
    return redirect("agents:agent", uid=uid)


@login_required
@require_safe
def show_versions(request: SignedInRequest, uid: str) -> HttpResponse:
    """Those the person may use; with `from` and `to` what differs between two of them."""
    agent = find_agent(request, uid)
    seen = AgentVersion.objects.visible_to(request.user).filter(agent=agent)
    rows = seen.select_related("created_by").order_by("-number")
    page = Paginator(rows, VERSIONS_A_PAGE).get_page(request.GET.get("page"))
    old, new = (_version(rows, request.GET.get(name)) for name in ("from", "to"))
    context = {
        "agent": agent,
        "is_own": agent.owner_id == request.user.pk,
        "page": page,
        "old": old,
        "new": new,
        "changes": changes_between(old.config, new.config) if old and new else [],
    }
    return render(request, "agents/versions.html", context)


@login_required
@require_POST
def restore(request: SignedInRequest, uid: str) -> HttpResponse:
    agent = find_agent(request, uid)
    number = number_of(request.POST.get("version"))
    if number is None:
        raise NotFound(_("There is no such version."))
    restore_own_version(actor=request.user, agent=agent, number=number)
    messages.success(request, _("Version %(number)s is restored.") % {"number": number})
    return redirect("agents:agent", uid=uid)


# --- what the page with a try-out shares ----------------------------------------------------------


def find_agent(request: SignedInRequest, uid: str) -> Agent:
    """NotFound for one that the person is not offered in the organisation she works in."""
    seen = Agent.objects.visible_to(request.user).usable_in(request.organisation)
    rows = seen.select_related("current__base__agent__current", "owner", "organisation")
    agent = rows.filter(uid=uid, current__isnull=False).first()
    if agent is None:
        raise NotFound(_("There is no such agent."))
    return agent


def find_base(request: SignedInRequest) -> Agent | None:
    """What a new agent begins from: the one that was chosen, else the first on offer that is nobody's
    own; None where there is none."""
    offered = Agent.objects.visible_to(request.user).usable_in(request.organisation).on_offer()
    rows = offered.select_related("current__base__agent__current")
    wanted = (request.POST.get("base") or request.GET.get("base", "")).replace("\0", "")
    if wanted:
        chosen = rows.filter(uid=wanted).first()
        if chosen is None:
            raise NotFound(_("There is no such agent."))
        return chosen
    return rows.filter(owner=None).first() or rows.first()


def form_for_new(request: SignedInRequest, base: Agent) -> OwnAgentForm:
    assert base.current is not None  # noqa: S101 - on offer
    return OwnAgentForm(
        request.POST if request.method == "POST" else None,
        user=request.user,
        organisation=request.organisation,
        bound=next_bound(base.current),
        before=base.current,
        initial={"expected_version": None},
    )


def form_for(request: SignedInRequest, agent: Agent) -> OwnAgentForm:
    newest = agent.newest
    assert newest is not None  # noqa: S101 - it has a current one
    return OwnAgentForm(
        request.POST if request.method == "POST" else None,
        user=request.user,
        organisation=request.organisation,
        bound=next_bound(newest),
        before=newest,
        initial={"name": agent.name, "description": agent.description},
    )


def make_from(request: SignedInRequest, form: OwnAgentForm, base: Agent) -> Agent | None:
    """The agent that the form says; None where the form is not filled in right. Raises as the action."""
    require_shown_organisation(request)
    if not form.is_valid():
        return None
    return make_own_agent(
        actor=request.user,
        organisation=request.organisation,
        base=base,
        name=form.cleaned_data["name"],
        description=form.cleaned_data["description"],
        wishes=form.wishes(),
    )


def save_from(
    request: SignedInRequest, form: OwnAgentForm, agent: Agent, *, released: bool = True
) -> Agent | None:
    """The agent as the form says, to be used or only to be tried; as `make_from`."""
    require_shown_organisation(request)
    if not form.is_valid():
        return None
    return change_own_agent(
        actor=request.user,
        agent=agent,
        name=form.cleaned_data["name"],
        description=form.cleaned_data["description"],
        wishes=form.wishes(),
        expected_version=form.cleaned_data["expected_version"],
        released=released,
    )


def refused(form: OwnAgentForm, problem: AgentError) -> int:
    """Say in the form why it was not taken; the status to answer with."""
    if isinstance(problem, NotFound):
        raise problem
    if form.is_bound and not hasattr(form, "cleaned_data"):
        form.is_valid()
    show_refusal(form, problem)
    return 409 if isinstance(problem, Conflict | LimitReached) else 422


def form_context(
    request: SignedInRequest,
    form: OwnAgentForm,
    *,
    agent: Agent | None = None,
    base: Agent | None = None,
) -> dict[str, Any]:
    """What `agents/_form.html` draws."""
    newest = agent.newest if agent else None
    begun = newest or (base.current if base else None)
    offered = Agent.objects.visible_to(request.user).usable_in(request.organisation).on_offer()
    return {
        "form": form,
        "agent": agent,
        "newest": newest,
        "base": base,
        "bound": next_bound(begun).agent if begun else None,
        "name_locked": agent is not None and not agent.private,
        "bases": told_apart(offered) if agent is None else [],
        "kept_rules": [
            (f"{words_for(rule.tool)} {rule.when.words() if rule.when else ''}".strip(), label)
            for rule in form.kept_rules()
            for label in [PERMISSION_LABELS[rule.permission]]
        ],
    }


def render_form(
    request: SignedInRequest,
    form: OwnAgentForm,
    *,
    agent: Agent | None = None,
    base: Agent | None = None,
    status: int = 200,
) -> HttpResponse:
    context = form_context(request, form, agent=agent, base=base)
    if agent is not None:
        reviews = AgentReview.objects.visible_to(request.user).filter(agent=agent)
        context |= {
            "review": reviews.select_related("version", "decided_by").order_by("-pk").first(),
            "review_form": ReviewForm(prefix=None),
        }
    return render(request, "agents/agent_form.html", context, status=status)


# --- parts ----------------------------------------------------------------------------------------


def _show_anothers(request: SignedInRequest, agent: Agent) -> HttpResponse:
    assert agent.current is not None  # noqa: S101 - selected so
    context = {
        "agent": agent,
        "rows": description_of(agent.current.config),
        "made_by": agent.owner if is_somebodys_own(agent) else None,
    }
    return render(request, "agents/agent.html", context)


def _waiting(request: SignedInRequest) -> int:
    waiting = AgentReview.objects.visible_to(request.user).waiting()
    return waiting.filter(agent__organisation=request.organisation).count()


def _version(rows: Any, number: str | None) -> AgentVersion | None:
    if number is None:
        return None
    wanted = number_of(number)
    if wanted is None:
        raise NotFound(_("There is no such version."))
    found: AgentVersion | None = rows.filter(number=wanted).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    return found
