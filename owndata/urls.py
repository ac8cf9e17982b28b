"""The addresses of a person's own data, and of their end."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "owndata"

urlpatterns = [
    path("settings/data/", views.own_data, name="own-data"),
    path("settings/data/delete/", views.delete_account, name="delete-account"),
]
