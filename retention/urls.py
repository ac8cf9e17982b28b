"""The address of the page of retention."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "retention"

urlpatterns = [
    path("settings/retention/", views.show_rule, name="rule"),
    path("settings/retention/begin/", views.begin, name="begin"),
    path("settings/retention/lift/", views.lift, name="lift"),
]
