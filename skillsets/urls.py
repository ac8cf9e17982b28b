"""The addresses of a conversation's skills."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "skillsets"

urlpatterns = [
    path("c/<id:uid>/skills/", views.show_skills, name="skills"),
    path("c/<id:uid>/skills/workspace/", views.show_workspace, name="workspace"),
    path("c/<id:uid>/skills/<slug:name>/add/", views.add, name="add"),
]
