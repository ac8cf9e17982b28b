"""Whose words a turn answers, for questions that a requester may not decide.

Who wrote elsewhere in its tree, or beside the dialogue, is `conversations.writers`' part.
"""

from __future__ import annotations

from django.db.models import Q

from conversations.branches import counting
from conversations.models import Conversation, Event
from conversations.writers import SAID, by_people
from harness.events import InputTaken, SpanOutcomeEvaluationEnd


def writers_of_turn(conversation: Conversation, turn: str) -> set[int]:
    """The keys of those whose words it answers; of all who said something there, where it answers anything
    else as well, which came of words of before: a wake, an end, what another agent says, another try."""
    log = Event.objects.filter(conversation=conversation)
    said = by_people([conversation.pk], SAID)
    begin = log.filter(uid=turn, type="x.input_taken").first() if turn else None
    if begin is not None:
        taken = [row.value for row in log.filter(type="x.input_taken", seq__gte=begin.seq)]
        uids = {uid for one in taken if isinstance(one, InputTaken) for uid in one.event_ids}
        # What an agent says is stored as its owner's, whose words it need not be.
        by_people_alone = said.filter(uid__in=uids).exclude(payload__by_agent=True)
        if by_people_alone.count() == len(uids):
            pursued = _pursued_at(conversation, begin)
            answers = Q(type="user.custom_tool_result", seq__gt=begin.seq)
            said = said.filter(Q(uid__in={*uids, *pursued}) | answers)
    return set(said.values_list("actor", flat=True))


def _pursued_at(conversation: Conversation, begin: Event) -> list[str]:
    """The ids of outcomes not judged for good as a turn began: whoever began it, it works towards them, and
    after their last judgement as that says."""
    log = counting(conversation).filter(seq__lt=begin.seq)
    ends = [row.value for row in log.filter(type="span.outcome_evaluation_end")]
    over = {
        end.outcome_id
        for end in ends
        if isinstance(end, SpanOutcomeEvaluationEnd) and end.result != "needs_revision"
    }
    defined = log.filter(type="user.define_outcome")
    return [row.uid for row in defined if row.payload["outcome_id"] not in over]
