"""The addresses of the pages of prompts."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import prompts, sources, versions

app_name = "prompts"

of_prompt = [
    path("", prompts.show_prompt, name="prompt"),
    path("label/", prompts.label, name="label"),
    path("export/", prompts.export, name="export"),
    path("delete/", prompts.delete, name="delete"),
    path("versions/<int:number>/", versions.show_version, name="version"),
]

of_source = [
    path("", sources.show_source, name="source"),
    path("ask/", sources.ask, name="source-ask"),
    path("allow/", sources.allow, name="source-allow"),
    path("remove/", sources.remove, name="source-remove"),
]

urlpatterns = [
    path("prompts/", prompts.show_prompts, name="prompts"),
    path("prompts/import/", prompts.import_text, name="import"),
    path("prompts/sources/", sources.show_sources, name="sources"),
    path("prompts/sources/<id:source_uid>/", include(of_source)),
    path("prompts/<id:uid>/", include(of_prompt)),
    path("c/<id:uid>/prompts/", versions.show_told, name="told"),
]
