"""The addresses of the pages of the operators."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "operations"

of_operations = [
    path("", views.show, name="operations"),
    path("figures/", views.figures, name="operations-figures"),
    path("letters/replay/", views.replay, name="operations-replay"),
    path("letters/discard/", views.discard, name="operations-discard"),
    path("wakes/cancel/", views.cancel, name="operations-cancel"),
    *(
        path(f"{section}/", views.show, {"section": section}, name=f"operations-{section}")
        for section in views.LABELS
    ),
]

urlpatterns = [
    path("operations/", include(of_operations)),
]
