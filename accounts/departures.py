"""Tells that somebody left, so that no agent goes on working for them.

What stops is the business of the floor above, which is known here by the name of a job. The job is
a hint that may be lost; a run looks for itself whether its person is still there.
"""

from __future__ import annotations

from accounts.models import User
from jobs.dispatch import dispatch

STOP_OF_MEMBER = "conversations.stop_of_member"


def stop_work_in(*, user_id: int, organisation_id: int) -> None:
    """Have the person's agents in this organisation stop, once the transaction is committed."""
    dispatch(STOP_OF_MEMBER, user_id=user_id, organisation_id=organisation_id)


def stop_work_everywhere(*, user: User) -> None:
    """The same in every organisation the person belongs to: their account was closed."""
    for organisation_id in user.memberships.values_list("organisation_id", flat=True):
        stop_work_in(user_id=user.pk, organisation_id=organisation_id)
