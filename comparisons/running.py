"""What comparisons do by themselves: who has answered is judged, and with the last of them it ends.

Rows say what is due, so whatever is lost, a hint or a process, is found by the sweep: each step holds the row
that says that it is to be done. Who starts and stops one is `actions.comparisons`'.
"""

from __future__ import annotations

from contextlib import suppress

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.actions.messages import stop
from conversations.models import Conversation
from harness.errors import AgentError
from jobs.dispatch import dispatch
from jobs.prepared import Prepared
from pipelines.actions.runs import stop_run
from pipelines.models import PipelineRun
from pipelines.standing import rest_of

from .judging import ask_judge, verdict_of
from .models import Comparison, Entry
from .standing import answer_of

LOOK = "comparisons.look"
END = "comparisons.end"
AT_A_TIME = 200
"""Comparisons that one sweep looks at."""
FAULT = "A fault in this server kept it from going on."

State = Entry.State


_DUE = Prepared(lambda given: Comparison.objects.due().order_by("pk").values_list("pk")[:AT_A_TIME])
_STOPPED = Prepared(
    lambda given: (
        Entry.objects.filter(comparison__state=Comparison.State.STOPPED, state__in=Entry.OPEN)
        .order_by("comparison")
        .values_list("comparison")
        .distinct()[:AT_A_TIME]
    )
)
"""Asked with each sweep."""


def go_on(comparison_id: int) -> None:
    """Do what is due of it, as often as anybody likes: nothing where all of it works or waits."""
    with transaction.atomic():
        comparison = _held(comparison_id)
        if comparison is None:
            return
        entries = entries_of(comparison)
        for entry in entries:
            if entry.state == State.RUNNING:
                _settle(comparison, entry)
            elif entry.state == State.JUDGING:
                _settle_judged(entry)
        if not any(entry.is_open for entry in entries):
            _end(comparison)


def give_up(comparison_id: int) -> None:
    """End one that a fault of ours keeps from going on."""
    with transaction.atomic():
        comparison = _held(comparison_id)
        if comparison is None:
            return
        for entry in entries_of(comparison):
            if entry.is_open:
                _close(entry, State.FAILED, FAULT)
        _end(comparison)


def entries_of(comparison: Comparison) -> list[Entry]:
    rows = comparison.entries.select_related(
        "conversation", "judge", "run__version__pipeline", "run__root"
    )
    entries = list(rows.order_by("place"))
    for entry in entries:
        entry.comparison = comparison
    return entries


def _held(comparison_id: int) -> Comparison | None:
    """Its conversation is locked first, as whoever deletes it or takes words out below it does."""
    roots = Comparison.objects.filter(pk=comparison_id).values("root")
    locked = Conversation.objects.select_for_update(of=("self",), no_key=True)
    if locked.filter(pk__in=roots).first() is None:
        return None
    held = Comparison.objects.select_for_update(of=("self",)).going_on().filter(pk=comparison_id)
    return held.select_related("root__owner", "root__organisation", "root__environment").first()


def _settle(comparison: Comparison, entry: Entry) -> None:
    """Write down that it has answered, and have that judged; nothing while it works or waits."""
    if entry.run is not None:
        if entry.run.state == PipelineRun.State.RUNNING:
            return
        if entry.run.state != PipelineRun.State.DONE:
            _close(entry, State(entry.run.state), entry.run.problem)
            return
    elif entry.conversation is not None:
        rest = rest_of(entry.conversation)
        if rest is None or not rest.ended:
            return
        entry.ended_seq = entry.conversation.last_seq
        if rest.interrupted:
            _close(entry, State.STOPPED)
            return
    else:
        _close(entry, State.FAILED, _("Its conversation was deleted."))
        return
    answer = answer_of(entry)
    if not answer.strip():
        _close(entry, State.FAILED, _("It said nothing."))
    elif comparison.judged:
        entry.judge = ask_judge(comparison, _("Judge of %(name)s") % {"name": entry.name}, answer)
        _close(entry, State.JUDGING)
    else:
        _close(entry, State.DONE)


def _settle_judged(entry: Entry) -> None:
    if entry.judge is None:
        _close(entry, State.DONE, _("Its judge was deleted."))
        return
    rest = rest_of(entry.judge)
    if rest is None or not (rest.ended or entry.judge.stop_reason == "refusal"):
        return
    verdict = verdict_of(entry.judge)
    entry.points = verdict.points
    problem = _("Its judge said nothing that can be read.") if verdict.points is None else ""
    _close(entry, State.DONE, problem)


def _close(entry: Entry, state: Entry.State, problem: str = "") -> None:
    entry.state, entry.problem = state, problem[:500]
    entry.ended_at = entry.ended_at or timezone.now()
    entry.save()


def _end(comparison: Comparison) -> None:
    comparison.state, comparison.ended_at = Comparison.State.DONE, timezone.now()
    comparison.save(update_fields=["state", "ended_at"])


# --- ends that people asked for -------------------------------------------------------------------


def end_entries(comparison_id: int) -> None:
    """Stop what works of a stopped comparison. No lock of ours is held while another's is awaited."""
    stopped = Comparison.objects.filter(pk=comparison_id, state=Comparison.State.STOPPED)
    for comparison in stopped.select_related("root__owner"):
        owner = comparison.root.owner
        for entry in entries_of(comparison):
            if not entry.is_open:
                continue
            with suppress(AgentError):  # whoever it worked for may have left
                if entry.run is not None:
                    stop_run(actor=owner, run=entry.run)
                for each in (entry.conversation, entry.judge):
                    if each is not None:
                        stop(actor=owner, conversation=each)
            _close(entry, State.STOPPED if entry.state == State.RUNNING else State.DONE)


# --- whatever was lost ----------------------------------------------------------------------------


def look_again() -> None:
    """Go on with every comparison whose hints or processes were lost."""
    for (pk,) in _DUE.all():
        dispatch(LOOK, comparison_id=pk)
    for (pk,) in _STOPPED.all():
        dispatch(END, comparison_id=pk)
