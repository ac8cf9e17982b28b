"""Approvals and the rules for tools in the admin.

The actions call what the review queue calls; a single call is changed or allowed for longer there.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin, is_shown_whole, pretty_json
from accounts.administration.requests import actor_of
from accounts.staff import has_staff_permission
from harness.errors import Declined
from tools_app import touches
from tools_app.touches import as_data, as_text

from .actions.approvals import decide_approval
from .actions.rules import revoke_rule
from .models import Approval, PolicyRule
from .models.approval import CHANGE
from .models.policyrule import CHANGE_RULES
from .queue import Seen, items, people_who_allowed, seen_by_uid, with_facts

SHOWN = "shown"
"""Names the hash of what each confirmed call asked for when the page showed it."""


class ApprovalAdmin(ReadOnlyAdmin):
    actions = ["allow_once", "deny"]  # type: ignore[assignment]
    list_display = [
        "in_queue",
        "input_short",
        "risk",
        "state",
        "organisation",
        "requested_by",
        "asked_at",
        "closed_by",
    ]
    list_display_links = ["state"]  # the first column leads to the queue
    list_filter = [
        "state",
        "risk",
        "tool",
        ("organisation", AutocompleteSelectFilter),
    ]
    list_filter_submit = True
    list_select_related = ["organisation", "requested_by", "closed_by"]
    search_fields = ["=uid", "=conversation__uid", "=call_uid", "=tool"]
    search_help_text = _("The id of an approval, a conversation or a call, or a tool")
    ordering = ["-id"]
    fields = readonly_fields = [
        "in_queue",
        "state",
        "tool",
        "input_shown",
        "final_input_shown",
        "acts_on_shown",
        "reason",
        "rule_level",
        "risk",
        "effect",
        "organisation",
        "requested_by",
        "assignee",
        "needed",
        "allowed",
        "asked_at",
        "expires_at",
        "closed_at",
        "closed_by",
        "answers",
    ]

    @admin.display(description=_("approval"))
    def in_queue(self, obj: Approval) -> SafeString:
        address = reverse("approvals:approval", kwargs={"uid": obj.uid})
        return format_html('<a href="{}">{} · {}</a>', address, obj.tool, obj.uid)

    @admin.display(description=_("input"))
    def input_short(self, obj: Approval) -> str:
        text = " ".join(f"{name}={value!r}" for name, value in obj.effective_input.items())
        return text if len(text) <= 120 else f"{text[:119]}…"

    @admin.display(description=_("input"))
    def input_shown(self, obj: Approval) -> SafeString:
        return pretty_json(obj.input)

    @admin.display(description=_("allowed with"))
    def final_input_shown(self, obj: Approval) -> SafeString | str:
        return "—" if obj.final_input is None else pretty_json(obj.final_input)

    @admin.display(description=_("what it acts on"))
    def acts_on_shown(self, obj: Approval) -> SafeString | str:
        told = as_text(as_data(obj.touches))
        return format_html('<pre class="agentsite-json">{}</pre>', told) if told else "—"

    @admin.display(description=_("people who have allowed it"))
    def allowed(self, obj: Approval) -> str:
        return str(people_who_allowed(obj)) if obj.is_waiting else "—"

    @admin.display(description=_("answers"))
    def answers(self, obj: Approval) -> SafeString:
        return pretty_json(
            [
                {
                    "by": str(answer.by or ""),
                    "at": answer.at.isoformat(),
                    "verdict": answer.verdict,
                    "scope": answer.scope,
                    "reason": answer.reason,
                }
                for answer in obj.decisions.select_related("by")
            ]
        )

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.action(description=_("Allow once"), permissions=["decide"])
    def allow_once(self, request: HttpRequest, approvals: QuerySet[Approval]) -> Any:
        return self._decide(request, approvals, "approve")

    @admin.action(description=_("Deny with a reason"), permissions=["decide"])
    def deny(self, request: HttpRequest, approvals: QuerySet[Approval]) -> Any:
        return self._decide(request, approvals, "deny")

    def _decide(
        self, request: HttpRequest, approvals: QuerySet[Approval], verdict: Any
    ) -> HttpResponse | None:
        """Shows each call on a page of its own first; what was shown there is what is decided on."""
        chosen = list(with_facts(Approval.objects.filter(pk__in=approvals)).order_by("pk"))
        if SHOWN not in request.POST:
            context: dict[str, Any] = {
                **self.admin_site.each_context(request),
                "title": gettext("Allow these calls once?")
                if verdict == "approve"
                else gettext("Deny these calls?"),
                # As the queue shows them; of one that is too long for a page its beginning, as stored.
                "approvals": [
                    (
                        item,
                        "" if is_shown_whole(asked) else pretty_json(asked),
                        is_shown_whole(asked) and touches.is_shown_whole(item.approval.touches),
                    )
                    for item in items(actor_of(request), chosen)
                    for asked in [item.approval.effective_input]
                ],
                "action": "allow_once" if verdict == "approve" else "deny",
                "checkbox": ACTION_CHECKBOX_NAME,
                "denies": verdict == "deny",
            }
            return TemplateResponse(request, "admin/approvals/decide_approvals.html", context)
        shown = seen_by_uid(request.POST.getlist(SHOWN))
        decided = 0
        gone = len(shown.keys() - {one.uid for one in chosen})
        if gone:
            words = ngettext(
                "%(count)d call no longer stands in this list; nothing was done about it.",
                "%(count)d calls no longer stand in this list; nothing was done about them.",
                gone,
            )
            messages.warning(request, words % {"count": gone})
        for one in chosen:
            seen = shown.get(one.uid, Seen())
            try:
                decide_approval(
                    actor=actor_of(request),
                    approval=one,
                    verdict=verdict,
                    input_hash=seen.input_hash,
                    seen_round=seen.round,
                    reason=request.POST.get("reason", ""),
                )
                decided += 1
            except Declined as refusal:
                words = f"{one.tool} {one.uid}: {refusal.words}"
                messages.warning(request, words)
        message = ngettext("%(count)d call is decided.", "%(count)d calls are decided.", decided)
        messages.success(request, message % {"count": decided})
        return None


class PolicyRuleAdmin(ReadOnlyAdmin):
    """Made and revoked on the page of rules and by approvals; here staff see all and revoke."""

    actions = ["revoke"]  # type: ignore[assignment]
    list_display = ["words", "permission", "scope", "organisation", "agent", "made_by", "made_at"]
    list_filter = ["scope", "permission", ("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["organisation", "agent", "made_by"]
    search_fields = ["=uid", "tool"]
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "words",
        "permission",
        "scope",
        "organisation",
        "agent",
        "conversation",
        "for_user",
        "options",
        "note",
        "made_by",
        "made_at",
        "made_from",
        "revoked_at",
        "revoked_by",
    ]

    @admin.display(description=_("rule"))
    def words(self, obj: PolicyRule) -> str:
        return obj.value.words()

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE_RULES)

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, rules: QuerySet[PolicyRule]) -> None:
        revoked = 0
        for rule in rules:
            try:
                revoke_rule(actor=actor_of(request), rule=rule)
                revoked += 1
            except Declined as refusal:
                messages.warning(request, f"{rule.uid}: {refusal.message}")
        message = ngettext("%(count)d rule revoked.", "%(count)d rules revoked.", revoked)
        messages.success(request, message % {"count": revoked})


admin.site.register(Approval, ApprovalAdmin)
admin.site.register(PolicyRule, PolicyRuleAdmin)
