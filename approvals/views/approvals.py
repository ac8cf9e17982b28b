"""The review queue: every call that waits for a person, over all conversations she may decide for."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from accounts.reviewing import REVIEWING
from approvals import queue as approvalqueue
from approvals.actions.approvals import assign_approval, decide_approval, note_seen
from approvals.models import Approval, ApprovalDecision
from approvals.queue import Seen
from approvals.suggestions import cover_of
from approvals.surroundings import steps_before
from chat.views.answers import done, safe_next
from harness.errors import Declined, Invalid, NotFound
from wire.givenjson import read_given

MOST_AT_ONCE = 50
REFUSALS_SHOWN = 5
IN_CONVERSATION = "conversation"
"""The place of a form in a call's card, which the socket draws anew."""


@require_safe
@login_required
def show_queue(request: SignedInRequest, view: str = approvalqueue.WAITING) -> HttpResponse:
    """One page of a list. What it shows that waits counts as seen by this person."""
    chosen = _chosen(request)
    page = approvalqueue.queue(request.user, view, request.GET.get("after", ""), chosen)
    _note_seen(request, page.items)
    kept = {name: value for name, value in chosen.items() if value}
    context = {
        "view": view,
        "page": page,
        "next_page": urlencode({**kept, "after": page.after}) if page.after else "",
        "live": urlencode({**kept, "view": view}) if not request.GET.get("after") else "",
        "chosen": chosen,
        "tools": approvalqueue.tools_in(request.user, view),
        "risks": Approval.Risk.choices,
        "queue_organisations": approvalqueue.organisations_in(request.user, view),
        "known": ",".join(item.approval.uid for item in page.items),
    }
    return render(request, "approvals/approvals.html", context)


@require_safe
@login_required
def live(request: SignedInRequest) -> HttpResponse:
    """What changed of the cards a page shows: closed ones drawn anew, new ones at the end.

    A card that is still open is left alone, so that nothing a person types in it is lost.
    """
    known = [uid for uid in request.GET.getlist("known") if uid][: 4 * approvalqueue.PAGE_SIZE]
    view = request.GET.get("view", approvalqueue.WAITING)
    page = approvalqueue.queue(request.user, view, "", _chosen(request))
    new = [item for item in page.items if item.approval.uid not in known]
    shown = approvalqueue.with_facts(Approval.objects.visible_to(request.user))
    closed = [one for one in shown.filter(uid__in=known) if not one.is_waiting]
    if view == approvalqueue.DECIDED:
        closed = []
    _note_seen(request, new)
    context = {
        "new": new,
        "closed": approvalqueue.items(request.user, closed),
        "counts": approvalqueue.counts(request.user),
        "view": view,
    }
    return render(request, "approvals/approvals_live.html", context)


@require_safe
@login_required
def badge(request: SignedInRequest) -> HttpResponse:
    """The header's number of waiting calls, which pages ask for again and again."""
    return render(request, "approvals/_approvals_badge.html", {})


@require_safe
@login_required
def show_approval(request: SignedInRequest, uid: str) -> HttpResponse:
    return _page(request, uid)


@require_safe
@login_required
def show_of_call(request: SignedInRequest, call_uid: str) -> HttpResponse:
    """Leads from a call's card in its conversation to its approval."""
    asked = Approval.objects.visible_to(request.user).filter(call_uid=call_uid).first()
    if asked is None:
        raise NotFound(_("There is no such approval."))
    return redirect("approvals:approval", uid=asked.uid)


@require_safe
@login_required
def longer(request: SignedInRequest, call_uid: str) -> HttpResponse:
    """The part of a call's card in which it is changed, or allowed for longer."""
    asked = Approval.objects.visible_to(request.user).filter(call_uid=call_uid).first()
    if asked is None:
        raise NotFound(_("There is no such approval."))
    return _longer(request, asked.uid)


@require_safe
@login_required
def show_steps(request: SignedInRequest, uid: str) -> HttpResponse:
    """What led to a call, as far as its organisation shows that."""
    steps = steps_before(request.user, approvalqueue.find(request.user, uid))
    return render(request, "approvals/_approval_steps.html", {"steps": steps})


