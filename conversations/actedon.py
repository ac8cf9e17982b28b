"""What calls act on where their arguments only name it, for who reads a log and is shown no cards.

It is told with each call, and again with a rest that waits for one which was asked about anew: what that acts
on may be another thing by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accounts.models import User
from tools_app.touches import data_before

from .models import Conversation, Event


def acted_on(
    reader: User,
    conversation: Conversation | int,
    calls: Mapping[str, str],
    rests: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, Any]]:
    """By the ids of `calls` (with the names of their tools) what those act on that people were asked about,
    as this reader may see it; by the ids of `rests` (with the calls that they wait for) the same of each call
    that was asked about anew, by its id."""
    if not calls and not rests:
        return {}
    waiting = {uid for uids in rests.values() for uid in uids}
    anew = _asked_anew(conversation, waiting) if waiting else {}
    key = conversation.pk if isinstance(conversation, Conversation) else conversation
    told = data_before(reader, key, {**calls, **anew})
    found = {uid: told[uid] for uid in calls if uid in told}
    for rest, uids in rests.items():
        if again := {uid: told[uid] for uid in uids if uid in anew and uid in told}:
            found[rest] = again
    return found


def _asked_anew(conversation: Conversation | int, uids: set[str]) -> dict[str, str]:
    log = Event.objects.filter(conversation=conversation)
    again = log.filter(subject__in=uids, type="x.approval_requested").values("subject")
    calls = log.filter(uid__in=again, type="agent.tool_use")
    return {row.uid: row.payload["name"] for row in calls}
