"""Points that people give to tries, beside what checks and judges say of them."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from evals.access import held_evaluation
from evals.models import Evaluation, Grade, Trial
from harness.errors import Invalid, NotFound

MOST_NOTE = 500


def grade_trial(
    *,
    actor: User,
    evaluation: Evaluation,
    case: str,
    repetition: int,
    points: int | None,
    note: str = "",
) -> Trial:
    """Say how well a try did, in place of what the actor said of it before; None takes that back.

    Raises NotFound, also for a try that was not judged, Forbidden, Invalid naming the field.
    """
    if points is not None and not 1 <= points <= Grade.SCALE:
        raise Invalid(
            _("It lies between 1 and %(limit)d.") % {"limit": Grade.SCALE},
            field="points",
            hint=_("Give such a number."),
        )
    note = " ".join(note.split())
    if len(note) > MOST_NOTE:
        raise Invalid(
            _("It has at most %(limit)d characters.") % {"limit": MOST_NOTE},
            field="note",
            hint=_("Say it shorter."),
        )
    with transaction.atomic():
        held = held_evaluation(actor, evaluation)
        judged = held.trials.filter(state__in=[Trial.State.PASSED, Trial.State.FAILED])
        trial = judged.filter(name=case.replace("\0", ""), repetition=repetition).first()
        if trial is None:
            raise NotFound(_("There is no such try that was judged."))
        if points is None:
            trial.grades.filter(by=actor).delete()
        else:
            given = {"points": points, "note": note}
            trial.grades.update_or_create(by=actor, defaults=given)
    return trial
