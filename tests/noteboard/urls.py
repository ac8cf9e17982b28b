"""The address of the board."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "noteboard"

urlpatterns = [path("notes/", views.board, name="board")]
