"""The addresses of the library of skills."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import library, packages, sources, trialruns, versions, wellknown, writing

app_name = "skills"

of_skill = [
    path("", library.show_skill, name="skill"),
    path("edit/", writing.edit, name="edit"),
    path("stop/", versions.stop, name="stop"),
    path("revive/", versions.revive, name="revive"),
    path("delete/", versions.delete, name="delete"),
    path("channels/", versions.move, name="move"),
    path("promotion/", versions.promotion, name="promotion"),
    path("versions/<version:label>/", versions.show_version, name="version"),
    path("versions/<version:label>/download/", versions.download, name="download"),
    path("versions/<version:label>/ask/", versions.ask, name="ask"),
    path("versions/<version:label>/take-back/", versions.back, name="take-back"),
    path("versions/<version:label>/decide/", versions.decide, name="decide"),
    path("versions/<version:label>/trial/", trialruns.trial, name="trial"),
    path("versions/<version:label>/packages/", packages.packages, name="packages"),
    path("versions/<version:label>/deprecate/", versions.deprecate, name="deprecate"),
    path("versions/<version:label>/withdraw/", versions.withdraw, name="withdraw"),
]

of_source = [
    path("", sources.show_source, name="source"),
    path("look/", sources.look, name="source-look"),
    path("commit/", sources.move, name="source-move"),
    path("remove/", sources.remove, name="source-remove"),
    path("offers/<int:offer_id>/", sources.install, name="source-install"),
]

urlpatterns = [
    path("skills/", library.show_library, name="library"),
    path("skills/new/", writing.new, name="new"),
    path("skills/reviews/", versions.show_reviews, name="reviews"),
    path("skills/sources/", sources.show_sources, name="sources"),
    path("skills/sources/<id:uid>/", include(of_source)),
    path("skills/<id:uid>/", include(of_skill)),
    path(".well-known/agent-skills/index.json", wellknown.index, name="index"),
    path(".well-known/agent-skills/<slug:digest>.zip", wellknown.archive, name="archive"),
]
