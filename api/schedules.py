"""`/api/schedules`: a person's schedules, what became of their runs, the dry run. Queues: `workqueues`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.models import TokenScope
from conversations.actions.conversations import find_agent, find_environment
from conversations.actions.outcomes import MOST_COMMAND, MOST_SECONDS
from harness.content import Text, text_of
from harness.errors import Invalid, NotFound
from harness.events import UserDefineOutcome, UserMessage
from harness.faults import place
from harness.grading import ITERATIONS, MOST_DESCRIPTION, MOST_ITERATIONS, MOST_RUBRIC
from reading.moments import moment_of
from schedules.actions.orders import (
    archive_order,
    change_order,
    create_order,
    delete_order,
    pause_order,
    renew_address,
    resume_order,
)
from schedules.actions.results import send_again
from schedules.actions.runs import run_now
from schedules.drafts import (
    MOST_READERS,
    MOST_RESULT_FILES,
    MOST_SENDERS,
    Draft,
    draft_of,
    messages_of,
)
from schedules.models import Delivery, OrderRun, StandingOrder
from schedules.preflight import preflight_of
from schedules.times import MOST_DATES
from spending.amounts import dollars_of, units_of
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, errors, listed
from .serializers import Deleted, StrictSwitch, StrictText

TAG = "Schedules"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE


class CheckField(serializers.Serializer[Any]):
    run = StrictText(max_length=MOST_COMMAND, help_text="A command; 0 as its exit code passes.")
    criterion = serializers.IntegerField(
        default=None,
        allow_null=True,
        min_value=1,
        help_text="The one that it keeps from being met.",
    )
    seconds = serializers.IntegerField(default=60, min_value=1, max_value=MOST_SECONDS)


class OutcomeField(serializers.Serializer[Any]):
    description = StrictText(max_length=MOST_DESCRIPTION, help_text="What is to be brought about.")
    rubric = StrictText(
        max_length=MOST_RUBRIC, help_text="Criteria, one a line with “- ” before it."
    )
    max_iterations = serializers.IntegerField(
        default=ITERATIONS, min_value=1, max_value=MOST_ITERATIONS
    )
    checks = CheckField(
        many=True, required=False, help_text="Run in the sandbox before it is judged."
    )


class ScheduleBody(serializers.Serializer[Any]):
    """What is left out is usual, or stays as it is."""

    name = StrictText(required=False, max_length=100)
    agent = StrictText(required=False, max_length=200, help_text="Id or name.")
    environment = StrictText(required=False, max_length=200, help_text="Id or name.")
    text = StrictText(required=False, max_length=100_000, help_text="What it is to do.")
    outcome = OutcomeField(
        required=False, allow_null=True, help_text="What its work is judged by, behind the text."
    )
    cron = StrictText(required=False, allow_blank=True, max_length=200)
    timezone = StrictText(required=False, max_length=60, help_text="An IANA name.")
    dates = serializers.ListField(
        child=StrictText(max_length=40),
        required=False,
        max_length=MOST_DATES,
        help_text="ISO 8601 with an offset.",
    )
    missed = serializers.ChoiceField(StandingOrder.Missed.choices, required=False)
    most_missed = serializers.IntegerField(required=False, min_value=1, max_value=100)
    overlap = serializers.ChoiceField(StandingOrder.Overlap.choices, required=False)
    jitter = serializers.IntegerField(required=False, min_value=0, max_value=540)
    failures_to_pause = serializers.IntegerField(required=False, min_value=0, max_value=1_000)
    idle_to_pause = serializers.IntegerField(required=False, min_value=0, max_value=1_000)
    works_queue = StrictSwitch(required=False)
    mails_owner = StrictSwitch(required=False, help_text="Mail its owner how each run ended.")
    readers = serializers.ListField(
        child=StrictText(max_length=60),
        required=False,
        max_length=MOST_READERS,
        help_text="Ids of members who may read its runs and are mailed how each ended.",
    )
    result_files = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_RESULT_FILES,
        help_text="Answers of the last so many runs are kept as files.",
    )
    mail_from = serializers.ListField(
        child=StrictText(max_length=254),
        required=False,
        max_length=MOST_SENDERS,
        help_text="Whose mails begin it: addresses, and domains as @example.org.",
    )
    budget = StrictText(
        required=False,
        allow_null=True,
        max_length=20,
        help_text="US dollars a run, as a decimal number such as 0.50.",
    )


class NewSchedule(ScheduleBody):
    name = StrictText(max_length=100)
    agent = StrictText(max_length=200, help_text="Id or name.")
    environment = StrictText(max_length=200, help_text="Id or name.")
    text = StrictText(max_length=100_000, help_text="What it is to do.")


class ScheduleRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    agent = serializers.CharField(help_text="Id.")
    agent_version = serializers.IntegerField()
    model = serializers.CharField()
    environment = serializers.CharField(help_text="Id.")
    text = serializers.CharField(allow_blank=True)
    outcome = OutcomeField(allow_null=True)
    cron = serializers.CharField(allow_blank=True)
    timezone = serializers.CharField()
    dates = serializers.ListField(child=serializers.DateTimeField())
    missed = serializers.CharField()
    most_missed = serializers.IntegerField()
    overlap = serializers.CharField()
    jitter = serializers.IntegerField()
    failures_to_pause = serializers.IntegerField()
    idle_to_pause = serializers.IntegerField()
    works_queue = serializers.BooleanField()
    mails_owner = serializers.BooleanField()
    readers = serializers.ListField(child=serializers.CharField(), help_text="Ids.")
    result_files = serializers.IntegerField()
    mail_from = serializers.ListField(child=serializers.CharField())
    mail_address = serializers.CharField(
        allow_blank=True, help_text="Where mails that begin it are sent; empty: nowhere."
    )
    budget = serializers.DecimalField(allow_null=True, max_digits=20, decimal_places=8)
    next_due_at = serializers.DateTimeField(allow_null=True)
    upcoming = serializers.ListField(child=serializers.DateTimeField())
    paused = serializers.CharField(allow_null=True, help_text="Why; null: it is not.")
    paused_words = serializers.CharField(allow_blank=True)
    archived_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class ResultRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    way = serializers.CharField(help_text="`mail` or `file`.")
    user_id = serializers.CharField(help_text="Who gets it.")
    state = serializers.CharField()
    why = serializers.CharField(allow_null=True, help_text="Why it failed or was left out.")
    file_id = serializers.CharField(allow_null=True, help_text="As GET /v1/files has it.")


class ScheduleRunRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.CharField()
    trigger = serializers.CharField()
    due_at = serializers.DateTimeField(allow_null=True)
    conversation_id = serializers.CharField(allow_null=True)
    left_out_because = serializers.CharField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    words = serializers.CharField(allow_blank=True)
    cost = serializers.DecimalField(allow_null=True, max_digits=20, decimal_places=8)
    results = ResultRow(many=True, help_text="What became of its result beside the conversation.")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class StopRow(serializers.Serializer[Any]):
    tool = serializers.CharField()
    asked = serializers.ListField(child=serializers.CharField())


class RefusedCheckRow(serializers.Serializer[Any]):
    run = serializers.CharField()
    why = serializers.CharField()


class PreflightRow(serializers.Serializer[Any]):
    problem = serializers.CharField(allow_blank=True, help_text="Why it would not begin now.")
    upcoming = serializers.ListField(child=serializers.DateTimeField())
    model = serializers.CharField()
    version = serializers.CharField()
    waits = StopRow(many=True, help_text="Where a run would wait for an answer, and of whom.")
    refused_checks = RefusedCheckRow(
        many=True, help_text="Commands that check its outcome and would not run, which fails them."
    )
    hosts = serializers.ListField(child=serializers.CharField())
    skills = serializers.ListField(child=serializers.CharField())
    vaults = serializers.ListField(child=serializers.CharField())
    memories = serializers.ListField(child=serializers.CharField(), help_text="Names of stores.")
    instructed_by = serializers.ListField(
        child=serializers.CharField(), help_text="Whose standing instructions hold."
    )
    run_cost = serializers.CharField(allow_blank=True)
    month_cost = serializers.CharField(allow_blank=True)


def _row(order: StandingOrder) -> dict[str, Any]:
    kept = (
        "name",
        "cron",
        "timezone",
        "missed",
        "most_missed",
        "overlap",
        "jitter",
        "failures_to_pause",
        "idle_to_pause",
        "works_queue",
        "mails_owner",
        "result_files",
        "mail_from",
        "mail_address",
        "next_due_at",
        "archived_at",
        "created_at",
    )
    return {
        "id": order.uid,
        **{name: getattr(order, name) for name in kept},
        "agent": order.agent_version.agent.uid,
        "agent_version": order.agent_version.number,
        "model": f"{order.provider}/{order.model}",
        "environment": order.environment.uid,
        "text": "\n\n".join(text_of(said.content) for said in messages_of(order)),
        "outcome": order.outcome,
        "readers": list(order.readers.values_list("uid", flat=True)),
        "dates": [datetime.fromisoformat(at) for at in order.dates],
        "budget": dollars_of(order.budget) if order.budget is not None else None,
        "upcoming": order.upcoming(timezone.now()),
        "paused": order.pause if order.is_paused else None,
        "paused_words": order.pause_words if order.is_paused else "",
    }


def _run_row(run: OrderRun) -> dict[str, Any]:
    kept = ("state", "trigger", "due_at", "words", "cost", "created_at", "ended_at")
    return {
        "id": run.uid,
        **{name: getattr(run, name) for name in kept},
        "conversation_id": run.session_uid or None,
        "left_out_because": run.skip or None,
        "error": run.error or None,
        "results": [_result_row(delivery) for delivery in run.deliveries.all()],
    }


def _result_row(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.uid,
        "way": delivery.way,
        "user_id": delivery.user.uid,
        "state": delivery.state,
        "why": delivery.why or None,
        "file_id": delivery.file.uid if delivery.file else None,
    }


def _sent(draft: Draft) -> dict[str, str]:
    """What parts of it are called here. An outcome stands behind its messages."""
    return {
        place("initial_events", len(draft.messages)): "outcome",
        "initial_events": "text",
        "schedule.expression": "cron",
        "schedule.timezone": "timezone",
    }


def _moment(text: str) -> datetime:
    moment = moment_of(text)
    if moment is None:
        raise Invalid(
            _("“%(text)s” is no date with a time.") % {"text": text},
            field="dates",
            hint=_("Write it like 2026-01-31T09:30:00Z."),
        )
    return moment


def _dollars(text: str) -> Decimal:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text, re.ASCII):
        raise Invalid(
            _("“%(text)s” is no amount of US dollars.") % {"text": text},
            field="budget",
            hint=_("Write it like 0.50."),
        )
    return Decimal(text)


def newest(request: Any, rows: Any, show: Any) -> Response:
    """A page of rows, newest first."""
    limit, cursor = limit_of(request), cursor_of(request, int)
    if cursor:
        rows = rows.filter(pk__lt=cursor[0])
    found = list(rows.order_by("-pk")[: limit + 1])
    more = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
    return page(request, [show(row) for row in found[:limit]], more)


class ScheduleView(ApiView):
    @property
    def caller(self) -> Caller | None:
        found = getattr(self.request, "caller", None)
        return found if isinstance(found, Caller) else None

    def schedules(self) -> Any:
        rows = self.narrowed(StandingOrder.objects.visible_to(self.actor))
        return rows.with_what_a_page_shows()

    def find_schedule(self, uid: str) -> StandingOrder:
        found = self.schedules().filter(uid=uid).first()
        if not isinstance(found, StandingOrder):
            raise NotFound(
                _("There is no such schedule."), hint=_("GET /api/schedules lists yours.")
            )
        return found

    def fields_of(self, given: dict[str, Any]) -> dict[str, Any]:
        """What was given, as fields of a draft."""
        fields = dict(given)
        if "agent" in fields:
            fields["agent"] = find_agent(
                actor=self.actor, organisation=self.organisation, wanted=fields["agent"]
            )
            fields["version"] = None
        if "environment" in fields:
            fields["environment"] = find_environment(
                actor=self.actor, organisation=self.organisation, wanted=fields["environment"]
            )
        if "text" in fields:
            fields["messages"] = (UserMessage(content=(Text(text=fields.pop("text")),)),)
        if fields.get("outcome") is not None:
            fields["outcome"] = UserDefineOutcome(outcome_id="", **fields["outcome"])
        for name in ("readers", "mail_from"):
            if name in fields:
                fields[name] = tuple(fields[name])
        if "dates" in fields:
            fields["dates"] = tuple(_moment(text) for text in fields["dates"])
        if fields.get("budget") is not None:
            fields["budget"] = units_of(_dollars(fields["budget"]))
        return fields


class SchedulesView(ScheduleView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="schedules_list",
        summary="List one's schedules that are not archived, by name",
        tags=[TAG],
        responses=listed(ScheduleRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        return Response([_row(each) for each in self.schedules().filter(archived_at=None)])

    @extend_schema(
        operation_id="schedules_create",
        summary="Make a schedule",
        tags=[TAG],
        request=NewSchedule,
        responses={201: ScheduleRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any) -> Response:
        draft = Draft(**self.fields_of(read_body(NewSchedule, request.data)))
        with written(_sent(draft)):
            made = create_order(
                actor=self.actor, organisation=self.organisation, draft=draft, caller=self.caller
            )
        return Response(_row(made), status=201)


class OneScheduleView(ScheduleView):
    scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(
        operation_id="schedules_retrieve",
        summary="Read a schedule",
        tags=[TAG],
        responses=answers(ScheduleRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_row(self.find_schedule(uid)))

    @extend_schema(
        operation_id="schedules_update",
        summary="Change a schedule; its agent's current version and model are fixed anew",
        tags=[TAG],
        request=ScheduleBody,
        responses=answers(ScheduleRow, 401, 403, 404, 409, 413, 422),
    )
    def patch(self, request: Any, uid: str) -> Response:
        order = self.find_schedule(uid)
        given = self.fields_of(read_body(ScheduleBody, request.data))
        draft = replace(draft_of(order), **given)
        with written(_sent(draft)):
            changed = change_order(actor=self.actor, order=order, draft=draft, caller=self.caller)
        return Response(_row(changed))

    @extend_schema(
        operation_id="schedules_destroy",
        summary="Delete a schedule with its history; its conversations stay",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_order(actor=self.actor, order=self.find_schedule(uid))
        return Response({"status": "deleted"})


class PauseView(ScheduleView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_pause",
        summary="Begin nothing of it until it is resumed",
        tags=[TAG],
        request=None,
        responses=answers(ScheduleRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str) -> Response:
        return Response(_row(pause_order(actor=self.actor, order=self.find_schedule(uid))))


class ResumeView(ScheduleView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_resume",
        summary="Go on with what is due from now on",
        tags=[TAG],
        request=None,
        responses=answers(ScheduleRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str) -> Response:
        return Response(_row(resume_order(actor=self.actor, order=self.find_schedule(uid))))


class ArchiveView(ScheduleView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_archive",
        summary="Put it away for good; its history stays",
        tags=[TAG],
        request=None,
        responses=answers(ScheduleRow, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        return Response(_row(archive_order(actor=self.actor, order=self.find_schedule(uid))))


class RunView(ScheduleView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_run",
        summary="Have it begin now; the answer says how it began, or why it did not",
        tags=[TAG],
        request=None,
        responses={201: ScheduleRunRow, **errors(401, 403, 404, 409)},
    )
    def post(self, request: Any, uid: str) -> Response:
        run = run_now(actor=self.actor, order=self.find_schedule(uid))
        return Response(_run_row(run), status=201)


class PreflightView(ScheduleView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="schedules_preflight",
        summary="What a run may do, where it would wait, and what it may cost; nothing is begun",
        tags=[TAG],
        responses=answers(PreflightRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        check = preflight_of(self.find_schedule(uid))
        return Response(
            {
                "problem": check.problem,
                "upcoming": check.upcoming,
                "model": check.model,
                "version": str(check.version),
                "waits": [
                    {"tool": tool.name, "asked": [str(one) for one in tool.asked]}
                    for tool in check.stops
                ],
                "refused_checks": [{"run": run, "why": why} for run, why in check.refused_checks],
                "hosts": list(check.hosts),
                "skills": [str(one) for one in check.skills],
                "vaults": [str(one) for one in check.vaults],
                "memories": list(check.memories),
                "instructed_by": list(check.instructed_by),
                "run_cost": check.run_cost_text,
                "month_cost": check.month_cost_text,
            }
        )


class RunsView(ScheduleView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="schedules_runs",
        summary="What became of its due times, newest first",
        tags=[TAG],
        parameters=[LIMIT, CURSOR],
        responses=listed(ScheduleRunRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        runs = self.find_schedule(uid).runs.prefetch_related("deliveries__user", "deliveries__file")
        return newest(request, runs, _run_row)


class NewAddressView(ScheduleView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_new_address",
        summary="Another address for the mails that begin it",
        tags=[TAG],
        request=None,
        responses=answers(ScheduleRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str) -> Response:
        return Response(_row(renew_address(actor=self.actor, order=self.find_schedule(uid))))


class ResultView(ScheduleView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="schedules_send_again",
        summary="Have a result sent again that failed or was left out",
        tags=[TAG],
        request=None,
        responses=answers(ResultRow, 401, 403, 404, 409),
    )
    def post(self, request: Any, uid: str, delivery_uid: str) -> Response:
        mine = Delivery.objects.visible_to(self.actor).select_related("user", "file")
        found = mine.filter(run__order=self.find_schedule(uid), uid=delivery_uid).first()
        if found is None:
            raise NotFound(_("There is no such result."))
        send_again(actor=self.actor, delivery=found)
        found.refresh_from_db()
        return Response(_result_row(found))
