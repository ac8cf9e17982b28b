"""Conversations and their events, for reading only.

What people wrote is shown to staff with the permission to view events, and to nobody else: without
it a conversation has an id, an owner and numbers, but no title.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin, pretty_json
from accounts.administration.requests import actor_of
from accounts.staff import has_staff_permission
from conversations.models import Conversation, Event

VIEW_EVENTS = "conversations.view_event"
OF_CONVERSATION = "conversation__id__exact"
"""The parameter by which the lists of events, runs, calls and traces show one conversation's."""


def may_read(request: HttpRequest) -> bool:
    """Whether the person may see what was written in conversations."""
    return has_staff_permission(actor_of(request), VIEW_EVENTS)


def conversation_link(conversation: Conversation | None) -> SafeString | str:
    """Its id as a link: ids are no content."""
    if conversation is None:
        return "–"
    address = reverse("admin:conversations_conversation_change", args=[conversation.pk])
    return format_html('<a class="text-link" href="{}">{}</a>', address, conversation.uid)


class ConversationAdmin(ReadOnlyAdmin):
    list_filter = [
        "status",
        ("organisation", AutocompleteSelectFilter),
        ("owner", AutocompleteSelectFilter),
        ("archived_at", admin.EmptyFieldListFilter),
    ]
    list_filter_submit = True
    list_select_related = ["organisation", "owner", "agent_version__agent"]
    ordering = ["-id"]

    def get_list_display(self, request: HttpRequest) -> list[str]:
        shown = ["owner", "organisation", "agent", "state", "message_count", "active_at"]
        return ["uid", "title", *shown] if may_read(request) else ["uid", *shown]

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        fields = ["=uid", "=owner__username", "=owner__email"]
        return [*fields, "title"] if may_read(request) else fields

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fields = [
            "uid",
            "title",
            "more",
            "owner",
            "organisation",
            "agent",
            "environment",
            "parent_link",
            "state",
            "stop_reason",
            "switches",
            "last_seq",
            "message_count",
            "queued_count",
            "context_tokens",
            "created_at",
            "active_at",
            "archived_at",
        ]
        return fields if may_read(request) else [name for name in fields if name != "title"]

    get_readonly_fields = get_fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        rows: QuerySet[Conversation] = super().get_queryset(request)
        return rows.select_related(
            "organisation", "owner", "agent_version__agent", "environment", "parent"
        )

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Conversation | None:
        found: Conversation | None = super().get_object(request, object_id, from_field)
        if found is not None and not may_read(request):
            found.title = ""  # the page's heading is the title, or else the id
        return found

    @admin.display(description=_("agent"))
    def agent(self, obj: Conversation) -> str:
        return str(obj.agent_version)

    @admin.display(description=_("state"))
    def state(self, obj: Conversation) -> str:
        if obj.waits_for_person:
            return str(_("waits for a person"))
        if obj.waits_for_worker:
            return str(_("waits for a worker"))
        if obj.has_stopped_short:
            return str(_("stopped: %(reason)s") % {"reason": obj.stop_reason.replace("_", " ")})
        return obj.get_status_display()

    @admin.display(description=_("switches that are on"))
    def switches(self, obj: Conversation) -> str:
        return ", ".join(name for name, on in obj.features.model_dump().items() if on) or "–"

    @admin.display(description=_("started by"))
    def parent_link(self, obj: Conversation) -> SafeString | str:
        return conversation_link(obj.parent)

    @admin.display(description=_("more of it"))
    def more(self, obj: Conversation) -> SafeString:
        only = urlencode({OF_CONVERSATION: obj.pk})
        pages = [
            ("conversations_event", _("Events")),
            ("conversations_run", _("Runs")),
            ("spending_usage", _("Model calls")),
            ("conversations_modeltrace", _("Traces")),
        ]
        address = {name: reverse(f"admin:{name}_changelist") + f"?{only}" for name, _label in pages}
        return format_html(
            '<span class="agentsite-links">'
            + " ".join(['<a class="text-link" href="{}">{}</a>'] * len(pages))
            + "</span>",
            *[part for name, label in pages for part in (address[name], label)],
        )


class EventAdmin(ReadOnlyAdmin):
    """Everything that was said and done. Reached from a conversation, whose log is then in order."""

    list_display = ["uid", "seq", "type", "conversation_uid", "actor", "created_at"]
    list_display_links = ["uid"]
    list_select_related = ["conversation", "actor"]
    search_fields = ["=uid", "=conversation__uid"]
    search_help_text = _("The id of an event or a conversation")
    fields = readonly_fields = [
        "uid",
        "conversation_uid",
        "seq",
        "type",
        "subject",
        "actor",
        "run",
        "key",
        "created_at",
        "processed_at",
        "content",
    ]

    def get_ordering(self, request: HttpRequest) -> list[str]:
        return ["seq"] if OF_CONVERSATION in request.GET else ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        rows: QuerySet[Event] = super().get_queryset(request)
        return rows.select_related("conversation", "actor", "run").defer("payload")

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: Event) -> SafeString | str:
        return conversation_link(obj.conversation)

    @admin.display(description=_("content"))
    def content(self, obj: Event) -> SafeString:
        return pretty_json(obj.payload)
