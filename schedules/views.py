"""The pages of schedules: all of a person's with the two weeks to come, one with its history and a dry run,
the form; and the door for signed requests that begin one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Max, Subquery
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from chat.presentation.judged import ShownEvaluation, shown
from conversations.actions.stored_files import open_file
from conversations.outcomes import Standing, outcomes_of
from harness.errors import (
    AgentError,
    Conflict,
    Invalid,
    LimitReached,
    NotFound,
    TooLarge,
)
from harness.events import OutcomeCheck
from harness.grading import criteria_of
from reading.digits import number_of
from reading.mails import Unreadable
from reading.unseen import visible
from spending.amounts import dollars_of, money

from .actions.items import add_item, drop_item, retry_item
from .actions.orders import (
    archive_order,
    change_order,
    create_order,
    delete_order,
    issue_hook,
    pause_order,
    pin_order,
    remove_hook,
    renew_address,
    resume_order,
)
from .actions.results import send_again
from .actions.runs import run_now
from .calendar import two_weeks
from .drafts import outcome_of
from .forms import FIELD_OF, ScheduleForm, initial_for, initial_of, text_in
from .hooks import BODY_BYTES, receive
from .mailhook import mail_in
from .mailintake import take_in
from .models import Delivery, OrderRun, QueueItem, StandingOrder
from .preflight import Preflight, preflight_of, preview

SHOWN_RUNS = 50
SHOWN_ITEMS = 50
SHOWN_ARRIVALS = 20


@login_required
@require_safe
def show_schedules(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in, and what is due in the two weeks to come."""
    archived = "archived" in request.GET
    mine = StandingOrder.objects.visible_to(request.user).filter(
        organisation=request.organisation, archived_at__isnull=not archived
    )
    orders = list(mine.with_what_a_page_shows())
    last = OrderRun.objects.filter(order__in=orders).order_by().values("order")
    newest = last.annotate(newest=Max("pk")).values("newest")
    runs = OrderRun.objects.filter(pk__in=Subquery(newest)).select_related("conversation")
    by_order = {run.order_id: run for run in runs}
    context = {
        "rows": [(order, by_order.get(order.pk)) for order in orders],
        "days": two_weeks(orders, timezone.now()),
        "archived": archived,
    }
    return render(request, "schedules/schedules.html", context)


@login_required
@require_safe
def show_schedule(request: SignedInRequest, uid: str) -> HttpResponse:
    return _shown(request, find_schedule(request, uid))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: SignedInRequest) -> HttpResponse:
    return _edited(request, None)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, uid: str) -> HttpResponse:
    return _edited(request, find_schedule(request, uid))


@login_required
@require_POST
def run(request: SignedInRequest, uid: str) -> HttpResponse:
    order = find_schedule(request, uid)
    try:
        begun = run_now(actor=request.user, order=order)
    except Conflict as problem:
        messages.error(request, problem.words)
        return redirect(order)
    if begun.conversation is not None:
        messages.success(request, _("It has begun."))
        return redirect(begun.conversation)
    messages.error(request, _("It could not begin: %(why)s") % {"why": begun.words})
    return redirect(order)


@login_required
@require_POST
def switch(request: SignedInRequest, uid: str) -> HttpResponse:
    """Pause, resume, archive, or pin anew, by the button that was pressed."""
    order = find_schedule(request, uid)
    acts = {
        "pause": pause_order,
        "resume": resume_order,
        "archive": archive_order,
        "pin": pin_order,
    }
    act = acts.get(request.POST.get("act", ""))
    try:
        if act is None:
            raise Invalid(_("This is no button of the page."), field="act")
        act(actor=request.user, order=order)
    except AgentError as problem:
        messages.error(request, problem.words)
    else:
        messages.success(request, _("Done."))
    return redirect(order)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    """Asks on GET; nothing is deleted by following a link."""
    order = find_schedule(request, uid)
    if request.method != "POST":
        return render(request, "schedules/delete.html", {"order": order})
    try:
        delete_order(actor=request.user, order=order)
    except Conflict as problem:
        messages.error(request, problem.words)
        return redirect(order)
    messages.success(request, _("The schedule is deleted. Its conversations are in your list."))
    return redirect("schedules:schedules")


