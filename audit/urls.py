"""The addresses of the pages of the audit log."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "audit"

urlpatterns = [
    path("approvals/audit/", views.show_audit, name="audit"),
    path("approvals/audit/export/", views.export_audit, name="audit-export"),
]
