"""A person says whether her conversations are read, once they rest, for what is to be remembered."""

from __future__ import annotations

from accounts.models import Organisation, User
from accounts.permissions import require_member
from learning.models import LearningOff


def switch_learning(*, actor: User, organisation: Organisation, on: bool) -> None:
    """What is remembered stays, and agents remember as before. Raises NotFound for a stranger to the
    organisation."""
    require_member(actor, organisation)
    if on:
        LearningOff.objects.filter(user=actor, organisation=organisation).delete()
    else:
        LearningOff.objects.get_or_create(user=actor, organisation=organisation)
