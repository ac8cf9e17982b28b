"""Boards and tasks in the admin, for reading: who has what, and how it stands. What people and agents wrote
on them is not shown there."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin
from conversations.administration.log import conversation_link

from .models import Board, Task


class BoardAdmin(ReadOnlyAdmin):
    list_display = ["uid", "organisation", "conversation_uid", "last_number", "version"]
    list_filter = [("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["organisation", "conversation"]
    search_fields = ["=uid", "=conversation__uid"]
    search_help_text = _("The id of a board, or of its conversation")
    fields = readonly_fields = ["uid", "organisation", "conversation_uid", "last_number", "version"]

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: Board) -> SafeString | str:
        return conversation_link(obj.conversation) if obj.conversation else "—"


class TaskAdmin(ReadOnlyAdmin):
    list_display = ["uid", "number", "board", "status", "owner_name", "changed_at"]
    list_filter = ["status", ("board__organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["board"]
    search_fields = ["=uid", "=board__uid", "=board__conversation__uid"]
    search_help_text = _("The id of a task, of its board, or of the board's conversation")
    fields = readonly_fields = [
        "uid",
        "board",
        "number",
        "status",
        "owner_name",
        "owner_user",
        "creator_user",
        "untrusted_by",
        "created_at",
        "changed_at",
    ]


admin.site.register(Board, BoardAdmin)
admin.site.register(Task, TaskAdmin)
