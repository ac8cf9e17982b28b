"""The addresses of the pages of evals."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import canaries, cases, evaluations, releases, skills, suites

app_name = "evals"

of_suite = [
    path("", suites.show_suite, name="suite"),
    path("change/", suites.change, name="suite-change"),
    path("delete/", suites.delete, name="suite-delete"),
    path("export/", suites.export, name="suite-export"),
    path("cases/new/", cases.new, name="case-new"),
    path("cases/<id:case_uid>/", cases.change, name="case"),
    path("cases/<id:case_uid>/remove/", cases.remove, name="case-remove"),
]

of_evaluation = [
    path("", evaluations.show, name="evaluation"),
    path("stop/", evaluations.stop, name="evaluation-stop"),
    path("grade/", evaluations.grade, name="evaluation-grade"),
    path("compare/", evaluations.show_comparison, name="comparison"),
    path("junit/", evaluations.junit, name="evaluation-junit"),
    path("results/", evaluations.results, name="evaluation-results"),
]

of_agent = [
    path("", releases.show, name="releases"),
    path("need-less/", releases.need_less, name="release-need-less"),
    path("release/", releases.release, name="release"),
    path("roll-back/", releases.go_back, name="roll-back"),
    path("canary/", canaries.share, name="canary"),
    path("canary/promote/", canaries.promote, name="canary-promote"),
    path("canary/roll-back/", canaries.go_back, name="canary-roll-back"),
]

urlpatterns = [
    path("evals/", suites.show_suites, name="suites"),
    path("evals/import/", suites.import_text, name="import"),
    path("evals/suites/<id:uid>/", include(of_suite)),
    path("evals/runs/<id:uid>/", include(of_evaluation)),
    path("evals/agents/<id:uid>/", include(of_agent)),
    path("evals/skills/<id:uid>/", skills.try_skill, name="skill"),
    path("c/<id:uid>/case/", cases.make, name="make"),
]