@login_required
@require_POST
def decide(request: SignedInRequest, uid: str) -> HttpResponse:
    """Refused, the page comes back with all that was typed, and says why."""
    approval = approvalqueue.find(request.user, uid)
    seen = Seen.of(request.POST.get("input_hash", ""), request.POST.get("round", ""))
    try:
        decided = decide_approval(
            actor=request.user,
            approval=approval,
            verdict=request.POST.get("verdict", ""),  # type: ignore[arg-type]
            input_hash=seen.input_hash,
            seen_round=seen.round,
            reason=request.POST.get("reason", ""),
            edited_input=_edited(request, approval),
            scope=request.POST.get("scope", "once"),  # type: ignore[arg-type]
            pattern=_pattern(request),
        )
    except Declined as refusal:
        if request.POST.get("place") == IN_CONVERSATION:
            return _longer(request, uid, refusal)
        if request.htmx:  # type: ignore[attr-defined]
            return _card(request, uid, refusal)
        return _page(request, uid, refusal=refusal)
    if request.POST.get("place") == IN_CONVERSATION:
        # The socket of its page draws the call as it is now.
        return HttpResponse(status=204)
    if request.htmx:  # type: ignore[attr-defined]
        return _card(request, uid, said=_answer_words(decided))
    messages.success(request, _answer_words(decided))
    return redirect(safe_next(request) or reverse("approvals:approvals"))


@login_required
@require_POST
def decide_many(request: SignedInRequest) -> HttpResponse:
    """One answer for several calls that ask for exactly the same."""
    uids = request.POST.getlist("approval")
    if not uids:
        raise Invalid(_("No call is chosen."), field="approval", hint=_("Choose at least one."))
    if len(uids) > MOST_AT_ONCE:
        raise Invalid(
            _("More than %(limit)d calls are chosen.") % {"limit": MOST_AT_ONCE},
            field="approval",
            hint=_("Decide on fewer at a time."),
        )
    found = [approvalqueue.find(request.user, uid) for uid in dict.fromkeys(uids)]
    if len({approvalqueue.asked_for(one) for one in found}) > 1:
        raise Invalid(
            _("The chosen calls are not the same."),
            field="approval",
            hint=_(
                "Choose calls of one tool with the same arguments; decide on others one by one."
            ),
        )
    shown = approvalqueue.seen_by_uid(request.POST.getlist("shown"))
    decided = 0
    refused: list[str] = []
    for one in found:
        seen = shown.get(one.uid, Seen())
        try:
            decide_approval(
                actor=request.user,
                approval=one,
                verdict=request.POST.get("verdict", ""),  # type: ignore[arg-type]
                input_hash=seen.input_hash,
                seen_round=seen.round,
                reason=request.POST.get("reason", ""),
            )
            decided += 1
        except Declined as refusal:
            refused.append(
                _("%(tool)s, asked %(age)s ago: %(words)s")
                % {"tool": one.tool, "age": timesince(one.asked_at), "words": refusal.words}
            )
    for words in refused[:REFUSALS_SHOWN]:
        messages.warning(request, words)
    message = ngettext("%(count)d call is decided.", "%(count)d calls are decided.", decided)
    return done(request, message % {"count": decided}, to=reverse("approvals:approvals"))


@login_required
@require_POST
def assign(request: SignedInRequest, uid: str) -> HttpResponse:
    """To a person (`person:` and the id), to a role (`role:` and its name), or to nobody."""
    approval = approvalqueue.find(request.user, uid)
    user, role = approvalqueue.assignee_named(approval, request.POST.get("assignee", ""))
    assign_approval(actor=request.user, approval=approval, user=user, role=role)
    messages.success(request, _("It is noted who is asked first."))
    return redirect("approvals:approval", uid=uid)


