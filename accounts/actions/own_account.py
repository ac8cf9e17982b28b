"""A person deletes her own account: closed at once, and deleted bit by bit behind that.

A superuser deletes others' accounts (`people`). What goes along is `accounts.leaving`'s.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Collection

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Q
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actions.handed_out import take_back_everything
from accounts.actions.tokens import revoke_all_tokens
from accounts.departures import stop_work_everywhere
from accounts.handing_over import hand_over_service_accounts
from accounts.happenings import Happening, emit
from accounts.leaving import (
    anything_left,
    cleared,
    closed_for_good,
    delete_row,
    is_last_superuser,
    left_ownerless,
    only_hers,
)
from accounts.models import Organisation, User
from harness.errors import Conflict, Forbidden, Invalid
from jobs.dispatch import dispatch

logger = logging.getLogger(__name__)

DELETE = "accounts.delete_closed"


def delete_own_account(*, actor: User, typed: str) -> None:
    """Close the account for good, and have all that is hers deleted. `typed` is her user name, as she was
    asked to write it.

    From this moment on nobody can sign in with it, no token or session of hers opens anything, and her agents
    stop. Raises Forbidden for a service account and where the operator keeps accounts, Invalid for another
    name, Conflict for the last superuser and while she alone owns an organisation of others.
    """
    if actor.is_service or not actor.is_active:
        raise Forbidden(_("A person deletes her own account."))
    if not settings.AGENTSITE_OWN_ACCOUNT_DELETION:
        raise Forbidden(
            _("On this server accounts are deleted by its operator."), hint=_("Ask there.")
        )
    if typed.strip() != actor.username:
        raise Invalid(
            _("This is not your user name."),
            field="username",
            hint=_("Type “%(name)s” to confirm.") % {"name": actor.username},
        )
    with transaction.atomic():
        # Two owners cannot leave each other alone, and nobody is made one meanwhile.
        _hold_organisations(actor)
        # All superusers with her: two of them cannot leave the server at once.
        rows = User.objects.select_for_update(no_key=True).order_by("pk")
        list(rows.filter(Q(pk=actor.pk) | Q(is_superuser=True)) if actor.is_superuser else ())
        held = rows.filter(pk=actor.pk).first()
        if held is None or not held.is_active:  # by staff, or by another request of hers
            raise Forbidden(_("This account was closed meanwhile."))
        if is_last_superuser(held):
            raise Conflict(
                _("You are the last superuser of this server."),
                hint=_("Make somebody else one first."),
            )
        if names := [each.name for each in left_ownerless(held)]:
            raise Conflict(
                _("Nobody else owns %(names)s.") % {"names": ", ".join(names)},
                hint=_("Make somebody else an owner, or remove the other members first."),
            )
        emit(Happening.ACCOUNT_DELETED, actor=held, deleted=held.uid, username=held.username)
        take_back_everything(actor=held, giver=held)
        revoke_all_tokens(actor=held, user=held)
        hers = set(only_hers(held).values_list("pk", flat=True))
        made_in = Organisation.objects.filter(memberships__user__made_by=held).exclude(pk__in=hers)
        for organisation_id in made_in.values_list("pk", flat=True).distinct():
            hand_over_service_accounts(actor=held, maker=held, organisation_id=organisation_id)
        for service in _services_of(hers):
            revoke_all_tokens(actor=held, user=service)
            service.is_active = False
            service.save(update_fields=["is_active"])
            stop_work_everywhere(user=service)
        held.is_active, held.deleting_since = False, timezone.now()
        held.save(update_fields=["is_active", "deleting_since"])
        stop_work_everywhere(user=held)
        dispatch(DELETE)
        transaction.on_commit(lambda: _say_so(held))
    actor.is_active = False


def delete_closed() -> None:
    """Go on with accounts that their persons closed. One that is still at work or cannot be deleted now waits
    for the next time, and no other waits for it. One that a superuser opened again stays, also when it is
    closed once more."""
    # In whatever way that was done.
    User.objects.filter(is_active=True, deleting_since__isnull=False).update(deleting_since=None)
    for user in closed_for_good().order_by("deleting_since", "pk"):
        try:
            if cleared(user):
                _delete(user.pk)
        except Exception:
            logger.exception("the account %s could not be deleted further", user.uid)


def _delete(pk: int) -> None:
    with transaction.atomic():
        user = User.objects.filter(pk=pk).first()
        if user is None:
            return
        _hold_organisations(user)
        user = closed_for_good().select_for_update().filter(pk=pk).first()
        # What was under way when she closed it may have ended since all was cleared.
        if user is None or anything_left(user):
            return
        for organisation in only_hers(user):
            emit(
                Happening.ORGANISATION_DELETED,
                actor=user,
                deleted=organisation.uid,
                name=organisation.name,
                members=1,
            )
            keys = [service.pk for service in _services_of({organisation.pk})]
            organisation.delete()
            User.objects.filter(pk__in=keys, memberships=None).delete()
        delete_row(user)


def _services_of(organisations: Collection[int]) -> list[User]:
    members = User.objects.filter(memberships__organisation__in=organisations)
    return list(members.filter(kind=User.Kind.SERVICE).distinct().order_by("pk"))


def _hold_organisations(user: User) -> None:
    mine = Organisation.objects.filter(memberships__user=user).values("pk")
    list(Organisation.objects.select_for_update().filter(pk__in=mine).order_by("pk"))


def _say_so(user: User) -> None:
    if not (settings.AGENTSITE_EMAIL_CONFIGURED and user.email):
        return
    body = render_to_string("accounts/account_deleted_mail.txt", {"user": user})
    try:
        send_mail(_("Your account is deleted"), body, None, [user.email])
    except (OSError, smtplib.SMTPException):
        logger.warning("The mail that the account %s is deleted could not be sent.", user.uid)
