"""The address of the page of timelines."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "timelines"

urlpatterns = [path("c/<id:uid>/timeline/", views.show_timeline, name="timeline")]
