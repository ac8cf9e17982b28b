"""Runs of pipelines are started, stopped, let go on and decided by people; what happens in between is
`pipelines.running`'s."""

from __future__ import annotations

from contextlib import suppress

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.api.authentication import Caller
from accounts.models import User
from agents.models import Environment
from approvals.decisions import is_looser_than_now, require_decider
from conversations.actions.conversations import create_conversation, delete_conversation, find_agent
from conversations.actions.messages import request_retry
from conversations.actions.own import own_even_ended
from conversations.defaults import default_environment
from conversations.models import Conversation
from conversations.ratelimits import count_message
from harness.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from jobs.dispatch import dispatch
from pipelines.access import held_run
from pipelines.auditing import about_decision
from pipelines.driving import missing
from pipelines.ending import tell
from pipelines.graph.spec import APPROVED, REFUSED
from pipelines.models import Pipeline, PipelineRun, PipelineVersion, StepRun
from pipelines.running import END, LOOK
from pipelines.scripting import PROVIDER
from programs.actions.sessions import cap_session
from reading.wholetext import mended

QUESTION_LIMIT = 20_000
"""Characters: most steps repeat it."""
COMMENT_LIMIT = 2_000


def start_run(
    *,
    actor: User,
    pipeline: Pipeline,
    question: str,
    number: int | None = None,
    environment: Environment | None = None,
    limit: int | None = None,
    scripted: bool = False,
    parent: Conversation | None = None,
    caller: Caller | None = None,
) -> PipelineRun:
    """Begin a run of the newest version, or the one of that number. `limit` caps all of it, in
    hundred-millionths of a US dollar; `scripted` plays the steps' scripts. Below `parent`, a conversation of
    the actor's, the budgets of that hold for it as well. `caller`: the token that asks, which must be one
    that decides where the version of a step's agent asks less than the current one.

    Raises NotFound for a pipeline or a version that is not there, Conflict for one that was put away or that
    this server lacks something for, Invalid and TooLarge for the question, Invalid for an agent that is not
    on offer to her, Forbidden, TooMany, and what `create_conversation` and `set_budget` raise.
    """
    question = checked_question(question)
    with transaction.atomic():
        version = _version(actor, pipeline, number)
        organisation = version.pipeline.organisation
        spec, pinned = version.spec, version.pinned()
        if lacks := missing(spec):
            raise Conflict(
                lacks, hint=_("Whoever runs the server installs it; docs/pipelines.md says how.")
            )
        for step in spec.steps:
            if step.approval:
                continue
            agent = pinned[step.name].agent
            find_agent(actor=actor, organisation=organisation, wanted=agent.uid, name=agent.name)
            if is_looser_than_now(pinned[step.name]):
                require_decider(caller)
            if scripted and not step.script:
                raise Invalid(
                    _("The step “%(name)s” has no script.") % {"name": step.name},
                    field="scripted",
                    hint=_("Run it with its agents, or give it one."),
                )
        count_message(actor)
        first = pinned[spec.answering]
        root = create_conversation(
            actor=actor,
            organisation=organisation,
            agent=first.agent,
            environment=environment or default_environment(actor, organisation),
            version=first.number,
            title=version.pipeline.name,
            overrides=PROVIDER if scripted else None,
            unlisted=True,
            parent=parent,
        )
        if limit is not None and not scripted:  # a script has no price, and costs nothing
            cap_session(actor=actor, conversation=root, limit=limit, begun_here=True)
        run = PipelineRun.objects.create(
            version=version, root=root, question=question, scripted=scripted
        )
        dispatch(LOOK, run_id=run.pk)
    return run


def stop_run(*, actor: User, run: PipelineRun) -> PipelineRun:
    """End what is under way and begin nothing more. Nothing happens to one that has ended. Raises NotFound,
    Forbidden."""
    with transaction.atomic():
        held = held_run(actor, run)
        if held.state == PipelineRun.State.RUNNING:
            held.state, held.ended_at = PipelineRun.State.STOPPED, timezone.now()
            held.save(update_fields=["state", "ended_at"])
            tell(held)
            dispatch(END, run_id=held.pk)
    return held


