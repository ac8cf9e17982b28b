"""The addresses of notifications."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "notices"

urlpatterns = [
    path("settings/notifications/", views.show_settings, name="settings"),
    path("settings/notifications/browsers/", views.sign_up, name="sign-up"),
    path("settings/notifications/browsers/<id:uid>/remove/", views.remove, name="remove"),
    path("settings/notifications/browsers/<id:uid>/test/", views.test, name="test"),
    path("notifications/stop/<str:token>/", views.stop, name="stop"),
    path("service-worker.js", views.worker, name="worker"),
]
