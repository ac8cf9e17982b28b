"""What runs of pipelines do by themselves: steps begin as others end, each at most once.

Rows say what is due (`graph.following`), so whatever is lost, a hint or a process, is found by the sweep: a
step is begun in one transaction with its conversation and its message, under the lock of its run, at a place
that a constraint gives away once. Who starts, stops and decides is `actions.runs`'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from django.db import DatabaseError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.actions.conversations import create_conversation
from conversations.actions.messages import checked_text, stop
from conversations.ancestry import ancestors
from conversations.broughtwords import bring_words
from conversations.log import append
from conversations.models import Conversation
from conversations.wakes import wake
from conversations.writers import behind
from harness.content import Text
from harness.errors import AgentError
from harness.events import UserMessage
from harness.history import Entry
from harness.ids import new_conversation_id
from jobs.dispatch import dispatch
from tools_app.workspace import remove_workspace

from .driving import driver_of, lacking, takes_a_while
from .ending import tell
from .events import CommentTold
from .graph.answers import NotUsable, outcome_of
from .graph.following import Ends, Go
from .graph.texts import steps_in
from .models import PipelineRun, StepRun
from .orchestrating import Asking, asking
from .scripting import PROVIDER
from .standing import answer_of, brought_by, last_answers, rest_of, text_for

logger = logging.getLogger(__name__)

LOOK = "pipelines.look"
END = "pipelines.end"
AT_A_TIME = 500
"""Runs that one sweep looks at."""
FAULT = "A fault in this server kept it from going on."

State = StepRun.State
_CLOSED = ("state", "problem", "ended_at", "ended_seq", "outcome", "final")


@dataclass(frozen=True, slots=True)
class Told:
    """What was found to be due behind so many steps."""

    steps: int
    due: Go | Ends


def go_on(run_id: int) -> None:
    """Do what is due of the run, as often as anybody likes: nothing where it works, waits or has ended."""
    ask = look_at(run_id)
    if ask is not None:
        look_at(run_id, ask())


def look_at(run_id: int, told: Told | None = None) -> Callable[[], Told] | None:
    """The same, but where it takes a while to know what is due: that is handed back to be asked outside of
    any transaction, and what it told is given then."""
    with transaction.atomic():
        run = _held(run_id)
        if run is None:
            return None
        steps = _steps(run)
        if steps and steps[-1].is_open and not _settle(run, steps[-1]):
            return None
        if run.state != PipelineRun.State.RUNNING:
            return None
        driver = driver_of(run.version.spec)
        if driver is None:
            return None
        done = [step.done() for step in steps]
        if not takes_a_while(run.version.spec):
            due = driver(run, done)
        elif told is None:
            return lambda: Told(len(done), driver(run, done))
        elif told.steps == len(done):
            due = told.due
        else:
            return None  # somebody else was faster
        if isinstance(due, Ends):
            _end(run, due.words)
        else:
            _begin(run, steps, due)
    return None


def give_up(run_id: int) -> None:
    """End a run that a fault of ours keeps from going on."""
    with transaction.atomic():
        run = _held(run_id)
        if run is None:
            return
        for step in _steps(run):
            if step.is_open:
                step.ended_seq = _last_seq(step.conversation)
                _close(step, State.FAILED, FAULT)
        _end(run, FAULT)


def _held(run_id: int) -> PipelineRun | None:
    """Its conversation is locked first, and before that those above: so does whoever deletes one of them or
    takes words out below. A step begins with the words that are there then, which another run of the same
    comparison may say as well."""
    roots = PipelineRun.objects.filter(pk=run_id).values("root")
    root = Conversation.objects.filter(pk__in=roots).first()
    if root is None:
        return None
    locked = Conversation.objects.select_for_update(of=("self",), no_key=True)
    for pk in reversed(ancestors(root)):
        locked.filter(pk=pk).first()
    if locked.filter(pk=root.pk).first() is None:
        return None
    held = PipelineRun.objects.select_for_update(of=("self",)).going_on().filter(pk=run_id)
    return held.select_related(
        "version__pipeline", "root__owner", "root__organisation", "root__environment"
    ).first()


def _steps(run: PipelineRun) -> list[StepRun]:
    rows = StepRun.objects.filter(run=run).order_by("place")
    steps = list(rows.select_related("conversation__agent_version__agent"))
    for step in steps:
        step.run = run
    return steps


def _settle(run: PipelineRun, step: StepRun) -> bool:
    """Write down what it came to; False while it works or waits."""
    if step.state == State.ASKING:
        return False
    conversation = step.conversation
    if conversation is None:
        step.final = True
        _close(step, State.FAILED, _("Its conversation was deleted."))
        return True
    rest = rest_of(conversation)
    if rest is None or not rest.ended:
        return False
    step.ended_seq = conversation.last_seq
    if rest.interrupted:
        _close(step, State.STOPPED)
        run.state, run.ended_at = PipelineRun.State.STOPPED, timezone.now()
        run.save(update_fields=["state", "ended_at"])
        tell(run)
        return True
    try:
        read = outcome_of(run.version.spec, step.name, answer_of(step))
    except NotUsable as problem:
        _close(step, State.FAILED, str(problem))
        return True
    step.outcome = {"word": read.word, "fields": dict(read.fields)}
    if read.calls:
        step.outcome["calls"] = [asdict(call) for call in read.calls]
    _close(step, State.DONE)
    return True


def _close(step: StepRun, state: StepRun.State, problem: str = "") -> None:
    step.state, step.problem, step.ended_at = state, problem[:500], timezone.now()
    # Its conversation may just have been deleted: what is there already does not name it again.
    step.save(update_fields=_CLOSED if step.pk is not None else None)


def _end(run: PipelineRun, words: str) -> None:
    run.state = PipelineRun.State.FAILED if words else PipelineRun.State.DONE
    run.problem, run.ended_at = words[:500], timezone.now()
    run.save(update_fields=["state", "problem", "ended_at"])
    tell(run)


def _begin(run: PipelineRun, steps: list[StepRun], due: Go) -> None:
    step = StepRun(
        run=run,
        place=len(steps) + 1,
        name=due.name,
        came_by=due.came_by,
        times=1 + sum(each.name == due.name for each in steps),
    )
    if run.version.spec.step(due.name).approval:
        step.state = State.ASKING
        step.save()
        return
    uid = new_conversation_id()
    try:
        with transaction.atomic():
            _converse(run, step, steps, uid, _asking(run, step, steps, due))
    except DatabaseError:
        raise
    except AgentError as refusal:
        remove_workspace(uid)
        step.pk, step.final, step.conversation, step.asked_event = None, True, None, ""
        _close(step, State.FAILED, refusal.message)
        _end(
            run,
            _("“%(name)s” could not begin: %(why)s") % {"name": step.name, "why": refusal.message},
        )


def _asking(run: PipelineRun, step: StepRun, steps: list[StepRun], due: Go) -> Asking:
    if due.told:
        return asking(run, steps, due, times=step.times)
    spec = run.version.spec
    repeated = steps_in(spec, spec.step(step.name), times=step.times)
    before = last_answers(steps)
    return Asking(
        text_for(run, steps, step.name, step.times),
        tuple(before[name] for name in sorted(repeated & before.keys())),
    )


def _converse(
    run: PipelineRun, step: StepRun, steps: list[StepRun], uid: str, asks: Asking
) -> None:
    owner = run.root.owner
    agent_version = run.version.pinned()[step.name]
    conversation = create_conversation(
        actor=owner,
        organisation=run.root.organisation,
        agent=agent_version.agent,
        environment=run.root.environment,
        version=agent_version.number,
        title=f"{run.version.pipeline.name}: {step.name}",
        parent=run.root,
        overrides=PROVIDER if run.scripted else None,
        uid=uid,
    )
    said = UserMessage(
        content=(Text(text=checked_text(asks.text)),), untrusted_by=brought_by(asks.repeated)
    )
    for told in asks.repeated:
        if told.comment and told.decided_by is not None and told.decided_by_id != owner.pk:
            append(conversation.pk, [Entry.of(CommentTold(step=told.name))], actor=told.decided_by)
        if told.conversation is not None:
            bring_words(conversation, behind(told.conversation), way="step")
    row = append(conversation.pk, [Entry.of(said)], actor=owner)[0]
    step.conversation, step.asked_event = conversation, row.uid
    step.save()
    wake(conversation.pk)


# --- ends that people asked for -------------------------------------------------------------------


def end_steps(run_id: int) -> None:
    """Stop what works of a stopped run. No lock of ours is held while a conversation's is awaited."""
    open_steps = StepRun.objects.filter(
        run=run_id, run__state=PipelineRun.State.STOPPED, state__in=StepRun.OPEN
    )
    for step in open_steps.select_related("conversation__owner"):
        if step.conversation is not None:
            with suppress(AgentError):  # whoever it worked for may have left
                stop(actor=step.conversation.owner, conversation=step.conversation)
        StepRun.objects.filter(pk=step.pk, state__in=StepRun.OPEN).update(
            state=State.STOPPED, ended_at=timezone.now(), ended_seq=_last_seq(step.conversation)
        )


def _last_seq(conversation: Conversation | None) -> int:
    return conversation.last_seq if conversation is not None else 0


# --- whatever was lost ----------------------------------------------------------------------------


def look_again() -> None:
    """Go on with every run whose hints or processes were lost."""
    due = PipelineRun.objects.due(lacking=lacking()).order_by("pk")
    for pk in due.values_list("pk", flat=True)[:AT_A_TIME]:
        dispatch(LOOK, run_id=pk)
    stopped = StepRun.objects.filter(
        run__state=PipelineRun.State.STOPPED, state__in=StepRun.OPEN
    ).order_by("pk")
    for pk in stopped.values_list("run", flat=True)[:AT_A_TIME]:
        dispatch(END, run_id=pk)
