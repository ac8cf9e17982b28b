"""The keys in the admin, for reading: what is sealed is not shown."""

from __future__ import annotations

from django.contrib import admin

from accounts.administration.readonly import ReadOnlyAdmin

from .models import SigningKey


@admin.register(SigningKey)
class SigningKeyAdmin(ReadOnlyAdmin):
    list_display = ["fingerprint", "made_at"]
    fields = readonly_fields = ["fingerprint", "public_pem", "made_at"]
