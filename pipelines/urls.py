"""The addresses of the pages of pipelines."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import definitions, runs

app_name = "pipelines"

of_pipeline = [
    path("", definitions.show_pipeline, name="pipeline"),
    path("change/", definitions.change, name="change"),
    path("archive/", definitions.archive, name="archive"),
    path("export/", definitions.export, name="export"),
    path("versions/<int:number>/", definitions.show_version, name="version"),
]

of_run = [
    path("", runs.show_run, name="run"),
    path("now/", runs.now, name="run-now"),
    path("stop/", runs.stop, name="run-stop"),
    path("continue/", runs.go_on, name="run-continue"),
    path("decide/", runs.decide, name="run-decide"),
    path("delete/", runs.delete, name="run-delete"),
]

urlpatterns = [
    path("pipelines/", definitions.show_pipelines, name="pipelines"),
    path("pipelines/waiting/", runs.show_waiting, name="waiting"),
    path("pipelines/runs/<id:uid>/", include(of_run)),
    path("pipelines/<id:uid>/", include(of_pipeline)),
]
