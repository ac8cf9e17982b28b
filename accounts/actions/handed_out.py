"""What somebody gave out or was shown as a manager, ended when she is one no longer; and what was given
to her and is not needed any more.

Invitations and secrets of service accounts would be her way back in. Giving out is `invitations`' and
`tokens`'; that the role is lost, the business of `members` and `people`, who call this in their own
transaction. What is the organisation's own, such as its webhooks and keys, stays.
"""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.db.models import Q
from django.utils import timezone

from accounts.actions.tokens import revoke_tokens_shown_to
from accounts.happenings import Happening, emit
from accounts.models import Invitation, Organisation, Role, User
from accounts.permissions import may_grant


def take_back_what_is_lost(
    *, actor: User, giver: User, organisation: Organisation | None = None
) -> int:
    """Withdraw what `giver` promised and could not promise now, and end secrets of service accounts that
    she was shown and could not be shown now, there or everywhere. How many secrets that were."""
    for invitation in _promised_by(giver, organisation):
        if not may_grant(giver, invitation.organisation, Role(invitation.role)):
            take_back_invitation(actor=actor, invitation=invitation)
    return revoke_tokens_shown_to(actor=actor, maker=giver, organisation=organisation)


def take_back_everything(*, actor: User, giver: User) -> None:
    """The same for all that she gave out anywhere: her account is about to be gone."""
    for invitation in _promised_by(giver, None):
        take_back_invitation(actor=actor, invitation=invitation)
    revoke_tokens_shown_to(actor=actor, maker=giver, all_of_them=True)


def take_back_invitations_of(*, actor: User, person: User, organisation: Organisation) -> None:
    """Withdraw invitations to any address of hers there: she has joined, or is to stay away.

    An address that she only claims is not hers: else she could end other people's invitations.
    """
    proven = EmailAddress.objects.filter(user=person, verified=True)
    to_her = Q()
    for address in {person.email, *proven.values_list("email", flat=True)} - {""}:
        to_her |= Q(email__iexact=address)
    if not to_her:
        return
    waiting = Invitation.objects.filter(to_her, organisation=organisation, accepted_at=None)
    for invitation in waiting.select_related("organisation").order_by("pk"):
        take_back_invitation(actor=actor, invitation=invitation)


def take_back_invitation(*, actor: User, invitation: Invitation) -> bool:
    """Whether it was still there to be withdrawn."""
    deleted, _rows = Invitation.objects.filter(pk=invitation.pk, accepted_at=None).delete()
    if deleted:
        emit(
            Happening.INVITATION_WITHDRAWN,
            actor=actor,
            organisation=invitation.organisation,
            invitation=invitation.uid,
            email=invitation.email,
        )
    return bool(deleted)


def _promised_by(giver: User, organisation: Organisation | None) -> list[Invitation]:
    found = Invitation.objects.open_at(timezone.now()).filter(invited_by=giver)
    if organisation is not None:
        found = found.filter(organisation=organisation)
    return list(found.select_related("organisation").order_by("pk"))
