"""The addresses of a person's memory, and of what a conversation recalled."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "recall"

ONE = "settings/memory/<id:uid>/"

urlpatterns = [
    path("settings/memory/", views.show_memory, name="memory"),
    path("settings/memory/switch/", views.switch, name="switch"),
    path("settings/memory/export/", views.export, name="export"),
    path("settings/memory/forget/", views.forget_all, name="forget-all"),
    path(ONE, views.show_one, name="one"),
    path(f"{ONE}<slug:what>/", views.act, name="act"),
    path("c/<id:uid>/memory/", views.show_recalled, name="recalled"),
    path("c/<id:uid>/memory/off/", views.leave_out, name="leave-out"),
]