def _card(
    request: SignedInRequest, uid: str, refusal: Declined | None = None, said: str = ""
) -> HttpResponse:
    """A card of the queue as it is now, in the place of the one that was answered."""
    approval = approvalqueue.find(request.user, uid)
    context = {
        "item": approvalqueue.items(request.user, [approval])[0],
        "refusal": refusal,
        "typed": request.POST if refusal else {},
        "counts": approvalqueue.counts(request.user),
    }
    status = 422 if refusal else 200
    answer = render(request, "approvals/_approval_answered.html", context, status=status)
    if said:
        answer["HX-Trigger"] = json.dumps({"notice": {"text": said}})
    return answer


def _longer(request: SignedInRequest, uid: str, refusal: Declined | None = None) -> HttpResponse:
    approval = approvalqueue.find(request.user, uid)
    context = {**_answering(request, approval, refusal), "place": IN_CONVERSATION}
    status = 422 if refusal else 200
    return render(request, "approvals/_approval_longer.html", context, status=status)


def _answering(
    request: SignedInRequest, approval: Approval, refusal: Declined | None
) -> dict[str, Any]:
    """What the form of an answer needs."""
    item = approvalqueue.items(request.user, [approval])[0]
    cover = cover_of(approval.tool, approval.effective_input)
    pattern = request.POST.get("pattern", "") if refusal else cover.pattern if cover else ""
    return {
        "item": item,
        "approval": approval,
        "refusal": refusal,
        "typed": request.POST if refusal else {},
        "fields": _as_typed(request, item) if refusal else item.fields,
        "cover": cover,
        "pattern": pattern,
        "covers": (request.POST.get("covers") if refusal else "") or ("pattern" if pattern else ""),
        "scopes": ApprovalDecision.Scope.choices,
    }


def _page(request: SignedInRequest, uid: str, refusal: Declined | None = None) -> HttpResponse:
    approval = approvalqueue.find(request.user, uid)
    if approval.is_waiting:
        note_seen(actor=request.user, approval=approval)
    context: dict[str, Any] = {
        **_answering(request, approval, refusal),
        "assignees": approvalqueue.assignees(approval) if approval.is_waiting else [],
        "roles": [(role.value, role.label) for role in REVIEWING],
    }
    return render(request, "approvals/approval.html", context, status=409 if refusal else 200)


def _pattern(request: SignedInRequest) -> str:
    """Only of weight where it is allowed for longer, and not for exactly this call."""
    if request.POST.get("scope", "once") == "once" or request.POST.get("covers") != "pattern":
        return ""
    return request.POST.get("pattern", "")


def _chosen(request: SignedInRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "") for name in approvalqueue.FILTERS}


def _note_seen(request: SignedInRequest, items: Any) -> None:
    for item in items:
        if item.approval.is_waiting:
            note_seen(actor=request.user, approval=item.approval)


def _edited(request: SignedInRequest, approval: Approval) -> dict[str, Any] | None:
    """The arguments as the form has them, if they differ from those of the call."""
    if request.POST.get("verdict") != "approve":
        return None
    shown = approval.effective_input
    given: dict[str, Any] = {}
    for name, value in shown.items():
        typed = request.POST.get(f"argument-{name}")
        if typed is None:
            given[name] = value
        elif approvalqueue.Field.of(name, value).is_text:
            # A browser sends line ends of its own; what the call had is kept unless it was changed.
            plain = typed.replace("\r\n", "\n")
            given[name] = value if plain == value.replace("\r\n", "\n") else plain
        else:
            given[name] = read_given(typed, field=name, hint=_("Text stands in double quotes."))
    return None if given == shown else given


def _as_typed(request: SignedInRequest, item: approvalqueue.Item) -> list[approvalqueue.Field]:
    return [
        approvalqueue.Field(
            field.name,
            request.POST.get(f"argument-{field.name}", field.value),
            field.is_text,
            field.rows,
        )
        for field in item.fields
    ]


def _answer_words(approval: Approval) -> str:
    match approval.state:
        case Approval.State.APPROVED:
            return _("The call is allowed.")
        case Approval.State.DENIED:
            return _("The call is denied.")
        case _ if approval.is_waiting and (approval.needed > 1 or approval.was_edited):
            return _("Your answer is kept; somebody else must agree.")
        case _:
            return _("It stays in the queue.")
