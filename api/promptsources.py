"""`/api/prompts/sources`: places elsewhere whose prompts are copied here, how their labels stand, and
allowing what was fetched. Every rule is the actions'; keys are never answered."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from harness.errors import Forbidden, NotFound
from prompts.access import may_change
from prompts.actions.sources import (
    add_source,
    allow_pulled,
    ask_source,
    change_source,
    remove_source,
)
from prompts.models import PromptSource
from prompts.standing import Standing, standing_at, standings

from .base import ApiView
from .bodies import read_body
from .prompts import MANAGE, READ, TAG, ReasonGiven
from .schema import answers, errors, listed
from .serializers import Deleted, StrictText


class NewPromptSource(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=PromptSource.Kind.values)
    address = StrictText(max_length=500)
    secret = StrictText(
        required=False,
        allow_blank=True,
        max_length=2_000,
        help_text="Of Langfuse both keys with a colon between them, of an Agentsite a token.",
    )
    folder = StrictText(required=False, allow_blank=True, max_length=200)
    commit = StrictText(required=False, allow_blank=True, max_length=80)
    labels = serializers.DictField(
        child=StrictText(max_length=50), help_text="What is followed there, and its name here."
    )
    moves_labels = serializers.BooleanField(
        required=False, help_text="Labels here follow without a person's word."
    )


class ChangedPromptSource(serializers.Serializer[Any]):
    moves_labels = serializers.BooleanField(required=False)
    commit = StrictText(required=False, allow_blank=True, max_length=80)


class PromptSourceRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=PromptSource.Kind.values)
    address = serializers.CharField()
    folder = serializers.CharField(allow_blank=True)
    commit = serializers.CharField(allow_blank=True)
    labels = serializers.DictField(child=serializers.CharField())
    moves_labels = serializers.BooleanField()
    reached_at = serializers.DateTimeField(allow_null=True)
    away_since = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField()
    problem = serializers.CharField(allow_blank=True)
    remarks = serializers.ListField(child=serializers.CharField(), help_text="What was not taken.")


class PulledPromptLabel(serializers.Serializer[Any]):
    prompt = serializers.CharField(help_text="Its id.")
    name = serializers.CharField()
    label = serializers.CharField(  # type: ignore[assignment]  # the base's own is a text
        help_text="As it is called here."
    )
    version = serializers.IntegerField(help_text="The copy of what the label there points to.")
    here = serializers.IntegerField(
        allow_null=True, help_text="The version that the label here points to."
    )
    waits = serializers.BooleanField(help_text="Nobody has allowed that text yet.")
    held_by = serializers.ListField(
        child=serializers.CharField(), help_text="Agents whose releases wait and that name it so."
    )
    remote_name = serializers.CharField()
    remote_version = serializers.CharField()
    seen_at = serializers.DateTimeField()


class OnePromptSource(PromptSourceRow):
    pulled = PulledPromptLabel(many=True)


class PulledPromptText(PulledPromptLabel):
    text = serializers.CharField()
    text_here = serializers.CharField(allow_blank=True)


class AllowedPromptText(ReasonGiven):
    version = serializers.IntegerField(min_value=1, help_text="The one that was looked at.")


def _row(source: PromptSource) -> dict[str, Any]:
    names = (
        "kind address folder commit labels moves_labels reached_at away_since due_at problem "
        "remarks"
    )
    return {"id": source.uid, **{name: getattr(source, name) for name in names.split()}}


def _whole_row(source: PromptSource) -> dict[str, Any]:
    return {**_row(source), "pulled": [_pulled_row(each) for each in standings(source)]}


def _pulled_row(standing: Standing) -> dict[str, Any]:
    row, here = standing.row, standing.here
    return {
        "prompt": row.prompt.uid,
        "name": row.prompt.name,
        "label": row.label,
        "version": row.version.number,
        "here": here.version.number if here else None,
        "waits": row.version.waits,
        "held_by": standing.held_by,
        "remote_name": row.remote_name,
        "remote_version": row.remote_version,
        "seen_at": row.seen_at,
    }


class PromptSourceView(ApiView):
    def sources(self) -> QuerySet[PromptSource]:
        rows = PromptSource.objects.visible_to(self.actor).filter(organisation=self.organisation)
        return rows.select_related("organisation", "created_by")

    def find_source(self, uid: str) -> PromptSource:
        found = self.sources().filter(uid=uid).first()
        if found is None:
            raise NotFound(
                _("There is no such source."),
                hint=_("GET /api/prompts/sources lists those there are."),
            )
        return found


class PromptSourcesView(PromptSourceView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="prompts_sources_list",
        summary="List the places whose prompts are copied here",
        tags=[TAG],
        responses=listed(PromptSourceRow, 401, 403),
    )
    def get(self, request: Any) -> Response:
        if not may_change(self.actor, self.organisation):
            raise Forbidden(_("Owners and administrators look after sources of prompts."))
        return Response([_row(each) for each in self.sources()])

    @extend_schema(
        operation_id="prompts_sources_create",
        summary="Add a source; it is asked at the next look, or at /ask",
        tags=[TAG],
        request=NewPromptSource,
        responses={201: PromptSourceRow, **errors(401, 403, 409, 422)},
    )
    def post(self, request: Any) -> Response:
        given = read_body(NewPromptSource, request.data)
        made = add_source(actor=self.actor, organisation=self.organisation, **given)
        return Response(_row(made), status=201)


class OnePromptSourceView(PromptSourceView):
    scopes = {"GET": READ, "PATCH": MANAGE, "DELETE": MANAGE}

    @extend_schema(
        operation_id="prompts_sources_retrieve",
        summary="Read a source, and how each of its labels stands",
        tags=[TAG],
        responses=answers(OnePromptSource, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(_whole_row(self.find_source(uid)))

    @extend_schema(
        operation_id="prompts_sources_change",
        summary="Say whether labels follow by themselves, or which commit is read",
        tags=[TAG],
        request=ChangedPromptSource,
        responses=answers(PromptSourceRow, 401, 403, 404, 422),
    )
    def patch(self, request: Any, uid: str) -> Response:
        source = self.find_source(uid)
        given = read_body(ChangedPromptSource, request.data)
        changed = change_source(
            actor=self.actor,
            source=source,
            moves_labels=given.get("moves_labels"),
            commit=given.get("commit", ""),
        )
        return Response(_row(changed))

    @extend_schema(
        operation_id="prompts_sources_destroy",
        summary="Take a source away; what was fetched from it stays",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        remove_source(actor=self.actor, source=self.find_source(uid))
        return Response({"status": "deleted"})


class AskPromptSourceView(PromptSourceView):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="prompts_sources_ask",
        summary="Ask a source now; `problem` says why it gave nothing",
        tags=[TAG],
        request=None,
        responses=answers(OnePromptSource, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        return Response(_whole_row(ask_source(actor=self.actor, source=self.find_source(uid))))


class PulledPromptView(PromptSourceView):
    scopes = {"GET": READ, "POST": MANAGE}

    @extend_schema(
        operation_id="prompts_sources_labels_retrieve",
        summary="What a label of a source points to, beside what it points to here",
        tags=[TAG],
        responses=answers(PulledPromptText, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, prompt: str, label: str) -> Response:
        found = standing_at(self.find_source(uid), prompt, label)
        here = found.here
        return Response(
            {
                **_pulled_row(found),
                "text": found.row.version.text,
                "text_here": here.version.text if here else "",
            }
        )

    @extend_schema(
        operation_id="prompts_sources_labels_allow",
        summary="Have the label here point to the text that was looked at",
        tags=[TAG],
        request=AllowedPromptText,
        responses=answers(PulledPromptLabel, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str, prompt: str, label: str) -> Response:
        source = self.find_source(uid)
        given = read_body(AllowedPromptText, request.data)
        pulled = standing_at(source, prompt, label).row
        number, reason = given["version"], given.get("reason", "")
        allow_pulled(actor=self.actor, pulled=pulled, number=number, reason=reason)
        return Response(_pulled_row(standing_at(source, prompt, label)))
