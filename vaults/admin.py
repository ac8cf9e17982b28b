"""Vaults in the admin: that there are some, whose, and for which services. No secret, and nothing to change.

Whoever must end one for a person deactivates the person's account, after which it serves nobody.
"""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin

from .models import Vault, VaultCredential


class VaultAdmin(ReadOnlyAdmin):
    list_display = ["uid", "owner", "organisation", "created_at", "archived_at"]
    list_filter = [("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["owner", "organisation"]
    search_fields = ["=uid", "=owner__username"]
    search_help_text = _("The id of a vault, or a user name")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "display_name",
        "owner",
        "organisation",
        "created_at",
        "archived_at",
    ]


class VaultCredentialAdmin(ReadOnlyAdmin):
    list_display = ["uid", "vault", "kind", "url", "last_used_at", "archived_at"]
    list_filter = ["kind"]
    list_select_related = ["vault"]
    search_fields = ["=uid", "=vault__uid", "url"]
    search_help_text = _("The id of a credential or its vault, or a part of an address")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "vault",
        "kind",
        "url",
        "display_name",
        "last_used_at",
        "created_at",
        "updated_at",
        "archived_at",
    ]


admin.site.register(Vault, VaultAdmin)
admin.site.register(VaultCredential, VaultCredentialAdmin)
