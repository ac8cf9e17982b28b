"""What releases of an agent need, and releases themselves: by green suites, or by a person with a reason.

Whoever makes an agent's versions does this: its organisation's owners and administrators, or staff.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from agents.actions.agents import CHANGE, bring_into_use, is_somebodys_own, lock_agent
from agents.models import Agent, AgentVersion
from audit.models import AuditEntry
from audit.reasons import reason_in
from evals.access import held_suite
from evals.auditing import about_release
from evals.gate import Word, told, words_on
from evals.models import Canary, Release, Requirement, Suite
from harness.errors import Conflict, Forbidden, Invalid, NotFound


def require_suite(
    *,
    actor: User,
    agent: Agent,
    suite: Suite,
    repetitions: int = 1,
    at_least: int = 100,
    by_script: bool = False,
) -> Requirement:
    """From now on versions of the agent are drafts until they are released, for which this suite is green:
    each case was tried so often and `at_least` so many percent passed.

    Raises NotFound, Forbidden, Conflict for a private agent, and Invalid naming the field.
    """
    if not 1 <= repetitions <= 100:
        raise Invalid(_("It lies between 1 and 100."), field="repetitions")
    if not 0 <= at_least <= 100:
        raise Invalid(_("It lies between 0 and 100."), field="at_least")
    with transaction.atomic():
        held = lock_agent(actor, agent, CHANGE)
        needed = held_suite(actor, suite)
        if held.private:
            raise Conflict(_("A private agent is nobody else's matter."), hint=_("Share it first."))
        requirement, _made = Requirement.objects.update_or_create(
            agent=held,
            suite=needed,
            defaults={
                "repetitions": repetitions,
                "at_least": at_least,
                "by_script": by_script,
            },
        )
        about_release(
            AuditEntry.Action.RELEASE_RULED,
            actor,
            held,
            suite=needed.uid,
            repetitions=repetitions,
            at_least=at_least,
        )
    return requirement


def need_no_more(*, actor: User, requirement: Requirement) -> None:
    """Raises NotFound, Forbidden."""
    with transaction.atomic():
        held = lock_agent(actor, requirement.agent, CHANGE)
        Requirement.objects.filter(pk=requirement.pk).delete()
        about_release(AuditEntry.Action.RELEASE_RULED, actor, held, no_more=requirement.suite.uid)


def release_version(
    *, actor: User, agent: Agent, version: AgentVersion, reason: str = ""
) -> Release:
    """Have new conversations begin with this version. Where a suite is not green it takes a person and a
    reason, which stay with the release.

    Raises NotFound, Forbidden for a service account that would let one pass, Conflict, naming the suites
    and the cases that do worse, where there is no reason, and for what is in use already.
    """
    with transaction.atomic():
        held, found = held_version(actor, agent, version)
        words, reason = passed(actor, found, reason)
        return _release(actor, held, found, reason, words=words)


def held_version(actor: User, agent: Agent, version: AgentVersion) -> tuple[Agent, AgentVersion]:
    """The rows as they are now, the agent's locked, of a version that may come into use by a release. Needs a
    transaction. NotFound, Forbidden, Conflict for one in use and for a member's own agent."""
    held = lock_agent(actor, agent, CHANGE)
    if is_somebodys_own(held):
        raise Conflict(
            _("%(agent)s is a member's own agent.") % {"agent": held.name},
            hint=_("A review releases its versions."),
        )
    found = AgentVersion.objects.filter(agent=held, pk=version.pk).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    if held.current_id == found.pk:
        raise Conflict(_("This version is in use."))
    found.agent = held
    return held, found


def passed(actor: User, version: AgentVersion, reason: str) -> tuple[list[Word], str]:
    """What the gate says of a version that it lets pass, and the reason, where that took one. Raises Conflict
    naming what is not green where none is given, Forbidden for a service account that gives one, and Invalid
    for too long a one."""
    reason = reason_in(reason)
    words = words_on(version)
    missing = [word for word in words if not word.green]
    if missing and not reason:
        raise Conflict(told(missing), hint=_("Mend it and try again, or release it with a reason."))
    if missing and actor.is_service:
        raise Forbidden(
            _("Only a person lets a version pass whose suites are not green."),
            hint=_("Have one release it, with a reason."),
        )
    return words, reason if missing else ""


def roll_back(*, actor: User, agent: Agent) -> Release:
    """Bring back what the last release replaced. Raises NotFound, Forbidden, and Conflict where there is
    nothing to go back to."""
    with transaction.atomic():
        held = lock_agent(actor, agent, CHANGE)
        last = (
            Release.objects.filter(agent=held, version=held.current, rolled_back=False)
            .select_related("replaced")
            .first()
        )
        if last is None or last.replaced is None:
            raise Conflict(
                _("The version in use replaced none by a release."),
                hint=_("Restore an earlier version, and release it."),
            )
        return _release(actor, held, last.replaced, "", rolled_back=True)


def _release(
    actor: User,
    agent: Agent,
    version: AgentVersion,
    reason: str,
    *,
    words: Sequence[Word] = (),
    rolled_back: bool = False,
) -> Release:
    said = [word.stored() for word in words]
    release = Release.objects.create(
        agent=agent,
        version=version,
        replaced=agent.current,
        reason=reason,
        report=said,
        rolled_back=rolled_back,
        released_by=actor,
    )
    before = agent.current.number if agent.current else 0
    was_canary = agent.canary_id == version.pk
    end_canary(actor, agent, Canary.End.PROMOTED if was_canary else Canary.End.REPLACED)
    bring_into_use(agent, version)
    action = AuditEntry.Action
    about_release(
        action.VERSION_ROLLED_BACK if rolled_back else action.VERSION_RELEASED,
        actor,
        agent,
        version=version.number,
        replaced=before,
        reason=reason,
        not_green=[word["suite"] for word in said if not word["green"]],
        was_canary=was_canary,
    )
    return release


def end_canary(actor: User, agent: Agent, end: Canary.End) -> None:
    """Note how the agent's canary ended, if it has one; what becomes of the agent is the caller's."""
    Canary.objects.filter(agent=agent, ended_as="").update(
        ended_as=end, ended_by=actor, ended_at=timezone.now()
    )
