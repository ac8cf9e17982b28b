"""An outcome for an agent to reach: what it is to bring about, and the criteria it is judged by.

Here it is only asked for. The loop works towards it and has it judged (`harness.loop`).
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.messages import title_from
from conversations.actions.own import writable_conversation
from conversations.judging import history_of
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.ratelimits import count_message
from conversations.wakes import wake
from harness.errors import Conflict, Invalid, TooLarge
from harness.events import SessionUpdated, SpanOutcomeEvaluationEnd, UserDefineOutcome
from harness.grading import MOST_DESCRIPTION, MOST_ITERATIONS, MOST_RUBRIC
from harness.history import Entry
from harness.ids import new_id


def define_outcome(
    *,
    actor: User,
    conversation: Conversation,
    description: str,
    rubric: str,
    max_iterations: int = 3,
) -> Event:
    """Have the agent work until its work meets each criterion of `rubric`, is judged `max_iterations`
    times, or is stopped.

    Raises NotFound, Forbidden, Invalid for empty words and a number out of 1 to 20, TooLarge, TooMany, and
    Conflict while another outcome is worked on: one at a time, the next one may follow.
    """
    description, rubric = checked_outcome(description, rubric, max_iterations)
    with transaction.atomic():
        held = writable_conversation(actor, conversation)
        if held.archived_at is not None:
            raise Conflict(
                _("This conversation is archived and takes nothing more."),
                hint=_("Begin a new one."),
            )
        if _is_pursued(held):
            raise Conflict(
                _("The agent works towards an outcome already."),
                hint=_("Wait until it has been judged, or stop the agent first."),
            )
        count_message(actor)
        defined = UserDefineOutcome(
            outcome_id=new_id("outc"),
            description=description,
            rubric=rubric,
            max_iterations=max_iterations,
        )
        outcome = Entry.of(defined)
        entries = [outcome]
        if not held.title:
            title = title_from(description)
            entries.append(Entry.of(SessionUpdated(title=title, made_of=outcome.uid)))
        row = append(held.pk, entries, actor=actor)[0]
        wake(held.pk)
    return row


def checked_outcome(description: str, rubric: str, max_iterations: int) -> tuple[str, str]:
    """Description and rubric as they are kept. Raises Invalid and TooLarge as `define_outcome`."""
    description = _said(description, "description", MOST_DESCRIPTION)
    rubric = _said(rubric, "rubric", MOST_RUBRIC)
    if not 1 <= max_iterations <= MOST_ITERATIONS:
        raise Invalid(
            _("Work is judged 1 to %(limit)d times.") % {"limit": MOST_ITERATIONS},
            field="max_iterations",
        )
    return description, rubric


def _said(text: str, field: str, most: int) -> str:
    text = text.replace("\0", "").strip()
    if not text:
        raise Invalid(_("This is empty."), field=field, hint=_("Type something."))
    if len(text) > most:
        raise TooLarge(
            _("The text is longer than %(limit)d characters.") % {"limit": most}, field=field
        )
    return text


def _is_pursued(conversation: Conversation) -> bool:
    """Whether one waits or is worked on, on the path that counts. The log is read whole only where the last
    one defined has not ended."""
    log = Event.objects.filter(conversation=conversation)
    last = log.filter(type="user.define_outcome").order_by("-seq").first()
    if last is None:
        return False
    ends = log.filter(type="span.outcome_evaluation_end", seq__gt=last.seq)
    if any(_is_final(row) for row in ends):
        return False
    history = history_of(conversation)
    waits = any(isinstance(entry.event, UserDefineOutcome) for entry in history.queued())
    return waits or history.outcome is not None


def _is_final(row: Event) -> bool:
    value = row.value
    return isinstance(value, SpanOutcomeEvaluationEnd) and value.result != "needs_revision"
