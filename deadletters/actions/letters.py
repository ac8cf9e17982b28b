"""What operators do with dead letters: replay from the failing step or from the start, and discard.

Staff may, with the permission to change dead letters, and who manages the organisation; for anybody
else there is no such letter. How letters come to be and are settled is `deadletters.projection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.log import append, entries_after
from conversations.models import Conversation, Event
from conversations.wakes import wake
from deadletters.models import DeadLetter
from harness.agentconfig import Limits
from harness.calls import STOPPED, UNKNOWN, refusal_of
from harness.errors import Conflict, Declined, Invalid, NotFound, TooLarge
from harness.events import RetryRequested
from harness.history import Entry, History, OpenCall
from harness.modelfaults import read_as

STEP = "step"
START = "start"
MODES = (STEP, START)

MODEL_LIMIT = 100
REASON_LIMIT = 2_000
LARGEST_BUDGET = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of several letters: those that are being done again, and why others are not."""

    letters: list[DeadLetter] = field(default_factory=list)
    refused: list[tuple[DeadLetter, Declined]] = field(default_factory=list)


def replay(
    *,
    actor: User,
    letter: DeadLetter,
    mode: str = STEP,
    model: str = "",
    token_budget: int | None = None,
) -> Event:
    """Have the failed turn done again; the event that asks for it.

    `mode`: `step` goes on where it failed; `start` has the prompt forget what came of the turn's
    input, while the log and the workspace keep it. `model` and `token_budget` hold for this turn
    only. Raises NotFound, Invalid naming the field, and Conflict when the letter is settled or
    being replayed already, has been replayed too often, or its conversation is at work.
    """
    asked = _retry(mode, model, token_budget)
    with transaction.atomic():
        conversation, held = _held(actor, letter)
        _require_open(held)
        most = settings.AGENTSITE_REPLAYS_PER_LETTER
        if held.replays >= most:
            raise Conflict(
                _("This letter was replayed %(count)d times; that is the limit.") % {"count": most},
                hint=_("Discard it, or raise AGENTSITE_REPLAYS_PER_LETTER."),
            )
        if conversation.status == Conversation.Status.TERMINATED:
            raise Conflict(_("This conversation has ended."), hint=_("Discard the letter."))
        if conversation.is_running:
            raise Conflict(_("The conversation is at work."), hint=_("Wait until it rests."))
        history = History(entries_after(conversation.pk, 0))
        if not history.may_retry:
            raise Conflict(_("There is nothing to do again."), hint=_("Discard the letter."))
        # What the prompt is to forget gets its answer in the log, so that nothing stays open there.
        forgotten = history.unanswered() if asked.from_start else []
        DeadLetter.objects.filter(pk=held.pk).update(
            state=DeadLetter.State.REPLAYED,
            replays=F("replays") + 1,
            closed_by=actor,
        )
        entries = [*(_given_up(call) for call in forgotten), Entry.of(asked)]
        row = append(conversation.pk, entries, actor=actor)[-1]
        wake(conversation.pk)
    return row


def replay_many(
    *,
    actor: User,
    letters: Sequence[DeadLetter],
    limit: int | None = None,
    mode: str = STEP,
    model: str = "",
    token_budget: int | None = None,
) -> Replayed:
    """`replay` each; one that is refused does not keep the others from it.

    At most `limit` letters, and never more than AGENTSITE_REPLAYS_AT_ONCE: more are refused as a
    whole with Invalid, before anything is done. NotFound if any of them is not the actor's to manage.
    """
    most = settings.AGENTSITE_REPLAYS_AT_ONCE
    _require_at_most(letters, most if limit is None else min(limit, most))
    _retry(mode, model, token_budget)
    pks = {letter.pk for letter in letters}
    if DeadLetter.objects.manageable_by(actor).filter(pk__in=pks).count() < len(pks):
        raise NotFound(_("There is no such dead letter."))
    done = Replayed()
    for letter in letters:
        try:
            replay(actor=actor, letter=letter, mode=mode, model=model, token_budget=token_budget)
        except Declined as refusal:
            done.refused.append((letter, refusal))
        else:
            done.letters.append(letter)
    return done


