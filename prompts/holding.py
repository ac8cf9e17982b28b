"""Which agents are given another text by a change of prompts, and what keeps it from them.

Whoever judges texts stands on a floor above, and says at start-up how one asks (`judge_with`). Labels that
would follow a source by themselves are `pulling`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.utils.translation import gettext as _
from pydantic import ValidationError

from accounts.models import Organisation, User
from agents.models import Agent, AgentVersion
from audit.models import AuditEntry
from audit.reasons import reason_in
from audit.record import about_setting
from harness.agentconfig import PromptUse
from harness.errors import Conflict, Forbidden, NotFound

from .choosing import version_for
from .models import PromptVersion

Judge = Callable[[AgentVersion, PromptVersion], str]
"""Why the agent's version may not be given that text in place of the one it has, in words; empty: it may."""

_judges: list[Judge] = []


def judge_with(judge: Judge) -> None:
    """Have it asked from now on; once, however often it is said."""
    if judge not in _judges:
        _judges.append(judge)


@dataclass(frozen=True, slots=True)
class _Given:
    """What one agent has by one of the names that it uses."""

    agent_version: AgentVersion
    wanted: str
    text: PromptVersion


@contextmanager
def judged(
    actor: User, organisation: Organisation | None, name: str, reason: str
) -> Iterator[None]:
    """A change of the prompt of that name, by whatever way agents come to another text: a label that moves, a
    newest version, a prompt that stands before the server's of its name.

    Raises Conflict, undoing it, where a text is not let through and no reason is given; Forbidden where a
    service account gives one; Invalid for too long a one. Needs a transaction that holds the prompt.
    """
    reason = reason_in(reason)
    before = _given(organisation, name)
    yield
    after = _given(organisation, name) if before else {}
    for key, each in after.items():
        had = before.get(key)
        if had is None or had.text.pk == each.text.pk or not (why := _objection(each)):
            continue
        agent = each.agent_version.agent
        if not reason:
            raise Conflict(
                f"{agent.name}: {why}",
                hint=_("Have its suites try this version of the prompt, or give a reason."),
            )
        if actor.is_service:
            raise Forbidden(
                _("Only a person lets a text pass whose suites are not green."),
                hint=_("Have one do it, with a reason."),
            )
        about_setting(
            AuditEntry.Action.PROMPT_LABEL_MOVED,
            actor=actor,
            organisation_id=organisation.pk if organisation else None,
            name=name,
            label=each.wanted,
            before=had.text.number,
            version=each.text.number,
            agent=agent.uid,
            reason=reason,
        )


def _objection(given: _Given) -> str:
    said = (judge(given.agent_version, given.text) for judge in _judges)
    return next(filter(None, said), "")


def _given(organisation: Organisation | None, name: str) -> dict[tuple[int, str], _Given]:
    """By agent's version and the name it uses, of those in use and of canaries. Of an organisation's prompts
    the organisation's own agents: what it lets the server's say is no release of theirs."""
    rows = Agent.objects.filter(archived_at=None).select_related(
        "current", "canary", "organisation"
    )
    if organisation is not None:
        rows = rows.filter(organisation=organisation)
    found = {}
    for agent in rows.iterator():
        for version in filter(None, (agent.current, agent.canary)):
            version.agent = agent
            for use in _uses(version, name):
                with suppress(NotFound):
                    text = version_for(agent.organisation, use)
                    found[version.pk, use.version] = _Given(version, use.version, text)
    return found


def _uses(version: AgentVersion, name: str) -> list[PromptUse]:
    try:
        return [use for use in version.config.prompts if use.name == name]
    except ValidationError:  # its runs say so
        return []