@login_required
@require_POST
@never_cache
@sensitive_variables("secret")
def set_hook(request: SignedInRequest, uid: str) -> HttpResponse:
    """A new secret, on the very page that answers its making; or none any more."""
    order = find_schedule(request, uid)
    if "remove" in request.POST:
        remove_hook(actor=request.user, order=order)
        messages.success(request, _("No request begins it any more."))
        return redirect(order)
    try:
        secret = issue_hook(actor=request.user, order=order)
    except AgentError as problem:
        messages.error(request, problem.words)
        return redirect(order)
    return _shown(request, find_schedule(request, uid), secret=secret)


@login_required
@require_POST
def add_to_queue(request: SignedInRequest, uid: str) -> HttpResponse:
    order = find_schedule(request, uid)
    text = request.POST.get("text", "")
    try:
        add_item(actor=request.user, order=order, text=text)
    except (Conflict, Invalid, LimitReached) as problem:
        messages.error(request, problem.words)
        return _shown(request, order, typed=text)
    messages.success(request, _("It waits in the queue."))
    return redirect(order)


@login_required
@require_POST
def change_item(request: SignedInRequest, uid: str, item_uid: str) -> HttpResponse:
    """Take it out, or have it tried again, by the button that was pressed."""
    order = find_schedule(request, uid)
    item = QueueItem.objects.visible_to(request.user).filter(order=order, uid=item_uid).first()
    if item is None:
        raise NotFound(_("There is no such item."))
    acts = {"drop": drop_item, "retry": retry_item}
    act = acts.get(request.POST.get("act", ""))
    try:
        if act is None:
            raise Invalid(_("This is no button of the page."), field="act")
        act(actor=request.user, item=item)
    except (Conflict, Invalid, LimitReached) as problem:
        messages.error(request, problem.words)
    else:
        messages.success(request, _("Done."))
    return redirect(order)


@login_required
@require_POST
def new_address(request: SignedInRequest, uid: str) -> HttpResponse:
    order = find_schedule(request, uid)
    try:
        renew_address(actor=request.user, order=order)
    except Conflict as problem:
        messages.error(request, problem.words)
    else:
        messages.success(request, _("Mails to the earlier address come to nothing now."))
    return redirect(order)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def result(request: SignedInRequest, uid: str, delivery_uid: str) -> HttpResponseBase:
    """The file with what a run answered, to be kept; by a button what did not go out is sent again."""
    order = find_schedule(request, uid)
    mine = Delivery.objects.visible_to(request.user).select_related("file")
    delivery = mine.filter(run__order=order, uid=delivery_uid).first()
    if delivery is None:
        raise NotFound(_("There is no such result."))
    if request.method == "POST":
        try:
            send_again(actor=request.user, delivery=delivery)
        except Conflict as problem:
            messages.error(request, problem.words)
        else:
            messages.success(request, _("It is sent again."))
        return redirect(order)
    if delivery.file is None:
        raise NotFound(_("There is no such file."))
    return FileResponse(
        open_file(actor=request.user, file=delivery.file),
        as_attachment=True,
        filename=delivery.file.filename,
        content_type="text/markdown; charset=utf-8",
    )


def find_schedule(request: SignedInRequest, uid: str) -> StandingOrder:
    """NotFound for one that is not hers."""
    mine = StandingOrder.objects.visible_to(request.user).with_what_a_page_shows()
    found = mine.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such schedule."))
    return found


def _shown(
    request: SignedInRequest, order: StandingOrder, secret: str = "", typed: str = ""
) -> HttpResponse:
    rows = (
        order.runs.select_related("conversation", "agent_version")
        .prefetch_related("deliveries__user", "deliveries__file")
        .order_by("-pk")
    )
    runs = list(rows[:SHOWN_RUNS])
    outcomes = outcomes_of([run.conversation_id for run in runs if run.conversation_id])
    place = reverse("schedules:hook", kwargs={"uid": order.uid})
    context = {
        "order": order,
        "task": visible(text_in(order)),
        "most": money(dollars_of(order.budget)) if order.budget is not None else "",
        "runs": [(run, _judged(outcomes.get(run.conversation_id or 0, []))) for run in runs],
        "checks": _checks(order),
        "check": preflight_of(order),
        "approvers": order.approvers.all(),
        "readers": order.readers.all(),
        "arrivals": order.arrivals.select_related("run__conversation")[:SHOWN_ARRIVALS],
        "sends_mail": settings.AGENTSITE_EMAIL_CONFIGURED and bool(settings.AGENTSITE_BASE_URL),
        "hook_address": f"{settings.AGENTSITE_BASE_URL}{place}",
        "secret": secret,
        "items": order.items.select_related("run__conversation")[:SHOWN_ITEMS],
        "typed": typed,
    }
    return render(request, "schedules/schedule.html", context)


