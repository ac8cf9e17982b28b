"""Skills in the admin: all of them and their versions, reviews to decide, the stop for everybody.

They are written and read on their own pages. The actions call what those call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from accounts.administration.readonly import ReadOnlyAdmin, pretty_json
from accounts.administration.requests import actor_of
from accounts.models import User
from accounts.staff import has_staff_permission
from harness.errors import AgentError

from .actions.releases import decide_release, yank_version
from .actions.skills import kill_skill, revive_skill
from .actions.sources import look_at_source, remove_source
from .models import MANAGE_ANY, Skill, SkillPackages, SkillSource, SkillVersion


class SkillAdmin(ReadOnlyAdmin):
    actions = ["stop", "revive"]  # type: ignore[assignment]
    list_display = ["name", "organisation", "owner", "stable", "canary", "killed_at"]
    list_select_related = ["organisation", "owner", "stable__skill", "canary__skill"]
    search_fields = ["=uid", "name", "description"]
    search_help_text = _("The id of a skill, or a part of its name or description")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "name",
        "page",
        "organisation",
        "owner",
        "description",
        "stable",
        "canary",
        "latest",
        "killed_at",
        "killed_reason",
        "created_by",
        "created_at",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Skill]:
        """What members keep for themselves is nobody else's to read."""
        rows: QuerySet[Skill] = super().get_queryset(request)
        return rows.filter(owner__isnull=True)

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), MANAGE_ANY)

    @admin.display(description=_("page"))
    def page(self, obj: Skill) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("skills:skill", args=[obj.uid]), obj.name)

    @admin.action(description=_("Stop everywhere, before the next call"), permissions=["manage"])
    def stop(self, request: HttpRequest, skills: QuerySet[Skill]) -> None:
        reason = _now("Stopped by staff of this server.")
        _each(request, skills, lambda actor, one: kill_skill(actor=actor, skill=one, reason=reason))

    @admin.action(description=_("Allow again"), permissions=["manage"])
    def revive(self, request: HttpRequest, skills: QuerySet[Skill]) -> None:
        _each(request, skills, lambda actor, one: revive_skill(actor=actor, skill=one))


class SkillVersionAdmin(ReadOnlyAdmin):
    actions = ["release", "release_canary", "withdraw"]  # type: ignore[assignment]
    list_display = ["__str__", "organisation", "state", "created_by", "created_at"]
    list_filter = ["state"]
    list_select_related = ["skill__organisation", "created_by"]
    search_fields = ["=uid", "skill__name", "digest"]
    search_help_text = _("The id or digest of a version, or a part of the skill's name")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "skill",
        "label",
        "page",
        "state",
        "digest",
        "description",
        "note",
        "head",
        "requires",
        "warnings",
        "size",
        "asked_by",
        "asked_at",
        "decided_by",
        "decided_at",
        "reason",
        "deprecated_at",
        "removal_on",
        "replacement",
        "created_by",
        "created_at",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[SkillVersion]:
        rows: QuerySet[SkillVersion] = super().get_queryset(request)
        return rows.filter(skill__owner__isnull=True)

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), MANAGE_ANY)

    @admin.display(description=_("organisation"))
    def organisation(self, obj: SkillVersion) -> str:
        return str(obj.skill.organisation or _now("this server’s"))

    @admin.display(description=_("head"))
    def head(self, obj: SkillVersion) -> SafeString:
        return pretty_json(obj.front)

    @admin.display(description=_("page"))
    def page(self, obj: SkillVersion) -> SafeString:
        address = reverse("skills:version", args=[obj.skill.uid, obj.label])
        return format_html('<a href="{}">{}</a>', address, _now("Files and changes"))

    @admin.action(description=_("Release what waits, as stable"), permissions=["manage"])
    def release(self, request: HttpRequest, versions: QuerySet[SkillVersion]) -> None:
        _each(request, versions, lambda actor, one: _released(actor, one, "stable"))

    @admin.action(description=_("Release what waits, as canary"), permissions=["manage"])
    def release_canary(self, request: HttpRequest, versions: QuerySet[SkillVersion]) -> None:
        _each(request, versions, lambda actor, one: _released(actor, one, "canary"))

    @admin.action(description=_("Withdraw"), permissions=["manage"])
    def withdraw(self, request: HttpRequest, versions: QuerySet[SkillVersion]) -> None:
        why = _now("Withdrawn by staff of this server.")
        _each(
            request, versions, lambda actor, one: yank_version(actor=actor, version=one, reason=why)
        )


class SkillPackagesAdmin(ReadOnlyAdmin):
    """They are installed again from the page of a version that needs them."""

    list_display = ["__str__", "state", "size", "problem", "ended_at"]
    list_filter = ["state"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "needed",
        "state",
        "problem",
        "lock",
        "tree",
        "size",
        "asked_at",
        "began_at",
        "ended_at",
    ]

    @admin.display(description=_("needed"))
    def needed(self, obj: SkillPackages) -> SafeString:
        return pretty_json(obj.wanted)

    @admin.display(description=_("lock"))
    def lock(self, obj: SkillPackages) -> SafeString:
        return pretty_json(obj.parts)


class SkillSourceAdmin(ReadOnlyAdmin):
    actions = ["look", "take_away"]  # type: ignore[assignment]
    list_display = ["address", "kind", "organisation", "looked_at", "problem"]
    list_filter = ["kind"]
    list_select_related = ["organisation"]
    search_fields = ["=uid", "address"]
    search_help_text = _("The id of a source, or a part of its address")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "kind",
        "address",
        "page",
        "organisation",
        "key",
        "commit",
        "looked_at",
        "problem",
        "remarks",
        "created_by",
        "created_at",
    ]

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), MANAGE_ANY)

    @admin.display(description=_("page"))
    def page(self, obj: SkillSource) -> SafeString:
        address = reverse("skills:source", args=[obj.uid])
        return format_html('<a href="{}">{}</a>', address, _now("What it offers"))

    @admin.action(description=_("Look what they offer now"), permissions=["manage"])
    def look(self, request: HttpRequest, sources: QuerySet[SkillSource]) -> None:
        _each(request, sources, lambda actor, one: look_at_source(actor=actor, source=one))

    @admin.action(description=_("Take away"), permissions=["manage"])
    def take_away(self, request: HttpRequest, sources: QuerySet[SkillSource]) -> None:
        _each(request, sources, lambda actor, one: remove_source(actor=actor, source=one))


def _released(actor: User, version: SkillVersion, channel: str) -> None:
    decide_release(
        actor=actor,
        version=version,
        approve=True,
        channel=channel,
        expected_digest=version.digest,
    )


def _each(request: HttpRequest, rows: QuerySet[Any], act: Callable[[User, Any], object]) -> None:
    """What was done, and for each that was refused why."""
    done = 0
    actor = actor_of(request)
    for row in rows:
        try:
            act(actor, row)
            done += 1
        except AgentError as problem:
            messages.error(request, f"{row}: {problem.words}")
    if done:
        messages.success(request, _now("Done for %(count)d.") % {"count": done})


admin.site.register(Skill, SkillAdmin)
admin.site.register(SkillVersion, SkillVersionAdmin)
admin.site.register(SkillPackages, SkillPackagesAdmin)
admin.site.register(SkillSource, SkillSourceAdmin)
