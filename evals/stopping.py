"""What still works of an evaluation that people stopped comes to its end, each by itself.

That it was stopped says its row, so that whatever is lost on the way is found by the sweep. Who may stop one
is `actions.evaluations`'.
"""

from __future__ import annotations

from contextlib import suppress

from django.db.models import QuerySet
from django.utils import timezone

from conversations.actions.messages import stop
from conversations.models import Conversation
from harness.errors import AgentError
from jobs.dispatch import dispatch

from .models import Evaluation, Trial
from .running import AT_A_TIME

END = "evals.end"
NOT_BEGUN = "It was stopped before."
STOPPED = "It was stopped."
UNDER_WAY = (Trial.State.WAITING, *Trial.OPEN)


def end_trials(evaluation_id: int) -> None:
    """No lock of ours is held while a conversation's is awaited, and what was judged meanwhile stays."""
    trials = Trial.objects.filter(
        evaluation=evaluation_id, evaluation__state=Evaluation.State.STOPPED
    )
    _close(trials.filter(state=Trial.State.WAITING), NOT_BEGUN)
    for trial in trials.filter(state__in=Trial.OPEN).select_related("conversation__owner"):
        _stop(trial.conversation)
        # Only now: who asked judges before this was stopped held the trial's conversation until then.
        for judgement in trial.judgements.select_related("conversation__owner"):
            _stop(judgement.conversation)
        _close(Trial.objects.filter(pk=trial.pk, state__in=Trial.OPEN), STOPPED)


def look_again() -> None:
    """Go on with every stopped evaluation whose hints or processes were lost."""
    left = Trial.objects.filter(
        evaluation__state=Evaluation.State.STOPPED, state__in=UNDER_WAY
    ).order_by("evaluation")
    for pk in left.values_list("evaluation", flat=True).distinct()[:AT_A_TIME]:
        dispatch(END, evaluation_id=pk)


def _stop(conversation: Conversation | None) -> None:
    if conversation is not None:
        with suppress(AgentError):  # whoever it worked for may have left
            stop(actor=conversation.owner, conversation=conversation)


def _close(trials: QuerySet[Trial], problem: str) -> None:
    trials.update(state=Trial.State.BROKEN, problem=problem, ended_at=timezone.now())
