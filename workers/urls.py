"""The addresses of the pages of workers."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "workers"

urlpatterns = [
    path("settings/workers/", views.show_workers, name="workers"),
    path("settings/workers/<id:uid>/revoke/", views.revoke, name="worker-key-revoke"),
]
