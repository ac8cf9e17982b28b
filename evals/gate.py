"""The gate: whether a version of an agent may come into use, by the suites that its releases need.

A suite is green for a version when all its cases, as they are now, were tried with it as the version says,
often enough passed, and none does worse than with the version in use. Who lets one pass all the same is
`actions.releases`'.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from agents.models import Agent, AgentVersion

from .actions.evaluations import SCRIPTED, digest_of_suite
from .models import Evaluation, Release, Requirement
from .reports import compare, summary

NAMED = 10
"""Cases that are named in one sentence."""


@dataclass(frozen=True, slots=True)
class Word:
    """What the gate says of one suite."""

    suite: str
    suite_uid: str
    green: bool
    why: str = ""
    regressions: tuple[str, ...] = ()
    """Cases that do worse than with the version in use, each with what did not pass."""
    evaluation_uid: str = ""
    compared_with_uid: str = ""

    def stored(self) -> dict[str, Any]:
        return asdict(self)


def words_on(version: AgentVersion) -> list[Word]:
    """One for each suite that releases of its agent need."""
    needed = Requirement.objects.filter(agent=version.agent_id).select_related("suite")
    return [_word(requirement, version) for requirement in needed]


def holds(agent: Agent) -> bool:
    """While a canary goes on as well: a change that came into use would end it unseen."""
    return agent.canary_id is not None or Requirement.objects.filter(agent=agent).exists()


def objection(version: AgentVersion) -> str:
    """Why it may not come into use, naming suites and cases; empty: all is green, or somebody let it pass."""
    if Release.objects.filter(version=version).exists():
        return ""
    return told([word for word in words_on(version) if not word.green])


def told(words: list[Word]) -> str:
    parts = []
    for word in words:
        worse = "; ".join(word.regressions[:NAMED])
        parts.append(f"“{word.suite}”: {word.why}" + (f" ({worse})" if worse else ""))
    return " ".join(parts)


def _word(requirement: Requirement, version: AgentVersion) -> Word:
    suite = requirement.suite
    tried = _latest(requirement, version)
    if tried is None:
        why = _("It was not tried with version %(number)d as its cases are now.")
        return Word(suite.name, suite.uid, green=False, why=why % {"number": version.number})
    told_of = summary(tried)
    base = None
    in_use = version.agent.current
    if in_use is not None and in_use.pk != version.pk:
        base = _latest(requirement, in_use)
    pairs = compare(base, tried, answers=False) if base is not None else []
    worse = [pair for pair in pairs if pair.change in {"regressed", "not_tried"}]
    regressions = tuple(
        f"{pair.name}: {pair.after.why[0]}" if pair.after and pair.after.why else pair.name
        for pair in worse
    )
    why = ""
    if told_of.broken:
        why = _("%(number)d tries could not be made.") % {"number": told_of.broken}
    elif regressions:
        why = _("Cases do worse than with version %(number)d.") % {
            "number": in_use.number if in_use else 0
        }
    elif told_of.percent < requirement.at_least:
        why = _("%(share)d%% of its tries passed; %(wanted)d%% are needed.") % {
            "share": told_of.percent,
            "wanted": requirement.at_least,
        }
    return Word(
        suite.name,
        suite.uid,
        green=not why,
        why=why,
        regressions=regressions,
        evaluation_uid=tried.uid,
        compared_with_uid=base.uid if base else "",
    )


def _latest(requirement: Requirement, version: AgentVersion) -> Evaluation | None:
    """The last whole evaluation of the suite as it is, with the version as it is."""
    done = Evaluation.objects.filter(
        suite=requirement.suite,
        agent_version=version,
        state=Evaluation.State.DONE,
        digest=digest_of_suite(requirement.suite),
        repetitions__gte=requirement.repetitions,
        skills={},
        skill_version=None,
    )
    done = done.filter(Q(overrides={}) | Q(scripted=True, overrides=SCRIPTED))
    if not requirement.by_script:
        done = done.filter(scripted=False)
    return done.order_by("-id").first()
