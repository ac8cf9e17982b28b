"""Shared files in the admin: every version to be read and compared; restored or taken away as by an agent."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action

from accounts.administration.readonly import MOST_CHARACTERS, ReadOnlyAdmin
from accounts.administration.requests import actor_of
from accounts.staff import has_staff_permission
from harness.errors import Declined
from tools_app.diffs import diff_of

from .actions.files import CHANGE, remove_shared_file, restore_shared_version
from .models import SharedVersion
from .versions import Shelf


class SharedVersionAdmin(ReadOnlyAdmin):
    list_display = ["path", "number", "agent", "organisation", "size", "removed", "created_at"]
    list_filter = ["removed"]
    ordering = ["-pk"]
    list_select_related = ["agent", "organisation"]
    search_fields = ["path__startswith", "sha256"]
    fields = [
        "path",
        "number",
        "agent",
        "organisation",
        "removed",
        "sha256",
        "restored_from",
        "conversation",
        "owner",
        "created_at",
        "text",
        "compared",
    ]
    readonly_fields = fields
    actions_detail = ["restore", "take_away"]

    def has_restore_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.display(description=_("bytes"))
    def size(self, obj: SharedVersion) -> str:
        return f"{len(obj.content):,}"

    @admin.display(description=_("content"))
    def text(self, obj: SharedVersion) -> SafeString:
        return _as_text(_text_of(obj))

    @admin.display(description=_("compared with what is shared now"))
    def compared(self, obj: SharedVersion) -> SafeString | str:
        current = _shelf_of(obj).current(obj.path)
        if current is None:
            return gettext("Nothing is shared there now.")
        if current.pk == obj.pk:
            return gettext("This is what is shared now.")
        found = diff_of(obj.path, _text_of(current), _text_of(obj)).diff
        if not found:
            return _as_text(gettext("They are the same."))
        shared = gettext("shared now: version %(number)d") % {"number": current.number}
        this = gettext("this one: version %(number)d") % {"number": obj.number}
        return _as_text(f"--- {shared}\n+++ {this}\n{found}")

    @action(description=_("Restore"), url_path="restore", icon="history", permissions=["restore"])  # type: ignore[untyped-decorator]
    def restore(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._change(request, object_id, taking_away=False)

    @action(
        description=_("Take the file away"),
        url_path="take-away",
        icon="delete",
        permissions=["restore"],
    )  # type: ignore[untyped-decorator]
    def take_away(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._change(request, object_id, taking_away=True)

    def _change(self, request: HttpRequest, object_id: str, *, taking_away: bool) -> HttpResponse:
        """Asked first; bound to what was shared when it was asked."""
        version: SharedVersion | None = self.get_object(request, unquote(object_id))
        if version is None:
            raise Http404(gettext("There is no such version."))
        if request.method == "POST":
            change = remove_shared_file if taking_away else restore_shared_version
            try:
                row = change(
                    actor=actor_of(request),
                    version=version,
                    expected_sha256=request.POST.get("expected_sha256", ""),
                )
            except Declined as refusal:
                messages.error(request, refusal.words)
                row = version
            else:
                text = gettext("“%(path)s” has version %(number)d now.")
                messages.success(request, text % {"path": row.path, "number": row.number})
            return HttpResponseRedirect(
                reverse("admin:sharedfiles_sharedversion_change", args=[row.pk])
            )
        current = _shelf_of(version).current(version.path)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Take this file away?")
            if taking_away
            else gettext("Restore this version?"),
            "subtitle": str(version),
            "opts": self.opts,
            "original": version,
            "has_view_permission": True,
            "current": current,
            "taking_away": taking_away,
            "compared": self.compared(version),
        }
        return TemplateResponse(request, "admin/sharedfiles/shared_change.html", context)


def _shelf_of(version: SharedVersion) -> Shelf:
    return Shelf(version.organisation_id, version.agent_id)


def _text_of(version: SharedVersion) -> str:
    return (
        bytes(version.content).decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def _as_text(text: str) -> SafeString:
    more = len(text) - MOST_CHARACTERS
    note = gettext("… and %(count)d more characters") % {"count": more} if more > 0 else ""
    return format_html(
        '<pre class="agentsite-text">{}</pre><p>{}</p>', text[:MOST_CHARACTERS], note
    )


admin.site.register(SharedVersion, SharedVersionAdmin)
