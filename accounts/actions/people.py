"""What staff change about accounts, and what a lost password ends.

Memberships are `members`' part. A superuser is touched by superusers alone, and what would let staff
sign in as somebody else, or hand out power, is a superuser's too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.actions.handed_out import take_back_everything, take_back_what_is_lost
from accounts.actions.tokens import revoke_all_tokens
from accounts.departures import stop_work_everywhere
from accounts.handing_over import hand_over_service_accounts
from accounts.happenings import Happening, emit
from accounts.leaving import delete_row
from accounts.models import Organisation, User
from harness.errors import Forbidden, NotFound

POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")
"""What only a superuser hands out: whoever may grant it to others may grant it to themselves."""
IDENTITY = ("username", "email", "password")
"""What one signs in with: whoever sets it for another can be that other."""


def may_change(actor: User, user: User | None) -> bool:
    """Whether staff who hold the permission may change this account at all."""
    return user is None or not user.is_superuser or (actor.is_active and actor.is_superuser)


def save_account(*, actor: User, user: User, changed: Collection[str]) -> User:
    """Store what staff changed in the form of an account, and nothing else; `changed` names the fields.

    Raises Forbidden for a superuser's account, powers and what one signs in with, unless the actor is
    a superuser, and NotFound for one that is gone. An account that was closed stops working at once, and what
    it promised as a manager or superuser is withdrawn. One that its person deleted and that is opened again
    is deleted no further, also when it is closed again.
    """
    is_new = user.pk is None
    if not actor.is_superuser:
        before = None if is_new else User.objects.filter(pk=user.pk).first()
        reserved = set(POWERS) | (set() if is_new else set(IDENTITY))
        if not may_change(actor, before) or reserved & set(changed):
            raise Forbidden(_("Only a superuser may change this."))
    with transaction.atomic():
        if not is_new:
            held = User.objects.select_for_update(no_key=True).filter(pk=user.pk).first()
            if held is None:
                raise NotFound(_("This account is gone."))
            if "is_active" not in changed:  # she may have deleted it since it was read
                user.is_active, user.deleting_since = held.is_active, held.deleting_since
        if user.is_active:
            user.deleting_since = None
        fields = User._meta.concrete_fields  # noqa: SLF001 - Django documents it
        columns = {field.name for field in fields} & set(changed)
        user.save(
            update_fields=None if is_new else {*columns, "is_active", "deleting_since"},
            force_insert=is_new,
        )
        emit(
            Happening.ACCOUNT_CHANGED,
            actor=actor,
            member=user,
            changed=["made"] if is_new else sorted(changed),
        )
        if not is_new and {"is_active", "is_superuser"} & set(changed):
            take_back_what_is_lost(actor=actor, giver=user)
    if "is_active" in changed and not user.is_active:
        stop_work_everywhere(user=user)
    return user


def delete_account(*, actor: User, user: User) -> None:
    """Delete an account at once with all that is its own; organisations stay, also those that nobody else
    belongs to. Only a superuser may; nothing brings it back."""
    if not (actor.is_active and actor.is_superuser):
        raise Forbidden(
            _("Only a superuser may delete an account."),
            hint=_("Close it by taking “active” away."),
        )
    stop_work_everywhere(user=user)
    with transaction.atomic():
        # Who listens holds what is hers, before she is held: so does whoever begins something for her.
        emit(Happening.ACCOUNT_DELETED, actor=actor, deleted=user.uid, username=user.username)
        User.objects.select_for_update(no_key=True).filter(pk=user.pk).first()
        take_back_everything(actor=actor, giver=user)
        made_in = Organisation.objects.filter(memberships__user__made_by=user).distinct()
        for organisation_id in made_in.values_list("pk", flat=True):
            hand_over_service_accounts(actor=actor, maker=user, organisation_id=organisation_id)
        delete_row(user)


def take_sign_in_away(*, actor: User, means: EmailAddress | Authenticator | SocialAccount) -> None:
    """Remove a second factor, an address or an outside account of somebody's, as the operator does for
    whoever has lost it. Only a superuser may."""
    if not (actor.is_active and actor.is_superuser):
        raise Forbidden(_("Only a superuser may change what somebody signs in with."))
    with transaction.atomic():
        emit(
            Happening.FACTOR_REMOVED,
            actor=actor,
            member=means.user,
            kind=means.type if isinstance(means, Authenticator) else type(means).__name__.lower(),
        )
        means.delete()


def end_after_reset(*, actor: User, user: User) -> int:
    """What a password that was reset by mail, or set by a superuser, ends beside the sessions: every
    token of hers, since whoever had the password may have made one. How many that were."""
    if actor.pk != user.pk and not (actor.is_active and actor.is_superuser):
        raise Forbidden(_("Only a superuser may change what somebody signs in with."))
    whose: dict[str, Any] = {} if actor.pk == user.pk else {"member": user}
    with transaction.atomic():
        ended = revoke_all_tokens(actor=actor, user=user)
        emit(Happening.PASSWORD_RESET, actor=actor, tokens_revoked=ended, **whose)
    return ended
