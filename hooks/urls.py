"""The addresses of the pages of hooks."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "hooks"

urlpatterns = [
    path("settings/hooks/", views.show_hooks, name="hooks"),
    path("settings/hooks/<id:uid>/", views.change, name="hook"),
    path("settings/hooks/<id:uid>/delete/", views.delete, name="delete"),
]
