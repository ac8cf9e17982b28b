"""Evaluations are started and stopped by people; what they do in between is `evals.running`'s."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from agents.models import AgentVersion, Environment
from audit.models import AuditEntry
from conversations.actions.conversations import create_conversation
from evals.access import held_evaluation, held_suite
from evals.auditing import about_suite
from evals.models import Evaluation, Suite, Trial
from evals.running import START
from evals.stopping import END
from harness.agentconfig import SKILL_NAME, PromptUse
from harness.errors import Conflict, Invalid
from jobs.dispatch import dispatch
from programs.actions.sessions import cap_session
from prompts.access import may_change
from prompts.choosing import version_for
from prompts.models import PromptVersion
from reading.digits import is_digits, number_of
from skills_app.models import SkillVersion

MOST_REPETITIONS = 100
MOST_TRIALS = 10_000
"""Of one evaluation."""
SCRIPTED = {"provider": "scripted", "model": "scripted"}


def start_evaluation(
    *,
    actor: User,
    suite: Suite,
    version: AgentVersion,
    environment: Environment,
    provider: str = "",
    model: str = "",
    skills: Mapping[str, str] | None = None,
    prompts: Mapping[str, str] | None = None,
    scripted: bool = False,
    repetitions: int = 1,
    parallel: int | None = None,
    limit: int | None = None,
    uses_cache: bool = True,
    note: str = "",
    skill_version: SkillVersion | None = None,
) -> Evaluation:
    """Try every case of the suite `repetitions` times with this version, `parallel` at once.

    `provider` and `model` stand in place of the version's, `skills` (versions by name) beside its own,
    `prompts` (versions, or labels that point to one now, by name) in place of those that it names, also one
    that waits to be allowed, for who may allow it;
    `skill_version` is the one whose own cases these are; `scripted` plays the cases' scripts. `limit` caps
    all of it, in hundred-millionths of a US dollar.
    Raises NotFound, Forbidden, Conflict for a suite without cases, Invalid naming the field, and what
    `create_conversation` and `set_budget` raise.
    """
    skills = dict(skills or {})
    most = settings.AGENTSITE_EVAL_PARALLEL
    parallel = most if parallel is None else parallel
    _check(repetitions=repetitions, parallel=parallel, most=most, skills=skills)
    overrides = {name: value for name, value in (("provider", provider), ("model", model)) if value}
    if scripted:
        overrides = dict(SCRIPTED)
    with transaction.atomic():
        held = held_suite(actor, suite)
        instead, tried = _prompts_instead(actor, version, held, prompts or {})
        cases = list(held.cases.order_by("id"))
        if not cases:
            raise Conflict(_("This suite has no cases."), hint=_("Add one first."))
        if len(cases) * repetitions > MOST_TRIALS:
            raise Invalid(
                _("These are more than %(limit)d trials.") % {"limit": MOST_TRIALS},
                field="repetitions",
                hint=_("Try each case fewer times, or split the suite."),
            )
        root = create_conversation(
            actor=actor,
            organisation=held.organisation,
            agent=version.agent,
            environment=environment,
            version=version.number,
            title=_("Evaluation of %(agent)s by %(suite)s")
            % {"agent": version.agent.name[:80], "suite": held.name[:80]},
            overrides=overrides,
            unlisted=True,
        )
        if limit is not None:
            cap_session(actor=actor, conversation=root, limit=limit, begun_here=True)
        evaluation = Evaluation.objects.create(
            suite=held,
            root=root,
            agent_version=version,
            environment=environment,
            overrides={**overrides, **instead},
            tried_texts=tried,
            skills=skills,
            skill_version=skill_version,
            scripted=scripted,
            repetitions=repetitions,
            parallel=parallel,
            limit=limit,
            uses_cache=uses_cache,
            note=" ".join(note.split())[:200],
            digest=digest_of_suite(held),
            started_by=actor,
        )
        Trial.objects.bulk_create(
            [
                Trial(
                    evaluation=evaluation,
                    case=case,
                    name=case.name,
                    stored_spec=case.stored_spec,
                    digest=case.digest,
                    source_uid=case.source_uid,
                    repetition=repetition,
                )
                for case in cases
                for repetition in range(1, repetitions + 1)
            ],
            batch_size=200,
        )
        about_suite(
            AuditEntry.Action.EVALUATION_STARTED,
            actor,
            held,
            evaluation=evaluation.uid,
            agent=version.agent.uid,
            version=version.number,
        )
        dispatch(START, evaluation_id=evaluation.pk)
    return evaluation


def digest_of_suite(suite: Suite) -> str:
    """Of all its cases as they are now."""
    digests = suite.cases.order_by("id").values_list("digest", flat=True)
    return sha256("".join(digests).encode()).hexdigest()


def stop_evaluation(*, actor: User, evaluation: Evaluation) -> Evaluation:
    """End what is under way and begin nothing more. Nothing happens to one that has ended. Raises
    NotFound, Forbidden."""
    with transaction.atomic():
        held = held_evaluation(actor, evaluation)
        if held.state == Evaluation.State.RUNNING:
            held.state, held.ended_at = Evaluation.State.STOPPED, timezone.now()
            held.save(update_fields=["state", "ended_at"])
            dispatch(END, evaluation_id=held.pk)
            about_suite(
                AuditEntry.Action.EVALUATION_STOPPED, actor, held.suite, evaluation=held.uid
            )
    return held


def _prompts_instead(
    actor: User, version: AgentVersion, suite: Suite, wanted: Mapping[str, str]
) -> tuple[dict[str, Any], list[int]]:
    """The version's prompts with these versions, by number: every trial is told the same, wherever labels
    move meanwhile. And those of them that nobody has allowed yet. Raises Invalid, NotFound."""
    if not wanted:
        return {}, []
    may_allow = may_change(actor, suite.organisation)
    uses = {use.name: use for use in version.config.prompts}
    numbers, told = {}, list[int]()
    for name, said in wanted.items():
        if name not in uses:
            named = ", ".join(sorted(uses)) or _("none")
            raise Invalid(
                _("This version of the agent names no prompt “%(name)s”.") % {"name": name[:64]},
                field="prompts",
                hint=_("It names: %(names)s.") % {"names": named},
            )
        use = uses[name].model_copy(update={"version": said})
        waiting = _waiting(suite, use) if may_allow else []
        numbers[name] = version_for(suite.organisation, use, tried=waiting).number
        told += waiting
    return {"prompts": prompts_told(version, numbers)}, told


def _waiting(suite: Suite, use: PromptUse) -> list[int]:
    """The version of that number, where it was fetched for the organisation and nobody has allowed it."""
    number = number_of(use.version) if is_digits(use.version) else None
    if number is None:
        return []
    fetched = PromptVersion.objects.filter(
        prompt__organisation=suite.organisation, prompt__name=use.name, number=number, waits=True
    )
    return list(fetched.values_list("pk", flat=True))


def prompts_told(version: AgentVersion, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    """The prompts that the version names, as its configuration has them, at these numbers by name."""
    found = []
    for use in version.config.prompts:
        wanted = str(numbers.get(use.name, use.version))
        found.append(use.model_copy(update={"version": wanted}).model_dump(mode="json"))
    return found


def _check(*, repetitions: int, parallel: int, most: int, skills: Mapping[str, str]) -> None:
    for field, value, limit in (
        ("repetitions", repetitions, MOST_REPETITIONS),
        ("parallel", parallel, most),
    ):
        if not 1 <= value <= limit:
            raise Invalid(
                _("It lies between 1 and %(limit)d.") % {"limit": limit},
                field=field,
                hint=_("Give such a number."),
            )
    for name, version in skills.items():
        if not SKILL_NAME.fullmatch(name) or not 0 < len(version) <= 50:
            raise Invalid(
                _("“%(name)s” is no skill with a version.") % {"name": name[:64]},
                field="skills",
                hint=_("Write name=version, or name=canary."),
            )
