"""The addresses of what was learned in a conversation, and of the switch."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "learning"

urlpatterns = [
    path("settings/memory/learning/", views.switch, name="switch"),
    path("c/<id:uid>/learned/", views.show_learned, name="learned"),
]
