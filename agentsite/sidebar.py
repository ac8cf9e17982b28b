"""The groups of the admin's sidebar, each entry for whoever may open it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

GROUPS: list[tuple[Promise, list[tuple[str, str]]]] = [
    (
        _("Agents"),
        [
            ("agents.agent", "smart_toy"),
            ("agents.environment", "deployed_code"),
            ("conversations.defaults", "star"),
            ("agents.sandboxrules", "shield"),
            ("workers.environmentkey", "key"),
            ("workers.workitem", "conveyor_belt"),
            ("sharedfiles.sharedversion", "folder_shared"),
            ("agents.prompt", "notes"),
            ("skills_app.skill", "school"),
            ("skills_app.skillversion", "inventory_2"),
            ("memory.memorystore", "psychology"),
            ("decay.decayrule", "hourglass_bottom"),
            ("decay.decayrun", "history_toggle_off"),
            ("documents.collection", "library_books"),
            ("documents.document", "description"),
        ],
    ),
    (
        _("Work"),
        [
            ("conversations.conversation", "forum"),
            ("approvals.approval", "rule"),
            ("approvals.policyrule", "gavel"),
            ("audit.auditentry", "history_edu"),
            ("conversations.run", "play_circle"),
            ("deadletters.deadletter", "report"),
            ("schedules.standingorder", "event_repeat"),
            ("schedules.orderrun", "event_available"),
            ("schedules.queueitem", "checklist"),
            ("brief.briefwish", "alarm"),
            ("brief.brief", "newspaper"),
            ("retention.retentionrule", "auto_delete"),
            ("conversations.activation", "history"),
            ("conversations.modeltrace", "troubleshoot"),
        ],
    ),
    (
        _("Webhooks"),
        [
            ("webhooks.webhookendpoint", "webhook"),
            ("webhooks.webhookdelivery", "outbox"),
        ],
    ),
    (
        _("Spending"),
        [
            ("spending.usage", "monitoring"),
            ("titles.titlerequest", "title"),
            ("learning.analysis", "school"),
            ("spending.budget", "savings"),
            ("spending.modelprice", "payments"),
        ],
    ),
    (
        _("People"),
        [
            ("accounts.user", "person"),
            ("accounts.organisation", "apartment"),
            ("accounts.membership", "badge"),
            ("accounts.invitation", "mail"),
            ("accounts.providerkey", "key"),
            ("accounts.apitoken", "vpn_key"),
            ("mcpclients.mcpclient", "devices_other"),
            ("vaults.vault", "lock"),
            ("vaults.vaultcredential", "password"),
        ],
    ),
]
"""Title of a group, and its entries: a model that the admin knows, and an icon."""


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """What unfold's `SIDEBAR` takes; a group of which nothing may be opened is left out."""
    pages = {model._meta.label_lower: page for model, page in admin.site._registry.items()}  # noqa: SLF001
    groups = []
    for title, entries in GROUPS:
        items = [
            {
                "title": capfirst(pages[label].opts.verbose_name_plural),
                "icon": icon,
                "link": reverse_lazy(f"admin:{label.replace('.', '_')}_changelist"),
            }
            for label, icon in entries
            if pages[label].has_view_permission(request)
        ]
        if items:
            groups.append({"title": title, "items": items})
    return groups
