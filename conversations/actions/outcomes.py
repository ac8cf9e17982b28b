"""An outcome for an agent to reach: what it is to bring about, and the criteria it is judged by.

Here it is only asked for. The loop works towards it and has it judged (`harness.loop`).
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.messages import title_from
from conversations.actions.own import writable_conversation
from conversations.branches import counting
from conversations.judging import history_of
from conversations.log import append
from conversations.models import Conversation, Event
from conversations.ratelimits import count_message
from conversations.wakes import wake
from harness.errors import Conflict, Invalid, TooLarge
from harness.events import OutcomeCheck, SessionUpdated, SpanOutcomeEvaluationEnd, UserDefineOutcome
from harness.grading import MOST_DESCRIPTION, MOST_ITERATIONS, MOST_RUBRIC, criteria_of
from harness.history import Entry
from harness.ids import new_id
from reading.digits import is_digits, number_of

MOST_CHECKS = 10
MOST_COMMAND = 4_000
"""Characters of a check's command."""
MOST_SECONDS = 600


def define_outcome(
    *,
    actor: User,
    conversation: Conversation,
    description: str,
    rubric: str,
    max_iterations: int = 3,
    checks: Sequence[OutcomeCheck] = (),
) -> Event:
    """Have the agent work until its work meets each criterion of `rubric`, is judged `max_iterations`
    times, or is stopped. `checks` are commands that the server runs each time before it is judged.

    Raises NotFound, Forbidden, Invalid for empty words and a number out of 1 to 20, TooLarge, TooMany, and
    Conflict while another outcome is worked on: one at a time, the next one may follow.
    """
    description, rubric = checked_outcome(description, rubric, max_iterations)
    checks = checked_checks(checks, rubric)
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
            checks=checks,
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


def checked_checks(checks: Sequence[OutcomeCheck], rubric: str) -> tuple[OutcomeCheck, ...]:
    """As they are kept. Raises Invalid naming `checks` for too many, an empty or too long command, a
    criterion that `rubric` has not, and seconds out of 1 to 600."""
    if len(checks) > MOST_CHECKS:
        raise Invalid(
            _("There are more than %(limit)d checks.") % {"limit": MOST_CHECKS},
            field="checks",
            hint=_("Name fewer."),
        )
    criteria = len(criteria_of(rubric))
    kept = []
    for each in checks:
        run = each.run.replace("\0", "").strip()
        if not 0 < len(run) <= MOST_COMMAND:
            raise Invalid(
                _("The command of a check has 1 to %(limit)d characters.")
                % {"limit": MOST_COMMAND},
                field="checks",
            )
        if each.criterion is not None and not 1 <= each.criterion <= criteria:
            raise Invalid(
                _("There is no criterion %(number)d: there are %(count)d.")
                % {"number": each.criterion, "count": criteria},
                field="checks",
                hint=_("Give a number from 1 to %(most)d.") % {"most": criteria},
            )
        if not 1 <= each.seconds <= MOST_SECONDS:
            raise Invalid(
                _("A check has 1 to %(limit)d seconds.") % {"limit": MOST_SECONDS}, field="checks"
            )
        kept.append(each.model_copy(update={"run": run}))
    return tuple(kept)


def checks_in(text: str) -> tuple[OutcomeCheck, ...]:
    """What a form says, one a line: `2: make test` for the second criterion, `make test` for none."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        number, mark, rest = line.partition(":")
        of_one = bool(mark) and is_digits(number) and number_of(number) is not None
        run, criterion = (rest.strip(), number_of(number)) if of_one else (line, None)
        found.append(OutcomeCheck(run=run, criterion=criterion))
    return tuple(found)


def checks_as_text(checks: Sequence[OutcomeCheck]) -> str:
    """As `checks_in` reads it."""
    lines = [f"{each.criterion}: {each.run}" if each.criterion else each.run for each in checks]
    return "\n".join(lines)


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
    log = counting(conversation)
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
