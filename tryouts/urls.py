"""The addresses at which an agent is tried out."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "tryouts"

urlpatterns = [
    path("agents/new/try/", views.try_new, name="try-new"),
    path("agents/<id:uid>/try/", views.try_out, name="try"),
    path("agents/<id:uid>/try/<id:conversation_uid>/", views.show, name="tryout"),
]
