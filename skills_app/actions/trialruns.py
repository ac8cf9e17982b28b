"""Trial runs of versions: who begins one, what is kept of it. How one is carried out is `trialrun`'s part."""

from __future__ import annotations

from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from harness.errors import AgentError, Conflict, Forbidden, Invalid, LimitReached
from jobs.dispatch import dispatch
from skills_app.access import held_skill, manages, may_write, version_of
from skills_app.choosing import with_required
from skills_app.files import files_of, folder_of
from skills_app.models import SkillTrialRun, SkillVersion
from skills_app.packages import place_of
from skills_app.trialrun.planning import Plan, plan_trial_run
from skills_app.trialrun.report import Report

JOB = "skills_app.trial_run"
KEPT = 5
"""Of a version."""
MOST_AT_ONCE = 2
"""That one person has under way."""
State = SkillTrialRun.State


def begin_trial_run(*, actor: User, version: SkillVersion) -> SkillTrialRun:
    """Have the version's cases and scripts run in a sandbox that is watched.

    Raises NotFound, Forbidden for who neither writes nor manages the skill, Invalid for one with nothing that
    runs, Conflict while one is under way, and LimitReached.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        held = held_skill(actor, version.skill)
        found = version_of(actor, version, held)
        if not (manages(actor, held) or may_write(actor, held)):
            raise Forbidden(_("Only who writes or manages this skill tries it."))
        if not plan_trial_run(folder_of(found)).courses:
            raise Invalid(
                _("There is nothing in it that runs."),
                field="version",
                hint=_("Scripts run, and commands and tools of its cases."),
            )
        since = timezone.now() - SkillTrialRun.BROKEN_AFTER
        busy = SkillTrialRun.objects.filter(state=State.RUNNING, started_at__gte=since)
        if busy.filter(version=found).exists():
            raise Conflict(_("A trial run of it is under way."), hint=_("Wait for its end."))
        if busy.filter(started_by=actor).count() >= MOST_AT_ONCE:
            raise LimitReached(
                _("You have %(most)d trial runs under way.") % {"most": MOST_AT_ONCE},
                hint=_("Wait until one has ended."),
            )
        kept = found.trial_runs.values_list("pk", flat=True)[: KEPT - 1]
        found.trial_runs.exclude(pk__in=list(kept)).delete()
        made = SkillTrialRun.objects.create(version=found, started_by=actor)
        dispatch(JOB, run_id=made.pk)
    return made


def trial_runs_of(reader: User, version: SkillVersion) -> models.QuerySet[SkillTrialRun]:
    """What is kept of this version, newest first: for who may begin one, nothing for others."""
    if not (manages(reader, version.skill) or may_write(reader, version.skill)):
        return SkillTrialRun.objects.none()
    return SkillTrialRun.objects.filter(version=version).order_by("-pk")


def plan_of(run_id: int) -> Plan | None:
    """What is to be done; None: it was ended, or is gone. Raises Conflict where the version's files are not
    what was stored, or what it requires cannot be had."""
    run = SkillTrialRun.objects.select_related("version__skill").filter(pk=run_id).first()
    if run is None or run.state != State.RUNNING:
        return None
    version = run.version
    required = with_required(version, version.skill.organisation, version.skill.owner)
    beside = {each.skill.name: files_of(each) for each in required if each.pk != version.pk}
    needed = {each.skill.name: place_of(each) for each in (*required, version)}
    packages = {name: place for name, place in needed.items() if place is not None}
    return plan_trial_run(folder_of(version), beside, packages)


def end_trial_run(run_id: int, report: Report) -> None:
    _end(run_id, state=State.DONE, report=report.model_dump(mode="json"))


def fail_trial_run(run_id: int, problem: AgentError | None) -> None:
    """None: by a fault of ours."""
    words = problem.words if problem else _("It broke off.")
    _end(run_id, state=State.FAILED, problem=words[:500])


def _end(run_id: int, **said: object) -> None:
    running = SkillTrialRun.objects.filter(pk=run_id, state=State.RUNNING)
    running.update(ended_at=timezone.now(), **said)
