"""Dead letters in the admin: for reading and for settling.

The actions call what the operators' page calls.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin
from accounts.administration.requests import actor_of
from accounts.staff import has_staff_permission
from conversations.administration.log import conversation_link
from harness.errors import Declined

from .actions import letters as actions
from .models import CHANGE, DeadLetter

_FIELDS = [
    "conversation_uid",
    "organisation",
    "state",
    "code",
    "cause",
    "message",
    "hint",
    "attempts",
    "replays",
    "request_seq",
    "error_seq",
    "provider",
    "model",
    "created_at",
    "failed_at",
    "closed_at",
    "closed_by",
    "reason",
]


class DeadLetterAdmin(ReadOnlyAdmin):
    actions = ["replay_from_step", "replay_from_start", "discard"]  # type: ignore[assignment]
    list_display = [
        "conversation_uid",
        "organisation",
        "state",
        "cause",
        "code",
        "attempts",
        "replays",
        "failed_at",
    ]
    list_display_links = ["code"]  # the first column leads to the conversation
    list_filter = ["state", "cause", "code", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["conversation", "organisation"]
    search_fields = ["=conversation__uid", "=code"]
    search_help_text = _("The id of a conversation, or a code")
    ordering = ["-id"]
    fields = readonly_fields = _FIELDS

    @admin.display(description=_("conversation"))
    def conversation_uid(self, obj: DeadLetter) -> SafeString | str:
        return conversation_link(obj.conversation)

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.action(description=_("Replay from the failing step"), permissions=["settle"])
    def replay_from_step(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> None:
        self._replay(request, letters, actions.STEP)

    @admin.action(description=_("Replay from the start"), permissions=["settle"])
    def replay_from_start(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> None:
        self._replay(request, letters, actions.START)

    @admin.action(description=_("Discard with a reason"), permissions=["settle"])
    def discard(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Asks for the reason on a page of its own."""
        chosen = list(letters.order_by("pk"))
        refusal: Declined | None = None
        if "reason" in request.POST:
            try:
                actions.discard_many(
                    actor=actor_of(request), letters=chosen, reason=request.POST["reason"]
                )
            except Declined as problem:
                refusal = problem
            else:
                message = ngettext(
                    "%(count)d letter discarded.", "%(count)d letters discarded.", len(chosen)
                )
                messages.success(request, message % {"count": len(chosen)})
                return None
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": gettext("Discard dead letters?"),
            "letters": chosen,
            "checkbox": ACTION_CHECKBOX_NAME,
            "refusal": refusal,
            "reason": request.POST.get("reason", ""),
        }
        return TemplateResponse(request, "admin/deadletters/discard_letters.html", context)

    def _replay(self, request: HttpRequest, letters: QuerySet[DeadLetter], mode: str) -> None:
        chosen = list(letters.select_related("conversation").order_by("pk"))
        try:
            outcome = actions.replay_many(actor=actor_of(request), letters=chosen, mode=mode)
        except Declined as problem:
            messages.error(request, problem.words)
            return
        for letter, refusal in outcome.refused:
            messages.warning(request, f"{letter.conversation.uid}: {refusal.words}")
        count = len(outcome.letters)
        message = ngettext(
            "%(count)d is being done again.", "%(count)d are being done again.", count
        )
        messages.success(request, message % {"count": count})


admin.site.register(DeadLetter, DeadLetterAdmin)
