"""The addresses of the pages of webhooks."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "webhooks"

of_webhook = [
    path("", views.endpoint, name="webhook"),
    path("rotate/", views.rotate, name="webhook-rotate"),
    path("switch/", views.switch, name="webhook-switch"),
    path("remove/", views.remove, name="webhook-remove"),
    path("test/", views.test, name="webhook-test"),
    path("redeliver/", views.redeliver_dead, name="webhook-redeliver-dead"),
    path("deliveries/<id:event_uid>/", views.delivery, name="webhook-delivery"),
    path("deliveries/<id:event_uid>/redeliver/", views.redeliver, name="webhook-redeliver"),
]

urlpatterns = [
    path("organisation/webhooks/", views.webhooks, name="webhooks"),
    path("organisation/webhooks/<id:uid>/", include(of_webhook)),
]
