"""The addresses of the pages of approvals and of the rules for tools."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id`

from .views import approvals, rules, simulation

app_name = "approvals"

of_approvals = [
    path("", approvals.show_queue, name="approvals"),
    path("mine/", approvals.show_queue, {"view": "mine"}, name="approvals-mine"),
    path("decided/", approvals.show_queue, {"view": "decided"}, name="approvals-decided"),
    path("live/", approvals.live, name="approvals-live"),
    path("badge/", approvals.badge, name="approvals-badge"),
    path("decide/", approvals.decide_many, name="approvals-decide"),
    path("<id:uid>/assign/", approvals.assign, name="approval-assign"),
    path("rules/", rules.show_rules, name="rules"),
    path("rules/add/", rules.add_rule, name="rule-add"),
    path("rules/<id:uid>/revoke/", rules.revoke_rule, name="rule-revoke"),
    path("simulate/", simulation.simulate, name="simulate"),
    path("calls/<id:call_uid>/longer/", approvals.longer, name="call-longer"),
    path("calls/<id:call_uid>/", approvals.show_of_call, name="call-approval"),
    path("<id:uid>/", approvals.show_approval, name="approval"),
    path("<id:uid>/steps/", approvals.show_steps, name="approval-steps"),
    path("<id:uid>/decide/", approvals.decide, name="approval-decide"),
]

urlpatterns = [
    path("approvals/", include(of_approvals)),
]
