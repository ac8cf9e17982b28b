"""The rules for tools: which hold where, who made them, taking one back and adding one."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Membership, Organisation, Role, User
from accounts.requests import SignedInRequest
from accounts.reviewing import REVIEWING
from accounts.staff import has_staff_permission
from agents.models import Agent
from agents.namesakes import told_apart
from approvals.actions import rules
from approvals.models import PolicyRule
from approvals.models.policyrule import CHANGE_RULES
from approvals.suggestions import in_words
from chat.views.answers import done
from harness.errors import Declined, Invalid, NotFound
from reading.digits import number_of
from reading.foreignjson import Unreadable, read_json

PAGE_SIZE = 100
MOST_PEOPLE = 500
WAYS = ("prefix", "path", "host", "equals")
OPTIONS = ("requester_may_not_decide", "two_people", "reviewers_only", "strict")


@require_safe
@login_required
def show_rules(request: SignedInRequest) -> HttpResponse:
    return _page(request)


@login_required
@require_POST
def add_rule(request: SignedInRequest) -> HttpResponse:
    """Refused, the page comes back with what was typed."""
    try:
        rules.save_rule(
            actor=request.user,
            level=request.POST.get("level", ""),
            rule=_rule(request),
            organisation=_organisation(request),
            agent=_agent(request),
            note=request.POST.get("note", ""),
        )
    except Declined as refusal:
        return _page(request, refusal)
    return done(request, _("The rule holds from now on."), to=reverse("approvals:rules"))


@login_required
@require_POST
def revoke_rule(request: SignedInRequest, uid: str) -> HttpResponse:
    found = PolicyRule.objects.visible_to(request.user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such rule."))
    rules.revoke_rule(actor=request.user, rule=found, reason=request.POST.get("reason", ""))
    return done(request, _("The rule is revoked."), to=reverse("approvals:rules"))


def _page(request: SignedInRequest, refusal: Declined | None = None) -> HttpResponse:
    after = request.GET.get("after", "")
    found = PolicyRule.objects.visible_to(request.user).active().order_by("-pk")
    if (pk := number_of(after)) is not None:
        found = found.filter(pk__lt=pk)
    listed = list(
        found.select_related("organisation", "agent", "conversation", "for_user", "made_by")
        .prefetch_related("made_from")
        .distinct()[: PAGE_SIZE + 1]
    )
    page = listed[:PAGE_SIZE]
    context: dict[str, Any] = {
        "view": "rules",
        "rules": [(rule, _words_of(rule), rules.may_revoke(request.user, rule)) for rule in page],
        "after": page[-1].pk if len(listed) > PAGE_SIZE else "",
        "levels": _levels(request),
        "permissions": PolicyRule.Permission.choices,
        "ways": WAYS,
        "options": OPTIONS,
        "rule_organisations": Organisation.objects.visible_to(request.user),
        "service_accounts": User.objects.filter(
            kind=User.Kind.SERVICE,
            is_active=True,
            memberships__organisation__in=Organisation.objects.visible_to(request.user),
        ).distinct(),
        "roles": [(role.value, role.label) for role in REVIEWING],
        "people": _people(request.user),
        "chosen_accounts": request.POST.getlist("service_account") if refusal else [],
        "agents": told_apart(Agent.objects.visible_to(request.user).on_offer()),
        "refusal": refusal,
        "typed": request.POST if refusal else {},
        "chosen_options": request.POST.getlist("option") if refusal else [],
    }
    return render(request, "approvals/rules.html", context, status=422 if refusal else 200)


def _words_of(rule: PolicyRule) -> str:
    made_from = rule.made_from
    return in_words(rule.value, made_from.effective_input if made_from else None)


def _people(user: User) -> QuerySet[User]:
    """The members of what she manages: whom she may name."""
    managed = Membership.objects.filter(user=user, role__in=[role for role in Role if role.manages])
    members = User.objects.filter(
        kind=User.Kind.PERSON,
        is_active=True,
        memberships__organisation__in=managed.values("organisation"),
    )
    return members.distinct().order_by("username")[:MOST_PEOPLE]


def _levels(request: SignedInRequest) -> list[tuple[str, str]]:
    scope = PolicyRule.Scope
    levels = [scope.ORGANISATION, scope.AGENT]
    if has_staff_permission(request.user, CHANGE_RULES):
        levels.insert(0, scope.DEPLOYMENT)
    return [(level.value, str(level.label)) for level in levels]


def _rule(request: SignedInRequest) -> dict[str, Any]:
    """The rule as the form tells it; what is wrong with it is the action's to say."""
    given: dict[str, Any] = {
        "tool": request.POST.get("tool", "").strip(),
        "permission": request.POST.get("permission", ""),
    }
    way, argument = request.POST.get("way", ""), request.POST.get("argument", "").strip()
    if way:
        if way not in WAYS:
            raise Invalid(_("There is no such choice."), field="way")
        value: Any = request.POST.get("value", "")
        if way == "equals":
            value = _value(value)
        given["when"] = {"argument": argument, way: value}
    elif argument:
        raise Invalid(
            _("How must the argument “%(name)s” be?") % {"name": argument},
            field="way",
            hint=_("Choose one of the ways, or leave the argument empty."),
        )
    options: dict[str, Any] = {
        name: True for name in request.POST.getlist("option") if name in OPTIONS
    }
    if written := request.POST.get("expires_minutes", "").strip():
        minutes = number_of(written, most=999_999)
        if minutes is None:
            raise Invalid(
                _("This is no number of minutes."),
                field="expires_minutes",
                hint=_("Leave it empty to wait for ever."),
            )
        options["expires_seconds"] = 60 * minutes
    if accounts := request.POST.getlist("service_account"):
        options["service_accounts"] = accounts
    if asked := request.POST.get("ask_first", ""):
        options["ask_first"] = asked
    if options:
        given["options"] = options
    return given


def _value(text: str) -> Any:
    """A number or a truth value where it reads as one, as arguments hold them; else the text."""
    try:
        value = read_json(text)
    except Unreadable:
        return text
    return value if isinstance(value, int | float | bool) else text


def _organisation(request: SignedInRequest) -> Organisation | None:
    uid = request.POST.get("organisation", "").replace("\0", "")
    if not uid:
        return None
    found = Organisation.objects.visible_to(request.user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such organisation."))
    return found


def _agent(request: SignedInRequest) -> Agent | None:
    uid = request.POST.get("agent", "").replace("\0", "")
    if not uid:
        return None
    found = Agent.objects.visible_to(request.user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such agent."))
    return found
