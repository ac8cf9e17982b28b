"""The addresses of how a store's memories fade."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "decay"

RULE = "settings/decay/<id:uid>/"

urlpatterns = [
    path(RULE, views.show_rule, name="rule"),
    path(f"{RULE}begin/", views.begin, name="begin"),
    path(f"{RULE}lift/", views.lift, name="lift"),
]
