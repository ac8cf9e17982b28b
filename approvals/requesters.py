"""Whose words a turn answers, for questions that a requester may not decide.

Who wrote elsewhere in its tree, or beside the dialogue, is `conversations.writers`' part.
"""

from __future__ import annotations

from django.db.models import Q

from conversations.models import Conversation, Event
from conversations.writers import SAID, by_people
from harness.events import InputTaken


def writers_of_turn(conversation: Conversation, turn: str) -> set[int]:
    """The keys of those whose words it answers; of all who said something there, where it answers anything
    else as well, which came of words of before: a wake, an end, what another agent says, another try."""
    log = Event.objects.filter(conversation=conversation)
    said = by_people([conversation.pk], SAID)
    begin = log.filter(uid=turn, type="x.input_taken").first() if turn else None
    if begin is not None:
        taken = [row.value for row in log.filter(type="x.input_taken", seq__gte=begin.seq)]
        uids = {uid for one in taken if isinstance(one, InputTaken) for uid in one.event_ids}
        if said.filter(uid__in=uids).count() == len(uids):
            answers = Q(type="user.custom_tool_result", seq__gt=begin.seq)
            said = said.filter(Q(uid__in={*uids, *_pursued_in(conversation)}) | answers)
    return set(said.values_list("actor", flat=True))


def _pursued_in(conversation: Conversation) -> list[str]:
    """The id of the outcome that turns work towards whoever begins them: the last one, until it is judged for
    good."""
    log = Event.objects.filter(conversation=conversation)
    last = log.filter(type="user.define_outcome").order_by("-seq").first()
    if last is None:
        return []
    ends = log.filter(type="span.outcome_evaluation_end", seq__gt=last.seq)
    return [] if ends.exclude(payload__result="needs_revision").exists() else [last.uid]
