"""The addresses of the pages of agents."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import own, reviews

app_name = "agents"

of_reviews = [
    path("", reviews.show_reviews, name="reviews"),
    path("<id:uid>/", reviews.show_review, name="review"),
    path("<id:uid>/withdraw/", reviews.withdraw, name="review-withdraw"),
]

of_agent = [
    path("", own.show_agent, name="agent"),
    path("duplicate/", own.duplicate, name="agent-duplicate"),
    path("archive/", own.archive, name="agent-archive"),
    path("share/", own.share, name="agent-share"),
    path("versions/", own.show_versions, name="agent-versions"),
    path("restore/", own.restore, name="agent-restore"),
]

urlpatterns = [
    path("agents/", own.show_agents, name="agents"),
    path("agents/new/", own.new_agent, name="agent-new"),
    path("agents/reviews/", include(of_reviews)),
    path("agents/<id:uid>/", include(of_agent)),
]
