"""What evaluations do by themselves: trials begin as others end, are judged, and come to their result.

Rows say what is due, so that whatever is lost (a hint, a process) is found by the sweep and done once:
every step holds the row that says that it is to be done. Who may start one is `actions.evaluations`', what
becomes of one that is stopped `stopping`'s.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.models import Agent, AgentVersion
from conversations import logsql, removals
from conversations.actions.conversations import create_conversation
from conversations.actions.files import require_files_in
from conversations.actions.forking import copied_entries, untold
from conversations.actions.messages import stop
from conversations.broughtwords import WordsBrought
from conversations.log import append, begin_as_copy, entries_after
from conversations.models import Conversation
from conversations.provenance import TableProvenance
from conversations.wakes import wake
from harness.agentconfig import AgentConfig, Limits, SkillUse
from harness.content import Text
from harness.errors import AgentError, NotFound
from harness.events import UserMessage, load
from harness.history import Entry, History
from harness.ids import new_conversation_id
from jobs.dispatch import dispatch
from skills_app.choosing import choose
from skillsets.fixing import add
from skillsets.models import UsedSkill
from tools_app.provenance import UPLOADED
from tools_app.workspace import Workspace, remove_workspace, workspace_for

from . import contracts
from .checks import judges, judging
from .checks.facts import Facts, Verdict, facts_of
from .checks.spec import CaseSpec, JudgeCheck, PreferenceCheck, StopCheck
from .collecting import rests, spent_of
from .models import Evaluation, Judgement, Suite, Trial

logger = logging.getLogger(__name__)

LOOK = "evals.look"
START = "evals.start"
SEED = "eval-judge"
DAY = date(2026, 1, 1)
"""What judges take for the day, so that no day changes a grade."""
ANSWER = 50_000
"""Characters of an answer that are kept with its trial."""
AT_A_TIME = 200
"""Trials that one sweep looks at."""
FAULT = "A fault in this server kept it from being tried."
DELETED = "Its conversation was deleted."
OVER = ("budget_reached", "retries_exhausted")
"""Stops that say nothing of the agent."""


def start_due(evaluation_id: int) -> None:
    """Begin trials until as many are under way as may be."""
    while _start_one(evaluation_id):
        pass


def _start_one(evaluation_id: int) -> bool:
    uid = new_conversation_id()
    due = _waiting(evaluation_id).first()
    copies = due is not None and bool(due.spec.files)
    with removals.unless_begun(uid) if copies else nullcontext(), transaction.atomic():
        _hold_first(Evaluation.objects.filter(pk=evaluation_id).values("root"))
        evaluation = (
            Evaluation.objects.select_for_update(of=("self",))
            .select_related(
                "suite__organisation",
                "root",
                "agent_version__agent",
                "environment",
                "started_by",
                "skill_version__skill",
            )
            .filter(pk=evaluation_id, state=Evaluation.State.RUNNING)
            .first()
        )
        if evaluation is None:
            return False
        trials = Trial.objects.filter(evaluation=evaluation)
        trials.filter(state__in=Trial.OPEN, conversation=None).update(
            state=Trial.State.BROKEN, problem=DELETED, ended_at=timezone.now()
        )
        under_way = trials.filter(state__in=Trial.OPEN).count()
        if under_way >= evaluation.parallel:
            return False
        trial = _waiting(evaluation_id).first()
        if trial is None:
            if not under_way:
                evaluation.state, evaluation.ended_at = Evaluation.State.DONE, timezone.now()
                evaluation.save(update_fields=["state", "ended_at"])
                contracts.ended(evaluation)
            return False
        if trial != due:
            return True  # another process has begun that one
        trial.started_at = timezone.now()
        try:
            with transaction.atomic():
                _begin(evaluation, trial, uid)
                if copies:
                    removals.begun(uid)
        except DatabaseError:
            raise
        except Exception as problem:
            # One that cannot begin keeps no other from it, whatever is wrong with it.
            remove_workspace(uid)
            words = problem.message if isinstance(problem, AgentError) else FAULT
            if words == FAULT:
                logger.exception("trial %s could not begin", trial.pk)
            _end(trial, Trial.State.BROKEN, problem=words)
        return True


def _waiting(evaluation_id: int) -> QuerySet[Trial]:
    trials = Trial.objects.filter(evaluation=evaluation_id, state=Trial.State.WAITING)
    return trials.order_by("id")


def _hold_first(*keys: QuerySet[Any]) -> None:
    """Conversations are locked before an evaluation, from its root down: so does whoever deletes them."""
    locked = Conversation.objects.select_for_update(of=("self",), no_key=True)
    for key in keys:
        locked.filter(pk__in=key).first()


def _begin(evaluation: Evaluation, trial: Trial, uid: str) -> None:
    spec, owner, root = trial.spec, evaluation.started_by, evaluation.root
    if owner is None or root is None:
        raise NotFound("Whoever started this evaluation is gone, or has deleted its conversations.")
    conversation = create_conversation(
        actor=owner,
        organisation=evaluation.suite.organisation,
        agent=evaluation.agent_version.agent,
        environment=evaluation.environment,
        version=evaluation.agent_version.number,
        title=f"{trial.name} #{trial.repetition}",
        parent=root,
        overrides={name: it for name, it in evaluation.overrides.items() if name != "prompts"},
        as_child={name: it for name, it in evaluation.overrides.items() if name == "prompts"},
        told_date=spec.told_date,
        uid=uid,
    )
    if spec.beginning:
        recorded = [Entry(each.uid, load(each.event), at=each.at) for each in spec.beginning]
        copied = copied_entries(recorded)
        entries = [entry for _was, entry in copied]
        begin_as_copy(conversation, entries, actors=[None] * len(entries), origin=None)
        if source := untold(History(recorded), copied):
            append(conversation.pk, [Entry.of(WordsBrought(way="case", strangers=source))])
        conversation.refresh_from_db()
    _put_files(conversation, spec)
    first = UserMessage(content=(Text(text=spec.input[0]),), untrusted_by=spec.untrusted_by)
    others = (UserMessage(content=(Text(text=text),)) for text in spec.input[1:])
    messages = [Entry.of(message) for message in (first, *others)]
    trial.first_seq = conversation.last_seq
    append(conversation.pk, messages, actor=owner)
    _choose_skills(evaluation, conversation)
    trial.conversation, trial.state = conversation, Trial.State.RUNNING
    trial.save(update_fields=["conversation", "state", "first_seq", "started_at"])
    wake(conversation.pk)


def texts_tried(conversation: Conversation) -> list[int]:
    """The versions of prompts that a trial is told although nobody has allowed them."""
    if conversation.parent_id is None:
        return []
    rows = Evaluation.objects.filter(root=conversation.parent_id).exclude(tried_texts=[])
    return list(rows.values_list("tried_texts", flat=True).first() or ())


def _put_files(conversation: Conversation, spec: CaseSpec) -> None:
    """They count as uploaded by a person: what they say is no word of hers."""
    if not spec.files:
        return
    require_files_in(conversation.environment)
    workspace = Workspace(workspace_for(conversation.uid))
    marks = TableProvenance(conversation.pk)
    for path, file in spec.files.items():
        marks.mark_file(path, UPLOADED)
        entry = workspace.write_bytes(path, file.content)
        marks.mark_file(path, UPLOADED, entry.inode)


def _choose_skills(evaluation: Evaluation, conversation: Conversation) -> None:
    contracts.give(evaluation, conversation)
    if not evaluation.skills:
        return
    uses = tuple(SkillUse(name=name, version=v) for name, v in evaluation.skills.items())
    chosen = choose(uses, conversation.organisation, conversation.owner)
    if chosen.problems:
        raise NotFound(str(chosen.problems[0]))
    taken = UsedSkill.objects.filter(conversation=conversation)
    taken.filter(skill__in=[each.skill_id for each in chosen.versions]).delete()
    add(conversation, chosen.versions, set(evaluation.skills))


# --- a trial at rest ------------------------------------------------------------------------------


def conclude(trial_id: int, facts: Facts) -> int | None:
    """Ask judges, or say what came of it; then the evaluation, which may go on. None: nothing to do now."""
    with transaction.atomic():
        wanted = Trial.objects.filter(pk=trial_id)
        _hold_first(wanted.values("evaluation__root"), wanted.values("conversation"))
        rows = Trial.objects.select_for_update(of=("self",)).filter(
            pk=trial_id, state__in=Trial.OPEN
        )
        trial = rows.select_related(
            "evaluation__suite__organisation", "evaluation__root", "evaluation__started_by",
            "conversation__owner", "conversation__environment",
        ).first()  # fmt: skip
        if trial is None or trial.conversation is None:
            return None
        if trial.evaluation.state == Evaluation.State.STOPPED:
            return None  # `stopping` ends it, with the judges it has
        facts = _as_said_now(trial, trial.conversation, facts)
        checks = trial.spec.checks
        expected = {check.reason for check in checks if isinstance(check, StopCheck)}
        if facts.stop in OVER and facts.stop not in expected:
            _finish(trial, facts, Trial.State.BROKEN, facts.stop_words or facts.stop)
            return trial.evaluation_id
        if trial.state == Trial.State.RUNNING and _ask_judges(trial, facts):
            return None
        verdicts = _verdicts(trial, facts)
        if verdicts is None:
            return None
        known = replace(facts, verdicts=verdicts)
        outcomes = [judging.judge(place, check, known) for place, check in enumerate(checks)]
        trial.outcomes = [outcome.stored() for outcome in outcomes]
        passed = all(outcome.passed for outcome in outcomes)
        _finish(trial, facts, Trial.State.PASSED if passed else Trial.State.FAILED)
    return trial.evaluation_id


def _as_said_now(trial: Trial, conversation: Conversation, facts: Facts) -> Facts:
    """What was said may have been taken out while commands ran; from here on whoever does waits for the
    trial (`forgetting`)."""
    said = facts_of(entries_after(conversation.pk, 0), after=trial.first_seq)
    return replace(said, cost=facts.cost, files=facts.files, commands=facts.commands)


def give_up(trial_id: int) -> int | None:
    """End a trial that a fault of ours keeps from being judged; then its evaluation, which goes on."""
    with transaction.atomic():
        rows = Trial.objects.select_for_update(of=("self",))
        trial = rows.filter(pk=trial_id, state__in=Trial.OPEN).first()
        if trial is None:
            return None
        _end(trial, Trial.State.BROKEN, problem=FAULT)
    return trial.evaluation_id


def _finish(trial: Trial, facts: Facts, state: Trial.State, problem: str = "") -> None:
    spent = spent_of(trial)
    trial.answer = facts.answer[:ANSWER].replace("\0", "")
    trial.steps, trial.seconds = facts.steps, facts.seconds
    trial.cost, trial.saved = spent.cost, spent.saved
    trial.model_calls, trial.cached_calls = spent.model_calls, spent.cached_calls
    _end(trial, state, problem=problem)
    conversation = trial.conversation
    if conversation is not None and conversation.waits_for_person:
        # Nobody is to be asked about what was only tried.
        stop(actor=conversation.owner, conversation=conversation)


def _end(trial: Trial, state: Trial.State, *, problem: str) -> None:
    trial.state, trial.problem, trial.ended_at = state, problem[:500], timezone.now()
    trial.save()


def _ask_judges(trial: Trial, facts: Facts) -> bool:
    asked = False
    for place, check in enumerate(trial.spec.checks):
        if isinstance(check, JudgeCheck | PreferenceCheck):
            number = trial.evaluation.suite.judges if isinstance(check, JudgeCheck) else 2
            for each in range(number):
                text = judges.question_for(check, facts, swapped=bool(each))
                _ask(trial, place, each, text)
                asked = True
    if asked:
        trial.state = Trial.State.JUDGING
        trial.ran = {
            place: [ran.exit_code, ran.output.replace("\0", ""), ran.problem]
            for place, ran in facts.commands.items()
        }
        trial.save(update_fields=["state", "ran"])
    return asked


def _ask(trial: Trial, place: int, number: int, text: str) -> None:
    evaluation, suite = trial.evaluation, trial.evaluation.suite
    owner = evaluation.started_by
    if owner is None or trial.conversation is None:
        return
    conversation = Conversation(
        organisation=suite.organisation,
        owner=owner,
        parent=evaluation.root,
        agent_version=judge_version(),
        environment=trial.conversation.environment,
        title=f"{trial.name} #{trial.repetition}: {place + 1}",
        told_date=DAY,
        overrides=_of_judge(evaluation, suite),
    )
    logsql.insert([conversation])
    Judgement.objects.create(trial=trial, place=place, number=number, conversation=conversation)
    append(conversation.pk, [Entry.of(UserMessage(content=(Text(text=text),)))], actor=owner)
    wake(conversation.pk)


def _of_judge(evaluation: Evaluation, suite: Suite) -> dict[str, str]:
    if evaluation.scripted:
        return {"provider": "scripted", "model": "scripted"}
    named = {"provider": suite.judge_provider, "model": suite.judge_model}
    return {name: value for name, value in named.items() if value}


def judge_version() -> AgentVersion:
    """What judges are: an agent that nobody is offered, with our instructions and no tools."""
    config = AgentConfig(
        instructions=judges.INSTRUCTIONS, tools=(), limits=Limits(output_tokens=2_048)
    )
    stored = config.model_dump(mode="json")
    agent, _made = Agent.objects.get_or_create(
        seed_name=SEED, defaults={"name": "Judge of evals", "archived_at": timezone.now()}
    )
    newest = AgentVersion.objects.filter(agent=agent).order_by("-number").first()
    if newest is not None and newest.stored_config == stored:
        return newest
    number = newest.number + 1 if newest else 1
    version, _made = AgentVersion.objects.get_or_create(
        agent=agent, number=number, defaults={"stored_config": stored}
    )
    return version


def _verdicts(trial: Trial, facts: Facts) -> dict[int, tuple[Verdict, ...]] | None:
    """What the judges said, by the places of their checks; None while one of them works."""
    found: dict[int, tuple[Verdict, ...]] = {}
    checks = trial.spec.checks
    for judgement in Judgement.objects.filter(trial=trial).select_related("conversation"):
        if not rests(judgement.conversation):
            return None
        check = checks[judgement.place]
        if not isinstance(check, JudgeCheck | PreferenceCheck):
            continue
        said = facts_of(entries_after(judgement.conversation_id, 0))
        if said.stop == "end_turn":
            verdict = judges.read_verdict(check, said.answer, swapped=bool(judgement.number))
        else:
            verdict = Verdict(None, said.stop_words or said.stop)
        found[judgement.place] = (*found.get(judgement.place, ()), verdict)
    return found


# --- whatever was lost ----------------------------------------------------------------------------


def look_again() -> None:
    """Go on with every evaluation whose hints or processes were lost."""
    for pk in Evaluation.objects.going_on().values_list("pk", flat=True):
        dispatch(START, evaluation_id=pk)
        under_way = Trial.objects.filter(evaluation=pk, state__in=Trial.OPEN)
        for trial in under_way.values_list("pk", flat=True)[:AT_A_TIME]:
            dispatch(LOOK, trial_id=trial)
