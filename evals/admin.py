"""Suites, evaluations and trials in the admin, for reading: they are changed on the pages of evals."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Evaluation, Suite, Trial


@admin.register(Suite)
class SuiteAdmin(ReadOnlyAdmin):
    list_display = ["name", "organisation", "uid", "updated_at"]
    list_select_related = ["organisation"]
    search_fields = ["=uid", "name"]
    fields = readonly_fields = [
        "uid",
        "organisation",
        "name",
        "description",
        "judge_provider",
        "judge_model",
        "judges",
        "created_by",
        "created_at",
        "updated_at",
    ]


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    list_display = ["uid", "suite", "agent_version", "state", "started_by", "started_at"]
    list_filter = ["state"]
    list_select_related = ["suite", "agent_version__agent", "started_by"]
    search_fields = ["=uid", "=suite__uid"]
    fields = readonly_fields = [
        "uid",
        "suite",
        "agent_version",
        "environment",
        "overrides",
        "skills",
        "scripted",
        "repetitions",
        "parallel",
        "limit",
        "uses_cache",
        "note",
        "state",
        "started_by",
        "started_at",
        "ended_at",
    ]


@admin.register(Trial)
class TrialAdmin(ReadOnlyAdmin):
    """Without what was said: that is its owner's and whoever manages the suite."""

    list_display = ["name", "repetition", "state", "problem", "cost", "started_at", "ended_at"]
    list_filter = ["state"]
    search_fields = ["=evaluation__uid", "name"]
    fields = readonly_fields = [
        "evaluation",
        "name",
        "digest",
        "repetition",
        "state",
        "problem",
        "steps",
        "model_calls",
        "cached_calls",
        "cost",
        "saved",
        "seconds",
        "started_at",
        "ended_at",
    ]
