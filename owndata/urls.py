"""The address of a person's own data."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "owndata"

urlpatterns = [path("settings/data/", views.own_data, name="own-data")]
