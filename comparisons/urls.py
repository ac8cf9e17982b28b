"""The addresses of the pages of comparisons."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from . import views

app_name = "comparisons"

of_comparison = [
    path("", views.show_comparison, name="comparison"),
    path("now/", views.now, name="now"),
    path("stop/", views.stop, name="stop"),
    path("continue/", views.go_on, name="continue"),
    path("delete/", views.delete, name="delete"),
]

urlpatterns = [
    path("comparisons/", views.show_comparisons, name="comparisons"),
    path("comparisons/<id:uid>/", include(of_comparison)),
]
