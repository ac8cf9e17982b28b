"""What an endpoint may subscribe to: the public names where there is one, ours under `x.`.

A name is listed here only if something of this software announces it.
"""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

EVERYTHING = "*"
"""Subscribes to every type there is, also to those of a later release."""

TEST = "x.webhook.test"
"""What the test button sends; nobody needs to subscribe to it."""

APPROVAL_REQUESTED = "x.approval.requested"
APPROVAL_DECIDED = "x.approval.decided"
APPROVAL_EXPIRED = "x.approval.expired"

RUN_ENDED = "x.deployment_run.ended"

BRIEF_READY = "x.brief.ready"

NOTICE_WAITING = "x.notice.waiting"
NOTICE_ENDED = "x.notice.ended"

GROUPS: tuple[tuple[Promise, tuple[tuple[str, Promise], ...]], ...] = (
    (
        _("Sessions"),
        (
            ("session.created", _("A conversation was begun.")),
            ("session.running", _("It started to work.")),
            ("session.idled", _("It came to rest, for whatever reason.")),
            ("session.requires_action", _("It rests until somebody answers.")),
            (
                "session.budget_reached",
                _("It rests because a budget has no room for its next call."),
            ),
            ("session.outcome_evaluation_ended", _("Work on an outcome was judged.")),
            ("session.updated", _("Its title or a switch of it changed.")),
            ("session.archived", _("It was put out of the list.")),
            ("session.deleted", _("It was deleted for good.")),
        ),
    ),
    (
        _("Status of sessions"),
        (
            ("session.status_run_started", _("As session.running, under its older name.")),
            ("session.status_idled", _("As session.idled, under its older name.")),
            ("session.status_rescheduled", _("A failed model call is tried again later.")),
            ("session.status_terminated", _("It has ended and takes no more messages.")),
            ("session.thread_created", _("It started a conversation of its own.")),
            ("session.thread_idled", _("A conversation that it started came to rest.")),
            ("session.thread_terminated", _("A conversation that it started has ended.")),
        ),
    ),
    (
        _("Approvals"),
        (
            (APPROVAL_REQUESTED, _("A call waits for somebody's answer.")),
            (APPROVAL_DECIDED, _("Somebody answered.")),
            (APPROVAL_EXPIRED, _("Nobody answered in time, so the call was denied.")),
        ),
    ),
    (
        _("Agents and environments"),
        (
            ("agent.created", _("An agent was made.")),
            ("agent.updated", _("An agent has a new version, name or description.")),
            ("agent.archived", _("An agent is no longer offered.")),
            ("agent.deleted", _("An agent was deleted.")),
            ("environment.created", _("An environment was made.")),
            ("environment.updated", _("An environment was changed.")),
            ("environment.archived", _("An environment is no longer offered.")),
            ("environment.deleted", _("An environment was deleted.")),
        ),
    ),
    (
        _("Deployments (schedules)"),
        (
            ("deployment.created", _("A schedule was made.")),
            ("deployment.updated", _("A schedule was changed.")),
            ("deployment.paused", _("A schedule was paused, by somebody or by itself.")),
            ("deployment.unpaused", _("A schedule goes on.")),
            ("deployment.archived", _("A schedule was put away for good.")),
            ("deployment.deleted", _("A schedule was deleted.")),
            ("deployment_run.started", _("A run of a schedule is about to begin.")),
            ("deployment_run.succeeded", _("Its session was created and is at work.")),
            ("deployment_run.failed", _("Its session could not be created.")),
            (RUN_ENDED, _("A run of a schedule came to its end, well or not.")),
            (BRIEF_READY, _("The brief of a member who asked for this is there.")),
        ),
    ),
    (
        _("What members are told of"),
        (
            (NOTICE_WAITING, _("Something waits for a member who asked to be told so.")),
            (NOTICE_ENDED, _("A conversation of such a member has ended.")),
        ),
    ),
    (
        _("Vaults"),
        (
            ("vault.created", _("A member made a vault.")),
            ("vault.archived", _("A vault is closed and its secrets are gone.")),
            ("vault.deleted", _("A vault was deleted.")),
            ("vault_credential.created", _("A secret was stored in a vault.")),
            ("vault_credential.archived", _("A secret is gone; its record stays.")),
            ("vault_credential.deleted", _("A secret was deleted with its record.")),
            ("vault_credential.refresh_failed", _("No new access token could be had.")),
        ),
    ),
)

TYPES: tuple[str, ...] = tuple(name for _label, listed in GROUPS for name, _help in listed)
