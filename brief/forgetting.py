"""Takes out of stored briefs what was taken out of a conversation: its answer, its error, its title, and with
them the text that a model made of the lines."""

from __future__ import annotations

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast
from django.urls import reverse

from approvals.models import Approval
from conversations.forgetting import Removed
from harness.events import SessionError, SessionStatusIdle
from harness.redacted import REMOVED
from schedules.forgetting import has_criteria, words_told
from schedules.projection import NOT_MET
from subagents.projection import detail_of

from .compiling import name_in_brief
from .models import Brief, BriefWish
from .writing import drop_text


def forget(removed: Removed) -> None:
    """Waits for briefs that are being made: those that come after find the words gone."""
    organisation = removed.conversation.organisation_id
    wishes = BriefWish.objects.filter(organisation=organisation, is_on=True).order_by("pk")
    list(wishes.select_for_update(no_key=True).values_list("pk"))
    words = words_told(removed) | _errors(removed)
    titles = {name_in_brief(title) for title in removed.titles}
    since = Brief.objects.filter(
        organisation=organisation, until__gte=removed.conversation.created_at
    )
    paths = {removed.conversation.get_absolute_url()}
    told = since.annotate(said=Cast("stored_contents", TextField()))
    if titles:
        paths |= _approvals(removed)
    else:
        told = told.filter(said__contains=removed.conversation.uid)
    judged = has_criteria(removed)
    if not (words or titles or judged):
        return
    # Whoever writes the text of one holds its row.
    for brief in told.select_for_update(of=("self",)).order_by("pk").iterator(chunk_size=200):
        if _silence(brief.stored_contents, paths, words, titles, judged=judged):
            drop_text(brief)
            brief.save(update_fields=["stored_contents", "text", "writing"])


def _approvals(removed: Removed) -> set[str]:
    asked = Approval.objects.filter(conversation=removed.conversation)
    uids = asked.values_list("uid", flat=True)
    return {reverse("approvals:approval", kwargs={"uid": uid}) for uid in uids}


def _errors(removed: Removed) -> set[str]:
    """As lines repeat them about a turn that was given up, and about a subagent."""
    found = set()
    for event in removed.of(SessionError, SessionStatusIdle).values():
        if isinstance(event, SessionError):
            found.add(event.error.message[:500])
        elif event.stop_details is not None:
            found |= {event.stop_details.message[:500], detail_of(event)}
    return found - {""}


def _silence(
    contents: dict[str, Any], paths: set[str], words: set[str], titles: set[str], *, judged: bool
) -> bool:
    """Whether a line about the conversation said any of it, as a whole, or (`judged`) criteria."""
    changed = False
    lines = [line for part in contents.values() if isinstance(part, list) for line in part]
    for line in lines:
        if line["path"] not in paths:
            continue
        if line["words"] in words or (judged and line["code"] == NOT_MET):
            line["words"], changed = REMOVED, True
        for place in ("name", "words"):
            # Of a schedule the name is the schedule's own.
            if line["kind"] != "schedule" and line[place] in titles:
                line[place], changed = name_in_brief(""), True
    return changed
