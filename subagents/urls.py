"""The addresses of the pages of subagents."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "subagents"

urlpatterns = [
    path("c/<id:uid>/subagents/", views.tree, name="tree"),
    path("c/<id:uid>/subagents/stop/", views.stop_all, name="stop-all"),
    path("c/<id:uid>/subagent/now/", views.now, name="now"),
    path("c/<id:uid>/subagent/stop/", views.stop, name="stop"),
]
