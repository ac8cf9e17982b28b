"""`/api/briefs`: the briefs that were made for a person, what the next one would say, and `/api/timers`."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from brief.compiling import compile_brief
from brief.contents import Contents
from brief.models import Brief, BriefWish
from brief.sending import since_when
from harness.errors import NotFound
from timers.listing import timers_of

from .base import ApiView
from .schema import answers, listed

TAG = "Schedules"
READ = TokenScope.CONVERSATIONS_READ
SHOWN = 100


class BriefLine(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    path = serializers.CharField(allow_blank=True, help_text="Below this site's address.")
    words = serializers.CharField(allow_blank=True)
    code = serializers.CharField(allow_blank=True)
    count = serializers.IntegerField()
    at = serializers.DateTimeField(allow_null=True)
    cost = serializers.CharField(allow_null=True, help_text="US dollars.")


class BriefSpent(serializers.Serializer[Any]):
    cost = serializers.CharField(help_text="US dollars.")
    tokens = serializers.IntegerField()
    calls = serializers.IntegerField()
    unpriced = serializers.IntegerField()
    by_schedules = serializers.CharField(help_text="US dollars.")


class BriefRow(serializers.Serializer[Any]):
    id = serializers.CharField(allow_null=True, help_text="null: it was not made yet.")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    waits = BriefLine(many=True)
    ran = BriefLine(many=True)
    failed = BriefLine(many=True)
    skipped = BriefLine(many=True)
    changed = BriefLine(many=True)
    spent = BriefSpent()
    budgets = BriefLine(many=True)
    more = serializers.IntegerField()
    text = serializers.CharField(
        allow_blank=True, help_text="What a model wrote of the lines, where its person wants that."
    )
    written_by = serializers.CharField(allow_null=True, help_text="That model; null: nothing is.")


class BriefHead(serializers.Serializer[Any]):
    id = serializers.CharField()
    due_at = serializers.DateTimeField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()


class TimerRow(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    path = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="null: it waits for an end.")
    reason = serializers.CharField(allow_blank=True)


def _row(contents: Contents, **more: Any) -> dict[str, Any]:
    return {**contents.model_dump(mode="json"), "text": "", "written_by": None, **more}


def _written(brief: Brief) -> dict[str, Any]:
    return {"text": brief.text, "written_by": brief.model if brief.text else None}


class BriefsView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="briefs_list",
        summary="List the briefs that were made, newest first, the last hundred",
        tags=[TAG],
        responses=listed(BriefHead, 401, 403),
    )
    def get(self, request: Any) -> Response:
        mine = self.narrowed(Brief.objects.visible_to(self.actor)).defer("stored_contents")
        return Response(
            [
                {"id": each.uid, "due_at": each.due_at, "since": each.since, "until": each.until}
                for each in mine[:SHOWN]
            ]
        )


class BriefNowView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="briefs_now",
        summary="What the next brief would say if it were due now",
        tags=[TAG],
        responses=answers(BriefRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        now = timezone.now()
        wish = BriefWish(user=self.actor, organisation=self.organisation)
        since = since_when(wish, now)
        contents = compile_brief(self.actor, self.organisation, since=since, until=now)
        return Response(_row(contents, id=None, since=since, until=now))


class OneBriefView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="briefs_retrieve",
        summary="Read a brief as it was made",
        tags=[TAG],
        responses=answers(BriefRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        brief = self.narrowed(Brief.objects.visible_to(self.actor)).filter(uid=uid).first()
        if not isinstance(brief, Brief):
            raise NotFound(_("There is no such brief."))
        row = _row(brief.contents, id=brief.uid, since=brief.since, until=brief.until)
        return Response({**row, **_written(brief)})


class TimersView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="timers_list",
        summary="List all that waits for a time or an end, soonest first",
        tags=[TAG],
        responses=listed(TimerRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        found = timers_of(self.actor, self.organisation)
        return Response(
            [
                {name: getattr(each, name) for name in ("kind", "name", "path", "at", "reason")}
                for each in found
            ]
        )
