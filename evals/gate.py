"""The gate: whether a version of an agent may come into use, or be given another text by a prompt that it
names, by the suites that its releases need.

A suite is green for a version when all its cases, as they are now, were tried with it as the version says,
often enough passed, and none does worse than with the version in use. Who lets one pass all the same is
`actions.releases`', and of texts `prompts.holding`'s.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from agents.models import Agent, AgentVersion
from harness.agentconfig import PromptUse
from harness.errors import NotFound
from prompts.choosing import version_for
from prompts.models import PromptVersion

from .actions.evaluations import SCRIPTED, digest_of_suite, prompts_told
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


def words_on(version: AgentVersion, text: PromptVersion | None = None) -> list[Word]:
    """One for each suite that releases of its agent need; on the version as it is, or with this text in place
    of what it has by a prompt."""
    needed = Requirement.objects.filter(agent=version.agent_id)
    rows = needed.select_related("suite__organisation")
    return [_word(requirement, version, text) for requirement in rows]


def holds(agent: Agent) -> bool:
    """While a canary goes on as well: a change that came into use would end it unseen."""
    return agent.canary_id is not None or Requirement.objects.filter(agent=agent).exists()


def objection(version: AgentVersion) -> str:
    """Why it may not come into use, naming suites and cases; empty: all is green, or somebody let it pass."""
    if Release.objects.filter(version=version).exists():
        return ""
    return told([word for word in words_on(version) if not word.green])


def objection_to_text(version: AgentVersion, text: PromptVersion) -> str:
    """Why the agent may not be given it yet; empty: all is green."""
    return told([word for word in words_on(version, text) if not word.green])


def told(words: list[Word]) -> str:
    parts = []
    for word in words:
        worse = "; ".join(word.regressions[:NAMED])
        parts.append(f"“{word.suite}”: {word.why}" + (f" ({worse})" if worse else ""))
    return " ".join(parts)


def _word(requirement: Requirement, version: AgentVersion, text: PromptVersion | None) -> Word:
    suite = requirement.suite
    tried = _latest(requirement, version, text)
    if tried is None:
        why = _("It was not tried with version %(number)d as its cases are now.")
        number = version.number
        if text is not None:
            why = _("It was not tried with version %(number)d of the prompt as its cases are now.")
            number = text.number
        return Word(suite.name, suite.uid, green=False, why=why % {"number": number})
    told_of = summary(tried)
    base = None
    in_use = version.agent.current
    if in_use is not None and (text is not None or in_use.pk != version.pk):
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


def _latest(
    requirement: Requirement, version: AgentVersion, text: PromptVersion | None = None
) -> Evaluation | None:
    """The last whole evaluation of the suite as it is, with the version as it is, or but for that text."""
    done = Evaluation.objects.filter(
        suite=requirement.suite,
        agent_version=version,
        state=Evaluation.State.DONE,
        digest=digest_of_suite(requirement.suite),
        repetitions__gte=requirement.repetitions,
        skills={},
        skill_version=None,
    )
    if not requirement.by_script:
        done = done.filter(scripted=False)
    if text is not None:
        return _with_text(done, requirement, version, text)
    done = done.filter(Q(overrides={}) | Q(scripted=True, overrides=SCRIPTED))
    return done.order_by("-id").first()


def _with_text(
    done: QuerySet[Evaluation], requirement: Requirement, version: AgentVersion, text: PromptVersion
) -> Evaluation | None:
    """The last that put just this text in place. A number means another text where another prompt of the name
    is used, or was until this text came."""
    name, number = text.prompt.name, text.number
    use = PromptUse(name=name, version=str(number))
    try:
        used = version_for(requirement.suite.organisation, use)
    except NotFound:
        return None
    if used.pk != text.pk:
        return None
    put = {"prompts": prompts_told(version, {name: number})}
    since = done.filter(started_at__gte=text.created_at).order_by("-id")
    said = (each for each in since if each.overrides in (put, {**SCRIPTED, **put}))
    return next(said, None)
