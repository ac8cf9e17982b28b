"""Inviting somebody into an organisation, and accepting.

The token is shown to the inviter once and stored only as a hash. It works once, until it expires,
only for the invited address, and only as long as the inviter could still promise the role.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actions.handed_out import take_back_invitation, take_back_invitations_of
from accounts.happenings import Happening, emit
from accounts.models import Invitation, Membership, Organisation, Role, User
from accounts.permissions import may_grant, require_manager
from accounts.roles import parse_role
from accounts.tokens import hash_token, new_token
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound

EMAIL_LENGTH = 254
"""Django's own limit for an e-mail address (RFC 3696)."""


@dataclass(frozen=True, slots=True)
class IssuedInvitation:
    invitation: Invitation
    token: str = field(repr=False)
    """Known only now; only its hash is stored."""


def invite_member(
    *, actor: User, organisation: Organisation, email: str, role: str
) -> IssuedInvitation:
    """Invite an address; a new invitation to the same address replaces the open one."""
    own = require_manager(actor, organisation)
    email = _clean_email(email)
    wanted = parse_role(role)
    if not own.may_grant(wanted):
        raise Forbidden(_("Only an owner may invite an owner."), hint=_("Choose another role."))
    token = new_token()
    now = timezone.now()
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).filter(pk=organisation.pk).first()
        if Membership.objects.filter(organisation=organisation, user__email__iexact=email).exists():
            raise Conflict(
                _("%(email)s already belongs to this organisation.") % {"email": email},
                hint=_("Change the role in the list of members."),
            )
        waiting = Invitation.objects.filter(organisation=organisation, accepted_at=None)
        waiting.filter(email__iexact=email).delete()
        if waiting.open_at(now).count() >= settings.AGENTSITE_MAX_OPEN_INVITATIONS:
            raise LimitReached(
                _("There are already %(count)d open invitations.")
                % {"count": settings.AGENTSITE_MAX_OPEN_INVITATIONS},
                hint=_("Withdraw some first."),
            )
        invitation = Invitation.objects.create(
            organisation=organisation,
            email=email,
            role=wanted,
            token_hash=hash_token(token),
            invited_by=actor,
            expires_at=now + timedelta(days=settings.AGENTSITE_INVITATION_DAYS),
        )
        emit(
            Happening.INVITED,
            actor=actor,
            organisation=organisation,
            invitation=invitation.uid,
            email=email,
            role=wanted.value,
        )
    return IssuedInvitation(invitation=invitation, token=token)


def withdraw_invitation(*, actor: User, invitation: Invitation) -> None:
    """Take an open invitation back; its link stops working."""
    require_manager(actor, invitation.organisation)
    with transaction.atomic():
        if not take_back_invitation(actor=actor, invitation=invitation):
            raise Conflict(
                _("This invitation was accepted meanwhile."), hint=_("Remove the member instead.")
            )


def find_open_invitation(token: str) -> Invitation:
    """The invitation a token opens. NotFound for one that is wrong, used, withdrawn or expired, and for
    one whose inviter may not give that role any more."""
    invitation = (
        Invitation.objects.open_at(timezone.now())
        .select_related("organisation", "invited_by")
        .filter(token_hash=hash_token(token))
        .first()
    )
    if invitation is None or not _is_backed(invitation):
        raise _not_found()
    return invitation


def accept_invitation(*, actor: User, token: str) -> Membership:
    """Join. Works once; Forbidden for anybody but the invited address. Further invitations of hers to
    the same organisation end."""
    invitation = find_open_invitation(token)
    if not actor.is_active or actor.email.lower() != invitation.email.lower():
        raise Forbidden(
            _("This invitation is for %(email)s.") % {"email": invitation.email},
            hint=_("Sign in with that address, or ask for an invitation to yours."),
        )
    with transaction.atomic():
        # Whoever closes the inviter's account or takes her role meanwhile waits, or was first.
        organisations = Organisation.objects.filter(pk=invitation.organisation_id)
        organisations.select_for_update(no_key=True).first()
        if (inviter := invitation.invited_by) is not None:
            User.objects.select_for_update(no_key=True).filter(pk=inviter.pk).first()
        invitation = find_open_invitation(token)
        waiting = Invitation.objects.filter(pk=invitation.pk, accepted_at=None)
        if not waiting.update(accepted_at=timezone.now()):
            raise _not_found()
        membership, made = Membership.objects.get_or_create(
            user=actor, organisation=invitation.organisation, defaults={"role": invitation.role}
        )
        if made:
            emit(
                Happening.MEMBER_JOINED,
                actor=actor,
                organisation=invitation.organisation,
                member=actor,
                role=membership.role,
                invitation=invitation.uid,
            )
        take_back_invitations_of(actor=actor, person=actor, organisation=invitation.organisation)
    return membership


def _not_found() -> NotFound:
    return NotFound(
        _("This invitation is not valid any more."),
        hint=_("Ask whoever invited you for a new link."),
    )


def _is_backed(invitation: Invitation) -> bool:
    """Whether whoever made it could make it now."""
    inviter = invitation.invited_by
    return inviter is not None and may_grant(
        inviter, invitation.organisation, Role(invitation.role)
    )


def _clean_email(email: str) -> str:
    email = email.strip()
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid(
            _("This is not an e-mail address."),
            field="email",
            hint=_("Type it like name@example.org."),
        ) from None
    if len(email) > EMAIL_LENGTH:
        raise Invalid(_("The e-mail address is too long."), field="email", hint=_("Shorten it."))
    return email
