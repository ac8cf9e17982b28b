"""What a reader thinks of an answer: a thumb and a comment, in the log with her name. No agent sees it.

Staff find it in the admin's log of events, everybody who may export the conversation in the export.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import own_even_ended
from conversations.log import append
from conversations.models import Conversation, Event
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge
from harness.events import FeedbackGiven
from harness.history import Entry

COMMENT_LIMIT = 2_000
MOST_CHANGES = 50
"""Of one person's mind about one answer; all of them are read whenever that is drawn."""
RATINGS = ("up", "down", "none")


def give_feedback(
    *, actor: User, conversation: Conversation, event_uid: str, rating: str, comment: str = ""
) -> Event:
    """Her last word about an answer counts; `none` takes it back. The same word again is the same event.

    Raises NotFound, Conflict for what is no answer, Invalid for another rating, TooLarge, and LimitReached
    past `MOST_CHANGES`.
    """
    comment = comment.replace("\0", "").strip()
    if rating not in RATINGS:
        raise Invalid(
            _("There is no rating “%(name)s”.") % {"name": rating[:40]},
            field="rating",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(RATINGS)},
        )
    if len(comment) > COMMENT_LIMIT:
        raise TooLarge(
            _("The comment is longer than %(limit)d characters.") % {"limit": COMMENT_LIMIT},
            field="comment",
        )
    with transaction.atomic():
        held = own_even_ended(actor, conversation, lock=True)
        log = Event.objects.filter(conversation=held)
        about = log.filter(uid=event_uid.replace("\0", "")).first()
        if about is None:
            raise NotFound(_("There is no such event."))
        if about.type != "agent.message":
            raise Conflict(_("This is no answer."), hint=_("Name something that the agent said."))
        given = FeedbackGiven.model_validate(
            {"event_id": about.subject, "rating": rating, "comment": comment}
        )
        before = log.filter(subject=about.subject, type=given.type, actor=actor).order_by("-seq")
        last = before.first()
        if last is not None and last.value == given:
            return last
        if rating != "none" and before.count() >= MOST_CHANGES:
            raise LimitReached(
                _("You rated this answer %(limit)d times, the most there may be.")
                % {"limit": MOST_CHANGES},
                hint=_("Your last word about it stays, or you take it back."),
            )
        return append(held.pk, [Entry.of(given)], actor=actor)[0]
