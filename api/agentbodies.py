"""The bodies of `/api/agents` and `/api/agent-reviews`: their form; what may be is judged by the actions."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.models import AgentReview
from harness.modelcards import LADDER

from .serializers import StrictSwitch, StrictText

PLACES = ("own", "organisation", "server")


class AgentChanges(serializers.Serializer[Any]):
    name = StrictText(required=False, max_length=1_000)
    description = StrictText(required=False, allow_blank=True, max_length=2_000)
    instructions = StrictText(
        required=False, allow_blank=True, trim_whitespace=False, max_length=100_000
    )
    provider = StrictText(
        required=False, max_length=60, help_text="`auto`, or one there is a key for."
    )
    model = StrictText(required=False, allow_blank=True, max_length=160)
    effort = serializers.ChoiceField(required=False, choices=LADDER, allow_blank=True)
    thinking = StrictSwitch(required=False)
    tools = serializers.ListField(
        required=False,
        child=serializers.DictField(),
        max_length=200,
        help_text="Rules beside the base's (docs/tool-rules.md): they only ask more often or deny.",
    )
    enable_approval = StrictSwitch(required=False)
    enable_plan_mode = StrictSwitch(required=False)
    enable_teams = StrictSwitch(required=False)
    enable_tracing = StrictSwitch(required=False)


class ChangeAgent(AgentChanges):
    expected_version = serializers.IntegerField(
        required=False, min_value=1, help_text="The newest one when the change was made; else 409."
    )
    released = StrictSwitch(
        required=False, help_text="false: new conversations begin with it only where they name it."
    )
    archived = StrictSwitch(required=False)


class MakeAgent(AgentChanges):
    name = StrictText(max_length=1_000)
    base = StrictText(
        max_length=200, help_text="Id of the agent on offer that it may do no more than."
    )


class CopyAgent(serializers.Serializer[Any]):
    name = StrictText(required=False, max_length=1_000)


class RestoreAgent(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class AskReview(serializers.Serializer[Any]):
    note = StrictText(required=False, allow_blank=True, max_length=2_000)


class DecideReview(serializers.Serializer[Any]):
    approve = StrictSwitch()
    reason = StrictText(required=False, allow_blank=True, max_length=2_000)


class AgentRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    place = serializers.ChoiceField(choices=PLACES, help_text="Whose it is.")
    private = serializers.BooleanField(help_text="Only its owner is offered it.")
    archived = serializers.BooleanField()
    version = serializers.IntegerField(help_text="What new conversations begin with.")
    provider = serializers.CharField()
    model = serializers.CharField(allow_blank=True)


class CalleeRow(serializers.Serializer[Any]):
    agent = serializers.CharField(help_text="Its id; `self`: the agent itself.")
    version = serializers.IntegerField(help_text="0 for `self`.")
    name = serializers.CharField(help_text="What it is called by.")


class RosterRow(serializers.Serializer[Any]):
    agents = CalleeRow(many=True)
    only = serializers.BooleanField(help_text="None of the types that every agent has.")
    inline = serializers.BooleanField(help_text="A call may define an agent for itself.")
    advisor = serializers.CharField(allow_blank=True, help_text="A model; empty: none.")


class AgentDetail(AgentRow):
    newest_version = serializers.IntegerField(
        help_text="Of one's own: perhaps shared with nobody yet."
    )
    base = serializers.CharField(allow_null=True, help_text="Id of what it may do no more than.")
    instructions = serializers.CharField(allow_blank=True)
    effort = serializers.CharField(allow_blank=True)
    thinking = serializers.BooleanField()
    tools = serializers.ListField(child=serializers.DictField(), help_text="Beside the base's.")
    roster = RosterRow(help_text="Whom it may call on: its base's.")
    enable_approval = serializers.BooleanField()
    enable_plan_mode = serializers.BooleanField()
    enable_teams = serializers.BooleanField()
    enable_tracing = serializers.BooleanField()


class VersionRow(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    draft = serializers.BooleanField(help_text="Its owner's alone.")
    made_by = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class ReviewRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    agent_id = serializers.CharField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    shared_version = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(choices=AgentReview.State.values)
    note = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    asked_by = serializers.CharField(allow_blank=True)
    asked_at = serializers.DateTimeField()
    decided_by = serializers.CharField(allow_blank=True)
    decided_at = serializers.DateTimeField(allow_null=True)
