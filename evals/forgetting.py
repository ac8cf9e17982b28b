"""Takes out of trials, cases and kept replies what was taken out of a conversation that they come from."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from conversations.forgetting import Removed
from conversations.models import Event
from harness.content import text_of
from harness.events import (
    AgentMessage,
    AgentThinking,
    MessageEdited,
    SessionStatusIdle,
    UserMessage,
    dump,
    load,
)
from harness.redacted import REMOVED, redacted

from .actions.cases import PHRASE
from .actions.suites import digest_of
from .checks.spec import CaseSpec
from .models import CachedReply, Case, Judgement, Trial


def forget(removed: Removed) -> None:
    answers = {text_of(event.content) for event in removed.of(AgentMessage).values()} - {""}
    judged = Judgement.objects.filter(conversation=removed.conversation).values("trial")
    # Who concludes one reads the log under this lock.
    trials = Trial.objects.select_for_update(of=("self",)).filter(
        Q(conversation=removed.conversation) | Q(pk__in=judged)
    )
    for trial in trials:
        _forget_outcomes(trial, removed)
    if trials:
        thoughts = {event.thinking for event in removed.of(AgentThinking).values()} - {""}
        _forget_replies(removed.conversation.organisation_id, answers | thoughts)
    said = removed.of(UserMessage, MessageEdited).values()
    asked = {text_of(event.content) for event in said} - {""}
    source = removed.conversation.uid
    made = Case.objects.filter(source_uid=source)
    tried = Trial.objects.select_for_update(of=("self",)).filter(source_uid=source)
    rows: list[Case | Trial] = [*made, *tried]
    for row in rows:
        _forget_case(row, removed.uids, asked, answers)


def _forget_outcomes(trial: Trial, removed: Removed) -> None:
    """Checks and people quote the run and its judges in saying what they found; whether they passed stays."""
    trial.outcomes = [{**outcome, "why": ""} for outcome in trial.outcomes]
    trial.grades.update(note="")
    last = Event.objects.filter(conversation=trial.conversation_id, type="agent.message")
    if last.order_by("-seq").values_list("uid", flat=True).first() in removed.uids:
        trial.answer = trial.answer and REMOVED
    ends = removed.of(SessionStatusIdle).values()
    if trial.problem in {end.stop_details.message[:500] for end in ends if end.stop_details}:
        trial.problem = REMOVED
    trial.save(update_fields=["outcomes", "answer", "problem"])


def _forget_replies(organisation_id: int, texts: set[str]) -> None:
    """A reply that is gone is asked for again, so that one too many costs little."""
    replies = CachedReply.objects.filter(organisation=organisation_id)
    for reply in replies.iterator(chunk_size=100):
        if any(fields.get("text") in texts for _kind, fields in reply.pieces):
            reply.delete()


def _forget_case(
    case: Case | Trial, uids: Collection[str], asked: set[str], answers: set[str]
) -> None:
    """By the ids of what was recorded; what it says and checks beside that where it is the whole text."""
    spec = case.stored_spec
    openings = {text.strip()[:PHRASE] for text in answers} - {""}
    said = {text.strip() for text in answers}
    for recorded in spec.get("beginning", ()):
        if recorded["uid"] in uids:
            recorded["event"] = dump(redacted(load(recorded["event"])))
    spec["input"] = [REMOVED if text in asked else text for text in spec["input"]]
    for reply in spec.get("script", {}).get("replies", ()):
        if reply.get("say") in said:
            reply["say"] = REMOVED
    for check in spec["checks"]:
        if check["type"] == "text" and "any" in check:
            check["any"] = [REMOVED if each in openings else each for each in check["any"]]
    fresh = CaseSpec.model_validate(spec)
    if digest_of(fresh) != case.digest:
        case.stored_spec, case.digest = spec, digest_of(fresh)
        case.save(update_fields=["stored_spec", "digest"])
