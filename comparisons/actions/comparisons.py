"""Comparisons are started, stopped, let go on and deleted by people; what happens in between is
`comparisons.running`'s."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.api.authentication import Caller
from accounts.models import Organisation, User
from agents.models import Agent, Environment
from comparisons.access import held_comparison
from comparisons.judging import judge_config
from comparisons.models import Comparison, Entry
from comparisons.running import END, LOOK, entries_of
from conversations.actions.conversations import create_conversation, delete_conversation
from conversations.actions.messages import post_message, request_retry
from conversations.actions.own import own_even_ended
from conversations.defaults import default_environment
from conversations.kits import DEMO, choose_provider
from conversations.models import Conversation
from harness.errors import Conflict, Invalid
from jobs.dispatch import dispatch
from pipelines.actions.runs import checked_question, continue_run, start_run
from pipelines.models import Pipeline
from programs.actions.sessions import cap_session

FEWEST, MOST = 2, 4
"""That answer one question."""


def start_comparison(
    *,
    actor: User,
    organisation: Organisation,
    question: str,
    pipelines: Sequence[Pipeline] = (),
    agents: Sequence[Agent] = (),
    environment: Environment | None = None,
    limit: int | None = None,
    scripted: bool = False,
    judged: bool = True,
    judge_provider: str = "",
    judge_model: str = "",
    caller: Caller | None = None,
) -> Comparison:
    """Put one question to these pipelines, each in its newest version, and to these agents. `limit` caps all
    of it, in hundred-millionths of a US dollar; `scripted` has the pipelines play their scripts. `judged`: a
    model says how good each answer is, the named one or the first for which the actor has a key. `caller`:
    the token that asks, as for `start_run`.

    Raises Invalid for too few or too many that answer, for one named twice, for scripts with a limit and
    where no model could judge, and what `start_run` and `create_conversation` raise. Then nothing has begun.
    """
    question = checked_question(question)
    named = [*pipelines, *agents]
    if not FEWEST <= len(named) <= MOST:
        raise Invalid(
            _("Between %(fewest)d and %(most)d are compared.") % {"fewest": FEWEST, "most": MOST},
            field="pipelines",
            hint=_("Choose pipelines or agents."),
        )
    if len({(type(each), each.pk) for each in named}) < len(named):
        raise Invalid(
            _("One of them is named twice."), field="pipelines", hint=_("Name each one once.")
        )
    if scripted and limit is not None:
        raise Invalid(
            _("Scripts have no price, so that a limit would stop them."),
            field="limit",
            hint=_("Leave out the limit, or the scripts."),
        )
    with transaction.atomic():
        root = _root(actor, organisation, pipelines, agents, environment)
        if limit is not None:
            cap_session(actor=actor, conversation=root, limit=limit, begun_here=True)
        comparison = Comparison.objects.create(
            root=root,
            question=question,
            judged=judged,
            judge_provider=judge_provider.strip()[:50],
            judge_model=judge_model.strip()[:100],
        )
        if judged:
            _require_judge(actor, organisation, comparison)
        for place, pipeline in enumerate(pipelines, 1):
            run = start_run(
                actor=actor,
                pipeline=pipeline,
                question=question,
                environment=root.environment,
                scripted=scripted,
                parent=root,
                caller=caller,
            )
            name = f"{pipeline.name} {run.version.number}"
            Entry.objects.create(comparison=comparison, place=place, name=name, run=run)
        for place, agent in enumerate(agents, 1 + len(pipelines)):
            _ask_agent(comparison, place, agent)
        dispatch(LOOK, comparison_id=comparison.pk)
    return comparison


def stop_comparison(*, actor: User, comparison: Comparison) -> Comparison:
    """End what is under way and begin nothing more. Nothing happens to one that has ended. Raises NotFound,
    Forbidden."""
    with transaction.atomic():
        held = held_comparison(actor, comparison)
        if held.state == Comparison.State.RUNNING:
            held.state, held.ended_at = Comparison.State.STOPPED, timezone.now()
            held.save(update_fields=["state", "ended_at"])
            dispatch(END, comparison_id=held.pk)
    return held


def continue_comparison(
    *, actor: User, comparison: Comparison, limit: int | None = None
) -> Comparison:
    """Have what of it stopped short go on: at a limit, or because a service was away. `limit` is what all of
    it may cost from now on. Raises NotFound, Forbidden, and Conflict where nothing waits to go on."""
    with transaction.atomic():
        held = held_comparison(actor, comparison)
    # No lock of ours is held while a conversation's is awaited.
    if held.state != Comparison.State.RUNNING:
        raise Conflict(_("Nothing of this comparison waits to go on."), hint=_("Look at it again."))
    if limit is not None:
        cap_session(actor=actor, conversation=held.root, limit=limit)
    went = limit is not None
    for entry in entries_of(held):
        if not entry.is_open:
            continue
        waits = entry.judge or entry.conversation
        with suppress(Conflict):  # this one works, or the new limit had it go on already
            if waits is not None:
                if waits.has_stopped_short:
                    request_retry(actor=actor, conversation=waits)
                    went = True
            elif entry.run is not None:
                continue_run(actor=actor, run=entry.run)
                went = True
    if not went:
        raise Conflict(_("Nothing of this comparison waits to go on."), hint=_("Look at it again."))
    return held


def delete_comparison(*, actor: User, comparison: Comparison) -> None:
    """With its conversations and its runs of pipelines, for good. Raises NotFound, Forbidden, and Conflict
    while it is at work."""
    if comparison.state == Comparison.State.RUNNING:
        raise Conflict(_("This comparison is under way."), hint=_("Stop it first."))
    delete_conversation(actor=actor, conversation=own_even_ended(actor, comparison.root))


def _root(
    actor: User,
    organisation: Organisation,
    pipelines: Sequence[Pipeline],
    agents: Sequence[Agent],
    environment: Environment | None,
) -> Conversation:
    """A conversation that nobody talks in, above all that answer."""
    if agents:
        agent, number = agents[0], None
    else:
        version = pipelines[0].newest()
        first = version.pinned()[version.spec.answering]
        agent, number = first.agent, first.number
    return create_conversation(
        actor=actor,
        organisation=organisation,
        agent=agent,
        version=number,
        environment=environment or default_environment(actor, organisation),
        title=_("Comparison"),
        unlisted=True,
    )


def _ask_agent(comparison: Comparison, place: int, agent: Agent) -> None:
    root = comparison.root
    conversation = create_conversation(
        actor=root.owner,
        organisation=root.organisation,
        agent=agent,
        environment=root.environment,
        title=_("Comparison: %(name)s") % {"name": agent.name},
        parent=root,
    )
    said = post_message(actor=root.owner, conversation=conversation, text=comparison.question)
    Entry.objects.create(
        comparison=comparison,
        place=place,
        name=f"{agent.name} v{conversation.agent_version.number}",
        conversation=conversation,
        asked_event=said.uid,
    )


def _require_judge(actor: User, organisation: Organisation, comparison: Comparison) -> None:
    config = judge_config(comparison.judge_provider, comparison.judge_model)
    choice = choose_provider(config, actor, organisation)
    if choice.problem is not None:
        raise Invalid(choice.problem.message, field="judge_model", hint=choice.problem.hint)
    if choice.provider == DEMO:
        raise Invalid(
            _("There is no model that could judge the answers."),
            field="judged",
            hint=_("Store a key of a service, or compare without a judge."),
        )
