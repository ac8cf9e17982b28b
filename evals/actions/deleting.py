"""A suite goes with all that was tried by it: the conversations of its trials as well, which nobody would
find any more, nor could stop.

Those of one evaluation after the other, and before the suite: a process that dies in between leaves the
suite, and who deletes it once more goes on there.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from audit.models import AuditEntry
from conversations.actions.conversations import remove_held
from conversations.models import Conversation
from evals.access import held_suite
from evals.auditing import about_suite
from evals.models import Evaluation, Suite
from evals.stopping import UNDER_WAY
from harness.errors import Conflict


def delete_suite(*, actor: User, suite: Suite) -> None:
    """With its cases and all that was tried by it. Raises NotFound, Forbidden, and Conflict while something
    of that is under way."""
    with transaction.atomic():
        held = held_suite(actor, suite)
        _require_ended(held)
        roots = list(held.evaluations.exclude(root=None).values_list("root", flat=True))
    for root in roots:
        _remove(root)
    with transaction.atomic():
        held = held_suite(actor, suite)
        _require_ended(held)
        about_suite(AuditEntry.Action.SUITE_DELETED, actor, held, cases=held.cases.count())
        held.delete()


def _require_ended(suite: Suite) -> None:
    going_on = Q(state=Evaluation.State.RUNNING) | Q(trials__state__in=UNDER_WAY)
    if suite.evaluations.filter(going_on).exists():
        raise _under_way()


def _under_way() -> Conflict:
    return Conflict(
        _("An evaluation of this suite is under way."),
        hint=_("Stop it first, then delete the suite."),
    )


@transaction.atomic
def _remove(conversation_id: int) -> None:
    for held in Conversation.objects.select_for_update(of=("self",)).filter(pk=conversation_id):
        if not remove_held(held):
            raise _under_way()