def discard(*, actor: User, letter: DeadLetter, reason: str) -> None:
    """Close the letter without doing anything; the conversation stays as it is.

    Raises NotFound, Invalid without a reason, TooLarge, and Conflict when it is no longer open.
    """
    reason = reason.replace("\0", "").strip()
    if not reason:
        raise Invalid(
            _("The reason is missing."), field="reason", hint=_("Say why nothing is to be done.")
        )
    if len(reason) > REASON_LIMIT:
        raise TooLarge(
            _("The reason is longer than %(limit)d characters.") % {"limit": REASON_LIMIT},
            field="reason",
        )
    with transaction.atomic():
        _conversation, held = _held(actor, letter)
        _require_open(held)
        held.state = DeadLetter.State.DISCARDED
        held.closed_at = timezone.now()
        held.closed_by = actor
        held.reason = reason
        held.save(update_fields=["state", "closed_at", "closed_by", "reason"])


def discard_many(*, actor: User, letters: Sequence[DeadLetter], reason: str) -> None:
    """`discard` all of them for one reason, or none; as many at once as may be replayed."""
    _require_at_most(letters, settings.AGENTSITE_REPLAYS_AT_ONCE)
    with transaction.atomic():
        for letter in letters:
            discard(actor=actor, letter=letter, reason=reason)


def _require_at_most(letters: Sequence[DeadLetter], most: int) -> None:
    if len(letters) > most:
        raise Invalid(
            _("%(count)d letters are too many; at most %(most)d can be done at once.")
            % {"count": len(letters), "most": most},
            field="letters",
            hint=_("Choose fewer."),
        )


def _retry(mode: str, model: str, token_budget: int | None) -> RetryRequested:
    """The event of these choices; raises Invalid for the first that breaks a rule."""
    if mode not in MODES:
        raise Invalid(
            _("There is no way “%(mode)s” to replay.") % {"mode": mode},
            field="mode",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(MODES)},
        )
    model = model.strip()
    if len(model) > MODEL_LIMIT or not model.isprintable():
        raise Invalid(
            _("The name of the model has more than %(limit)d characters, or odd ones.")
            % {"limit": MODEL_LIMIT},
            field="model",
        )
    if token_budget is not None:
        read_as({"token_budget": token_budget}, Limits)
        if token_budget > LARGEST_BUDGET:
            raise Invalid(
                _("At most %(limit)d tokens can be given.") % {"limit": LARGEST_BUDGET},
                field="token_budget",
            )
    return RetryRequested(
        from_start=mode == START, model=model, token_budget=token_budget or 0, resumed=True
    )


def _held(actor: User, letter: DeadLetter) -> tuple[Conversation, DeadLetter]:
    """Both rows as they are now, locked in the order in which the log locks them."""
    found = DeadLetter.objects.manageable_by(actor).filter(pk=letter.pk)
    conversation = (
        Conversation.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk__in=found.values("conversation_id"))
        .first()
    )
    if conversation is None:
        raise NotFound(_("There is no such dead letter."))
    return conversation, DeadLetter.objects.select_for_update(of=("self",), no_key=True).get(
        pk=letter.pk
    )


def _require_open(letter: DeadLetter) -> None:
    if letter.state == DeadLetter.State.REPLAYED:
        raise Conflict(_("This letter is being replayed already."), hint=_("Wait for its outcome."))
    if letter.state != DeadLetter.State.OPEN:
        raise Conflict(
            _("This letter is closed: %(state)s.") % {"state": letter.get_state_display()}
        )


def _given_up(call: OpenCall) -> Entry:
    if call.started_effect is None:
        return refusal_of(call, STOPPED, "stopped")
    return refusal_of(call, UNKNOWN, "unknown")
