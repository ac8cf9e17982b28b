"""`/api/memories/stores/{id}/decay`: how memories of a store fade; all that its page does."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from decay.actions.rules import FIELDS, LONGEST, lift_rule, put_in_force, save_rule
from decay.fading import extent_of
from decay.models import DecayRule, Step
from decay.statistics import statistics_of
from harness.errors import NotFound
from memory.access import may_write
from memory.models import MemoryStore

from .bodies import read_body
from .memories import TAG, MemoryView
from .schema import answers
from .serializers import StrictSwitch


def _days(what: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1,
        max_value=LONGEST,
        required=False,
        allow_null=True,
        help_text=f"Days without use after which {what}; null: there is no such step.",
    )


class DecayDays(serializers.Serializer[Any]):
    """At least one step, each later than the one before."""

    summary_days = _days("only its beginning is left")
    marker_days = _days("only its day and a few words are left")
    gone_days = _days("nothing is left")
    also_unconfirmed = StrictSwitch(
        required=False,
        help_text="What came from strangers' words and nobody confirmed fades as well.",
    )


class DecayRuleRow(DecayDays):
    version = serializers.IntegerField(help_text="What is put in force by.")
    in_force_at = serializers.DateTimeField(allow_null=True, help_text="null: a dry run.")
    begins_at = serializers.DateTimeField(allow_null=True, help_text="A day after that.")


class DecayStatistics(serializers.Serializer[Any]):
    whole = serializers.IntegerField()
    summaries = serializers.IntegerField(help_text="Memories of which the beginning is left.")
    markers = serializers.IntegerField(help_text="Memories of which a few words are left.")
    gone = serializers.IntegerField(help_text="By rules, so far.")
    tokens = serializers.IntegerField(help_text="Of all that is there now, about.")
    tokens_saved = serializers.IntegerField(help_text="By rules, so far, about.")


class DecayExtent(serializers.Serializer[Any]):
    """What would fade today, or is due."""

    summaries = serializers.IntegerField()
    markers = serializers.IntegerField()
    gone = serializers.IntegerField()
    tokens_saved = serializers.IntegerField()


class Decay(serializers.Serializer[Any]):
    rule = DecayRuleRow(allow_null=True, help_text="null: memories stay whole.")
    statistics = DecayStatistics()
    due = DecayExtent(allow_null=True, help_text="null: no rule, or one may only read there.")


class DecayVersion(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="Of the rule that was looked at."
    )


class DecayStoreView(MemoryView):
    def store(self, uid: str) -> MemoryStore:
        rows = MemoryStore.objects.visible_to(self.actor).filter(organisation=self.organisation)
        found = rows.select_related("organisation", "agent").filter(uid=uid).first()
        if found is None:
            raise NotFound(
                _("There is no such memory store."),
                hint=_("GET /api/memories/stores lists them."),
            )
        return found

    def told(self, store: MemoryStore) -> Response:
        rule = DecayRule.objects.filter(store=store).select_related("store").first()
        statistics = statistics_of([store])[store.pk]
        writes = may_write(self.actor, store)
        return Response(
            {
                "rule": _rule(rule) if rule else None,
                "statistics": asdict(statistics),
                "due": _due(rule) if rule and writes else None,
            }
        )


class DecayView(DecayStoreView):
    @extend_schema(
        operation_id="memories_decay_retrieve",
        summary="How memories of a store fade, what has faded, and what would today",
        tags=[TAG],
        responses=answers(Decay, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return self.told(self.store(uid))

    @extend_schema(
        operation_id="memories_decay_update",
        summary="Save a rule as a dry run",
        tags=[TAG],
        request=DecayDays,
        responses=answers(Decay, 401, 403, 404, 409, 422),
    )
    def put(self, request: Any, uid: str) -> Response:
        store = self.store(uid)
        given = read_body(DecayDays, request.data)
        save_rule(
            actor=self.actor,
            store=store,
            days={step: given.get(name) for step, name in FIELDS.items()},
            also_unconfirmed=given.get("also_unconfirmed", False),
        )
        return self.told(store)

    @extend_schema(
        operation_id="memories_decay_destroy",
        summary="Let nothing fade again; what has faded stays so",
        tags=[TAG],
        responses=answers(Decay, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        store = self.store(uid)
        lift_rule(actor=self.actor, store=store)
        return self.told(store)


class BeginDecayView(DecayStoreView):
    @extend_schema(
        operation_id="memories_decay_begin",
        summary="Put the rule in force that was looked at; a day later memories fade",
        tags=[TAG],
        request=DecayVersion,
        responses=answers(Decay, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        store = self.store(uid)
        given = read_body(DecayVersion, request.data)
        version = given["version"]
        put_in_force(actor=self.actor, store=store, version=version, author=self.author)
        return self.told(store)


def _rule(rule: DecayRule) -> dict[str, Any]:
    names = (*FIELDS.values(), "also_unconfirmed", "version", "in_force_at", "begins_at")
    return {name: getattr(rule, name) for name in names}


def _due(rule: DecayRule) -> dict[str, int]:
    extent = extent_of(rule)
    return {
        "summaries": extent.memories.get(Step.SUMMARY, 0),
        "markers": extent.memories.get(Step.MARKER, 0),
        "gone": extent.memories.get(Step.GONE, 0),
        "tokens_saved": extent.tokens_saved,
    }
