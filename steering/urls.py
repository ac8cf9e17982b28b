"""The addresses of the pages of steering files."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "steering"

urlpatterns = [
    path("settings/steering/", views.show_files, name="files"),
    path("c/<id:uid>/steering/", views.show_workspace, name="workspace"),
]
