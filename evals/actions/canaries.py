"""A canary: a newer version of an agent that a share of new conversations begins with, until somebody
promotes it or rolls it back.

It passes the gate as a release does (`actions.releases`), and once more when it is promoted. Who begins
with it says the agent (`Agent.drawn_for`).
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agents.actions.agents import CHANGE, give_share, lock_agent
from agents.models import Agent, AgentVersion
from audit.models import AuditEntry
from evals.actions.releases import end_canary, held_version, passed, release_version
from evals.auditing import about_release
from evals.gate import words_on
from evals.models import Canary, Release
from harness.errors import Conflict, Invalid

MOST_SHARE = 50
"""Percent. What more than half begins with is in use, and takes a release."""


def set_canary(
    *, actor: User, agent: Agent, version: AgentVersion, share: int, reason: str = ""
) -> Canary:
    """Have `share` percent of new conversations begin with this version, or another share of them where it is
    the canary already. Where a suite is not green it takes a person and a reason.

    Raises as `release_version`; Invalid for a share that is none, Conflict for a version that is older
    than the one in use, and while another one is the canary.
    """
    if not 1 <= share <= MOST_SHARE:
        raise Invalid(
            _("It lies between 1 and %(most)d.") % {"most": MOST_SHARE},
            field="share",
            hint=_("To give it to all, release it."),
        )
    with transaction.atomic():
        held, found = held_version(actor, agent, version)
        if held.current is None or found.number < held.current.number:
            raise Conflict(
                _("Version %(number)d is older than the one in use.") % {"number": found.number},
                hint=_("Restore it: that makes a new version."),
            )
        if held.canary_id not in {None, found.pk}:
            raise Conflict(
                _("Another version is the canary."), hint=_("Promote it or roll it back first.")
            )
        going_on = Canary.objects.filter(agent=held, ended_as="").first()
        words, let_pass = passed(actor, found, reason or _reason_so_far(going_on, found))
        said = {
            "share": share,
            "reason": let_pass,
            "report": [word.stored() for word in words],
        }
        if going_on is None:
            going_on = Canary(agent=held, version=found, against=held.current, started_by=actor)
        for name, value in said.items():
            setattr(going_on, name, value)
        going_on.save()
        give_share(held, found, share)
        about_release(
            AuditEntry.Action.CANARY_SET,
            actor,
            held,
            version=found.number,
            share=share,
            reason=let_pass,
            not_green=[word.suite for word in words if not word.green],
        )
    return going_on


def promote_canary(
    *, actor: User, agent: Agent, number: int | None = None, reason: str = ""
) -> Release:
    """Have all new conversations begin with it. `number` is the version whose figures were looked at. Raises
    as `release_version`, and Conflict without one or where another one is the canary by now."""
    with transaction.atomic():
        held = lock_agent(actor, agent, CHANGE)
        version = _canary_of(held)
        if number is not None and version.number != number:
            raise Conflict(
                _("Another version is the canary."), hint=_("Look at what came of it first.")
            )
        return release_version(actor=actor, agent=held, version=version, reason=reason)


def roll_back_canary(*, actor: User, agent: Agent) -> Agent:
    """Have no new conversation begin with it; those that did keep it. Raises NotFound, Forbidden, and
    Conflict without one."""
    with transaction.atomic():
        held = lock_agent(actor, agent, CHANGE)
        version = _canary_of(held)
        end_canary(actor, held, Canary.End.ROLLED_BACK)
        give_share(held, None, 0)
        about_release(AuditEntry.Action.CANARY_ROLLED_BACK, actor, held, version=version.number)
    return held


def _reason_so_far(canary: Canary | None, version: AgentVersion) -> str:
    """Why it was let pass, as long as no suite stands against it that did not when that was said."""
    if canary is None:
        return ""
    known = {word["suite"] for word in canary.report if not word["green"]}
    against = {word.suite for word in words_on(version) if not word.green}
    return canary.reason if against <= known else ""


def _canary_of(agent: Agent) -> AgentVersion:
    if agent.canary is None:
        raise Conflict(
            _("This agent has no canary."), hint=_("Give a newer version a share first.")
        )
    return agent.canary
