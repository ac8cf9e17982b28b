"""The addresses of timers."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "timers"

urlpatterns = [
    path("timers/", views.show_timers, name="timers"),
    path("timers/<slug:kind>/<id:key>/", views.change, name="change"),
]
