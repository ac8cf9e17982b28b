"""Service accounts: who an integration is, when it is not a person. They never sign in.

Made and removed by the managers of the organisation they belong to; what they may do follows from
their role there and from the scopes of their tokens (`tokens`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from accounts.actions.tokens import revoke_tokens_of
from accounts.departures import stop_work_in
from accounts.happenings import Happening, emit
from accounts.models import Membership, Organisation, Role, User
from accounts.permissions import require_manager
from accounts.persons import whose_place
from accounts.roles import parse_role, require_role_for_service
from harness.errors import Conflict, Invalid, LimitReached, NotFound, TooLarge

NAME_LENGTH = 80


def create_service_account(
    *, actor: User, organisation: Organisation, name: str, role: str = Role.MEMBER
) -> User:
    """A new account without password or address, a member of this organisation alone."""
    require_manager(actor, organisation)
    wanted = parse_role(role)
    require_role_for_service(wanted)
    name = _clean_name(name)
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).filter(pk=organisation.pk).first()
        limit = settings.AGENTSITE_SERVICE_ACCOUNTS_PER_ORGANISATION
        held = Membership.objects.filter(
            organisation=organisation, user__kind=User.Kind.SERVICE
        ).count()
        if held >= limit:
            raise LimitReached(
                _("The organisation has %(count)d service accounts; it may have %(limit)d.")
                % {"count": held, "limit": limit},
                hint=_("Remove one, or give an existing one a further token."),
            )
        namesakes = User.objects.filter(
            kind=User.Kind.SERVICE, first_name=name, memberships__organisation=organisation
        )
        if namesakes.exists():
            raise Conflict(
                _("There is already a service account of this name."),
                hint=_("Choose another name, or give the existing one a further token."),
            )
        account = User(
            username=f"service-{get_random_string(16, 'abcdefghjkmnpqrstvwxyz0123456789')}",
            first_name=name,
            kind=User.Kind.SERVICE,
            # Through one account somebody makes no further places for herself.
            made_by_id=whose_place(actor),
        )
        account.set_unusable_password()
        account.save(force_insert=True)
        Membership.objects.create(user=account, organisation=organisation, role=wanted)
        emit(
            Happening.SERVICE_MADE,
            actor=actor,
            organisation=organisation,
            member=account,
            account=name,
            role=wanted.value,
        )
    return account


def remove_service_account(*, actor: User, organisation: Organisation, account: User) -> None:
    """End its membership, its tokens and its work; what it made stays. Its uploads and vaults, which were
    its alone, end with it."""
    require_manager(actor, organisation)
    with transaction.atomic():
        membership = (
            Membership.objects.select_for_update(of=("self",))
            .filter(user=account, organisation=organisation, user__kind=User.Kind.SERVICE)
            .first()
        )
        if membership is None:
            raise NotFound(_("There is no such service account."))
        membership.delete()
        emit(
            Happening.SERVICE_REMOVED,
            actor=actor,
            organisation=organisation,
            member=account,
            account=account.first_name,
        )
        User.objects.filter(pk=account.pk).update(is_active=False)
        revoke_tokens_of(user=account, organisation=organisation)
        stop_work_in(user_id=account.pk, organisation_id=organisation.pk)


def _clean_name(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise Invalid(
            _("A service account needs a name."),
            field="name",
            hint=_("Say which integration it is for."),
        )
    if len(name) > NAME_LENGTH:
        raise TooLarge(
            _("The name is longer than %(limit)d characters.") % {"limit": NAME_LENGTH},
            field="name",
            hint=_("Shorten it."),
        )
    return name
