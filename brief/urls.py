"""The addresses of briefs."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "brief"

urlpatterns = [
    path("brief/", views.show_now, name="brief"),
    path("brief/<id:uid>/", views.show_one, name="one"),
    path("settings/brief/", views.change_wish, name="settings"),
]
