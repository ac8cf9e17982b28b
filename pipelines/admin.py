"""Pipelines and their runs in the admin, for reading: they are changed on their pages, in versions. What was
asked and answered stands in the conversations."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Pipeline, PipelineRun, PipelineVersion


@admin.register(Pipeline)
class PipelineAdmin(ReadOnlyAdmin):
    list_display = ["name", "organisation", "uid", "updated_at", "archived_at"]
    list_select_related = ["organisation"]
    search_fields = ["=uid", "name"]
    fields = readonly_fields = [
        "uid",
        "organisation",
        "name",
        "description",
        "created_by",
        "created_at",
        "updated_at",
        "archived_at",
    ]


@admin.register(PipelineVersion)
class PipelineVersionAdmin(ReadOnlyAdmin):
    list_display = ["pipeline", "number", "created_by", "created_at", "note"]
    list_select_related = ["pipeline", "created_by"]
    search_fields = ["=pipeline__uid", "=pipeline__name"]
    fields = readonly_fields = [
        "pipeline",
        "number",
        "stored_spec",
        "digest",
        "note",
        "created_by",
        "created_at",
    ]


@admin.register(PipelineRun)
class PipelineRunAdmin(ReadOnlyAdmin):
    list_display = ["uid", "version", "state", "started_at", "ended_at"]
    list_select_related = ["version__pipeline"]
    search_fields = ["=uid"]
    fields = readonly_fields = [
        "uid",
        "version",
        "state",
        "scripted",
        "problem",
        "started_at",
        "ended_at",
    ]
