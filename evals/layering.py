"""What stands in front of the provider in the conversations of evaluations: the script or the cache."""

from __future__ import annotations

from conversations.kitparts import Layer
from conversations.kits import choose_provider
from conversations.models import Conversation
from jobs.prepared import Prepared

from .caching import Cached, Place
from .checks.spec import JudgeCheck, PreferenceCheck
from .models import Judgement, Trial
from .scripting import Played

_TRIAL = Prepared(
    lambda given: Trial.objects.select_related("evaluation").filter(conversation=given.conversation)
)
_JUDGEMENT = Prepared(
    lambda given: Judgement.objects.select_related("trial__evaluation").filter(
        conversation=given.conversation
    )
)


def layer(conversation: Conversation) -> Layer | None:
    """Nothing for the conversations of people, which costs no query."""
    if conversation.parent_id is None:
        return None
    trial = _TRIAL.first(conversation=conversation.pk)
    if trial is not None:
        return _layer(conversation, trial, None)
    judgement = _JUDGEMENT.first(conversation=conversation.pk)
    return _layer(conversation, judgement.trial, judgement) if judgement is not None else None


def _layer(conversation: Conversation, trial: Trial, judgement: Judgement | None) -> Layer | None:
    evaluation = trial.evaluation
    played = _scripted(trial, judgement) if evaluation.scripted else None
    if not evaluation.uses_cache:
        return played
    place = _place(conversation, trial, judgement)
    return lambda beneath: Cached(played(beneath) if played else beneath, place)


def _scripted(trial: Trial, judgement: Judgement | None) -> Layer:
    spec = trial.spec
    if judgement is None:
        before = _said_in_beginning(trial)
        return lambda _beneath: Played(spec.script, before=before)
    judged = [
        place
        for place, check in enumerate(spec.checks)
        if isinstance(check, JudgeCheck | PreferenceCheck)
    ]
    number = judged.index(judgement.place)
    return lambda _beneath: Played(spec.script, judging=number)


def _said_in_beginning(trial: Trial) -> int:
    """The replies that a prompt holds before anything is asked: runs of the agent's words and calls."""
    runs, inside = 0, False
    for each in trial.spec.beginning:
        kind = str(each.event.get("type", ""))
        if kind in {"agent.message", "agent.thinking"} or kind.endswith("tool_use"):
            runs += not inside
            inside = True
        elif kind == "user.message" or kind.endswith("tool_result"):
            inside = False
    return runs


def _place(conversation: Conversation, trial: Trial, judgement: Judgement | None) -> Place:
    if trial.evaluation.scripted:
        service = f"script {trial.digest}"
    else:
        config, owner = conversation.config, conversation.owner
        choice = choose_provider(config, owner, conversation.organisation)
        service = choice.config.base_url if choice.config else ""
    sample = f"try {trial.repetition}"
    if judgement is not None:
        sample = f"judge {judgement.number}"
    return Place(
        organisation_id=conversation.organisation_id,
        service=service,
        sample=sample,
        own_ids=(conversation.uid,),
    )
