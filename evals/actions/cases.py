"""*Make this a case*: what was said in a conversation, up to one answer, as a case of a suite.

Nothing is judged yet: the check that it begins with is for its maker to change.
"""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.forking import strangers_above
from conversations.actions.own import require_readable
from conversations.branches import counting
from conversations.models import Conversation, Event
from evals.checks.spec import MOST_RECORDED, SOURCE, CaseSpec, Recorded
from harness.content import text_of
from harness.errors import Invalid, LimitReached, NotFound
from harness.events import AgentMessage, MessageEdited, UserMessage, dump, telling_of_before
from harness.history import History

PHRASE = 200
"""Characters of the answer that the first check asks for."""


def case_of(*, actor: User, conversation: Conversation, event_uid: str, name: str = "") -> CaseSpec:
    """The message that this answer (or one behind it) answers, behind what was said before it.

    Raises NotFound for what the actor may not read and for what is no answer, Invalid for an answer to no
    words, LimitReached for a conversation that is too long.
    """
    require_readable(actor, conversation)
    rows = list(counting(conversation).order_by("seq"))
    answer = next((row for row in rows if row.uid == event_uid), None)
    if answer is None or not isinstance(answer.value, AgentMessage):
        raise NotFound(_("There is no such answer."))
    asked = _asked(rows, answer)
    text = _words(rows, asked)
    if not text:
        raise Invalid(
            _("This answers nothing that was said in words."),
            field="event",
            hint=_("Make a case of another answer."),
        )
    before = [row for row in rows if row.seq < asked.seq]
    if any(row.type == "agent.message" for row in before):
        telling = telling_of_before()
        before += [row for row in rows if row.seq > asked.seq and row.type in telling]
    else:
        before = []
    if len(before) > MOST_RECORDED:
        raise LimitReached(
            _("More than %(limit)d events stand before this answer.") % {"limit": MOST_RECORDED},
            hint=_("Make a case of an earlier one."),
        )
    first = text_of(answer.value.content).strip()
    return CaseSpec.model_validate(
        {
            "name": name or f"answer-{event_uid[-8:]}".lower(),
            "input": [text],
            "told_date": conversation.first_day,
            "beginning": [
                Recorded(uid=row.uid, at=row.created_at.timestamp(), event=dump(row.value))
                for row in before
            ],
            "untrusted_by": _strangers(conversation, rows, asked, before)[:SOURCE],
            "script": {"replies": [{"say": first}]} if first else {},
            "checks": [{"type": "text", "any": [first[:PHRASE] or "…"]}],
            "note": _("Made of a conversation on %(day)s.") % {"day": timezone.now().date()},
        }
    )


def _words(rows: list[Event], asked: Event) -> str:
    """What the message says, as it was edited last while it waited."""
    edits = (row for row in rows if row.type == "x.message_edited" and row.subject == asked.uid)
    said = [asked, *edits][-1].value
    return text_of(said.content) if isinstance(said, UserMessage | MessageEdited) else ""


def _strangers(
    conversation: Conversation, rows: list[Event], asked: Event, before: list[Event]
) -> str:
    """Whose words the message holds or goes by, as far as what is recorded before it does not say so."""
    value = asked.value
    if isinstance(value, UserMessage) and value.untrusted_by:
        return value.untrusted_by
    told = bool(before) and bool(History([row.entry() for row in before]).ever_tainted_by)
    source = ""
    if told or conversation.rewound_seq is not None:
        # What comes of a branch that was left says nothing of it by itself, and what an agent says, or a
        # person said before the rest was read, is in a trial what a person says after it.
        taken = next(row for row in rows if asked.uid in _taken_in(row))
        heard = conversation.events.filter(seq__lte=taken.seq).order_by("seq")
        history = History([row.entry() for row in heard])
        source = history.tainted_by if told else history.ever_tainted_by
    return source or (strangers_above(conversation) if before and not told else "")


def _taken_in(row: Event) -> list[str]:
    return list(row.payload["event_ids"]) if row.type == "x.input_taken" else []


def _asked(rows: list[Event], answer: Event) -> Event:
    """The last message that had been taken when this was said."""
    taken: list[str] = []
    for row in rows:
        if row.seq > answer.seq:
            break
        taken = _taken_in(row) or taken
    found = [row for row in rows if row.uid in taken and row.type == "user.message"]
    if not found:
        raise NotFound(_("There is no such answer."))
    return found[-1]