def continue_run(*, actor: User, run: PipelineRun, limit: int | None = None) -> PipelineRun:
    """Have a run go on whose step stopped short: at a limit, or because a service was away. `limit` is what
    all of it may cost from now on. What was done by then is not done again.

    Raises NotFound, Forbidden, and Conflict where nothing waits to go on.
    """
    with transaction.atomic():
        held = held_run(actor, run)
        step = held.steps.filter(state=StepRun.State.RUNNING).select_related("conversation").first()
        if held.state != PipelineRun.State.RUNNING or step is None or step.conversation is None:
            raise Conflict(
                _("Nothing of this run waits to go on."), hint=_("Look at the run again.")
            )
    # No lock of ours is held while a conversation's is awaited.
    if limit is not None:
        cap_session(actor=actor, conversation=held.root, limit=limit)
    conversation = step.conversation
    conversation.refresh_from_db()
    if not conversation.has_stopped_short:
        if limit is None:
            raise Conflict(
                _("Nothing of this run waits to go on."), hint=_("Look at the run again.")
            )
        return held
    with suppress(Conflict):  # the new limit had it go on already
        request_retry(actor=actor, conversation=conversation)
    return held


def decide_step(
    *, actor: User, run: PipelineRun, place: int, approved: bool, comment: str = ""
) -> PipelineRun:
    """Say whether a run that asks at that place goes on, with words that later steps may be told. Whoever may
    answer calls in its conversation may, if she is a person.

    Raises NotFound, Forbidden, also for a service account, TooLarge, and Conflict where nobody is asked there
    any more: a second decision changes nothing.
    """
    comment = mended(comment.replace("\0", "")).strip()
    if len(comment) > COMMENT_LIMIT:
        raise TooLarge(
            _("At most %(limit)d characters are taken.") % {"limit": COMMENT_LIMIT},
            field="comment",
            hint=_("Shorten it."),
        )
    with transaction.atomic():
        held = held_run(actor, run, deciding=True)
        if actor.is_service:
            raise Forbidden(
                _("A person is asked here; a service account does not answer for one."),
                hint=_("Share the run’s conversation with somebody who may decide there."),
            )
        step = held.steps.filter(place=place, state=StepRun.State.ASKING).first()
        if step is None or held.state != PipelineRun.State.RUNNING:
            raise Conflict(_("Nobody is asked that any more."), hint=_("Look at the run again."))
        word = APPROVED if approved else REFUSED
        step.outcome, step.comment, step.decided_by = {"word": word}, comment, actor
        step.state, step.ended_at = StepRun.State.DONE, timezone.now()
        step.save()
        about_decision(actor, held, step=step.name, place=place, decision=word)
        dispatch(LOOK, run_id=held.pk)
    return held


def delete_run(*, actor: User, run: PipelineRun) -> None:
    """With its conversations, for good. Raises NotFound, Forbidden, and Conflict while it is at work."""
    if run.state == PipelineRun.State.RUNNING:
        raise Conflict(_("This run is under way."), hint=_("Stop it first, then delete it."))
    delete_conversation(actor=actor, conversation=own_even_ended(actor, run.root))


def checked_question(question: str) -> str:
    """Without what no text may hold. Raises Invalid and TooLarge."""
    question = mended(question.replace("\0", "")).strip()
    if not question:
        raise Invalid(_("The question is empty."), field="question", hint=_("Type something."))
    if len(question) > QUESTION_LIMIT:
        raise TooLarge(
            _("The question has %(size)d characters; at most %(limit)d are taken.")
            % {"size": len(question), "limit": QUESTION_LIMIT},
            field="question",
            hint=_("Shorten it."),
        )
    return question


def _version(actor: User, pipeline: Pipeline, number: int | None) -> PipelineVersion:
    seen = Pipeline.objects.visible_to(actor).filter(pk=pipeline.pk)
    held = seen.select_related("organisation").first()
    if held is None:
        raise NotFound(_("There is no such pipeline."))
    if held.archived_at is not None:
        raise Conflict(_("This pipeline was put away."), hint=_("Choose another one."))
    versions = held.versions.order_by("-number")
    found = versions.first() if number is None else versions.filter(number=number).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    found.pipeline = held
    return found