def _judged(outcomes: Sequence[Standing]) -> ShownEvaluation | None:
    """How the work on its outcome was judged last."""
    evaluations = shown(outcomes[-1]).evaluations if outcomes else ()
    return evaluations[-1] if evaluations else None


def _checks(order: StandingOrder) -> list[tuple[str, str, OutcomeCheck]]:
    """The commands that check its outcome with the criterion that each is about."""
    outcome = outcome_of(order)
    if outcome is None:
        return []
    criteria = criteria_of(outcome.rubric)
    return [
        (visible(each.run), criteria[each.criterion - 1] if each.criterion else "", each)
        for each in outcome.checks
    ]


def _edited(request: SignedInRequest, order: StandingOrder | None) -> HttpResponse:
    """The form; *Check* and words for a time show it again with what they mean, *Save* saves."""
    organisation = order.organisation if order else request.organisation
    posted = request.POST if request.method == "POST" else None
    form = ScheduleForm(
        posted,
        initial=initial_of(order) if order else initial_for(request.user, organisation),
        user=request.user,
        organisation=organisation,
        order=order,
    )
    check: Preflight | None = None
    status = 200
    if posted is not None:
        status = 422
        try:
            if order is None:
                require_shown_organisation(request)
            if form.is_valid():
                read = form.understood(timezone.now())
                draft = form.draft()
                if not read and "save" in posted:
                    saved = _save(request, order, draft)
                    messages.success(request, _("Saved."))
                    return redirect(saved)
                check = preview(draft, actor=request.user, organisation=organisation, order=order)
                status = 200
        except AgentError as problem:
            status = _refused(form, problem)
    context = {"form": form, "order": order, "check": check}
    return render(request, "schedules/edit.html", context, status=status)


def _save(request: SignedInRequest, order: StandingOrder | None, draft: Any) -> StandingOrder:
    if order is not None:
        return change_order(actor=request.user, order=order, draft=draft)
    return create_order(actor=request.user, organisation=request.organisation, draft=draft)


def _refused(form: ScheduleForm, problem: AgentError) -> int:
    """See `refuse`. A field of the action is another one here."""
    if isinstance(problem, Invalid):
        whole, part = problem.field.split("[")[0], problem.field.split(".")[-1]
        name = FIELD_OF.get(part) or FIELD_OF.get(whole, whole)
        problem = type(problem)(problem.message, field=name, hint=str(problem.hint))
    return refuse(form, problem)


@csrf_exempt  # no cookie is looked at: the signature says who it is
@require_POST
def hook(request: HttpRequest, uid: str) -> JsonResponse:
    """Begins the schedule that the request is signed for; the same id again is answered as before."""
    try:
        if number_of(request.META.get("CONTENT_LENGTH"), most=BODY_BYTES) is None:
            raise TooLarge(
                _("A request says its length and has at most %(limit)d bytes.")
                % {"limit": BODY_BYTES},
                hint=_("Send less."),
            )
        begun = receive(uid, request.headers, request.body)
    except AgentError as problem:
        body = {"code": problem.code, "message": problem.message, "hint": problem.hint}
        return JsonResponse({"error": body}, status=_status(problem))
    return JsonResponse({"id": begun.uid}, status=202)


@csrf_exempt  # no cookie is looked at: the secret says who it is
@require_POST
def mail_hook(request: HttpRequest) -> JsonResponse:
    """Takes in a mail that a mail service posts. What became of it stands on the pages of schedules alone:
    whoever knows the secret learns no more than that it came."""
    most = settings.AGENTSITE_INBOUND_MAIL_BYTES
    try:
        raw, recipients = mail_in(request, most=most)
        take_in(raw, recipients)
    except Unreadable as problem:
        body = {"code": "invalid_request", "message": _("This is no mail: %s.") % problem}
        return JsonResponse({"error": body}, status=400)
    except AgentError as problem:
        body = {"code": problem.code, "message": problem.message, "hint": problem.hint}
        return JsonResponse({"error": body}, status=_status(problem))
    return JsonResponse({"status": "taken"}, status=202)


def _status(problem: AgentError) -> int:
    return {"not_found": 404, "conflict": 409, "too_large": 413}.get(problem.code, 400)
