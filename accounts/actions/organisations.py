"""Organisations come into being."""

from __future__ import annotations

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.happenings import Happening, emit
from accounts.models import Membership, Organisation, ReviewersSee, Role, User
from accounts.permissions import require_manager
from harness.errors import Forbidden, Invalid, LimitReached

NAME_LENGTH = 120


def create_organisation(*, actor: User, name: str) -> Organisation:
    """A new organisation that `actor` owns. Raises Invalid for an empty or too long name, and
    LimitReached for somebody who made or owns AGENTSITE_ORGANISATIONS_PER_PERSON already."""
    if actor.is_service:
        raise Forbidden(
            _("A service account makes no organisations."), hint=_("Ask one of its managers.")
        )
    if not actor.is_active:
        raise Forbidden(_("An inactive account cannot create an organisation."))
    name = clean_name(name)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).filter(pk=actor.pk).first()
        _require_room(actor)
        organisation = Organisation.objects.create(name=name, slug=_free_slug(name), made_by=actor)
        Membership.objects.create(user=actor, organisation=organisation, role=Role.OWNER)
        emit(Happening.ORGANISATION_MADE, actor=actor, organisation=organisation, name=name)
    return organisation


def require_room_after(user: User) -> None:
    """LimitReached if somebody who leaves her personal organisation, and so gets another one, has made
    as many as she may. Else leaving them one by one would make any number."""
    limit = settings.AGENTSITE_ORGANISATIONS_PER_PERSON
    if not user.is_superuser and _made_or_owned(user) >= limit:
        raise LimitReached(
            _("This is the person's own space, and she may not have another one."),
            hint=_("Ask an administrator of this server."),
        )


def _made_or_owned(user: User) -> int:
    """Handing one to somebody else makes no room: budgets would be escaped by that."""
    owned = Q(memberships__user=user, memberships__role=Role.OWNER)
    mine = Organisation.objects.filter(owned | Q(made_by=user)).filter(
        Q(personal_of=None) | ~Q(personal_of=user)
    )
    return mine.distinct().count()


def _require_room(actor: User) -> None:
    if actor.is_superuser:
        return
    limit = settings.AGENTSITE_ORGANISATIONS_PER_PERSON
    count = _made_or_owned(actor)
    if count >= limit:
        raise LimitReached(
            _("You have made or own %(count)d organisations; %(limit)d are allowed.")
            % {"count": count, "limit": limit},
            hint=_("Work in one of them, or ask an administrator of this server."),
        )


def rename_organisation(*, actor: User, organisation: Organisation, name: str) -> Organisation:
    """Give the organisation another name; its short name in addresses stays."""
    require_manager(actor, organisation)
    name = clean_name(name)
    with transaction.atomic():
        emit(
            Happening.ORGANISATION_RENAMED,
            actor=actor,
            organisation=organisation,
            name=name,
            before=organisation.name,
        )
        organisation.name = name
        organisation.save(update_fields=["name"])
    return organisation


def set_reviewers_see(*, actor: User, organisation: Organisation, shown: str) -> Organisation:
    """Say what of its members' conversations those see who decide on a call. Raises Invalid."""
    require_manager(actor, organisation)
    if shown not in ReviewersSee.values:
        raise Invalid(
            _("There is no such choice."),
            field="reviewers_see",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(ReviewersSee.values)},
        )
    with transaction.atomic():
        emit(
            Happening.REVIEWERS_SEE_SET,
            actor=actor,
            organisation=organisation,
            to=shown,
            before=organisation.reviewers_see,
        )
        organisation.reviewers_see = shown
        organisation.save(update_fields=["reviewers_see"])
    return organisation


def delete_organisation(*, actor: User, organisation: Organisation) -> None:
    """Delete an organisation with everything in it. Only the operator may; nothing brings it back."""
    if not (actor.is_active and actor.is_superuser):
        raise Forbidden(_("Only the operator of this server may delete an organisation."))
    with transaction.atomic():
        emit(
            Happening.ORGANISATION_DELETED,
            actor=actor,
            deleted=organisation.uid,
            name=organisation.name,
            members=organisation.memberships.count(),
        )
        organisation.delete()


def ensure_personal_organisation(*, user: User) -> Organisation:
    """The personal organisation of `user`, made if there is none; two calls at once make one.

    One that removed its person is hers no longer: she gets another, and no way back.
    """
    existing = Organisation.objects.filter(personal_of=user, memberships__user=user).first()
    if existing is not None:
        return existing
    name = _("%(name)s's space") % {"name": str(user)[: NAME_LENGTH - 20]}
    try:
        with transaction.atomic():
            lost = Organisation.objects.filter(personal_of=user)
            lost.exclude(memberships__user=user).update(personal_of=None, made_by=user)
            made = Organisation.objects.create(
                name=name, slug=_free_slug(user.username), personal_of=user
            )
            Membership.objects.create(user=user, organisation=made, role=Role.OWNER)
    except IntegrityError:
        return Organisation.objects.get(personal_of=user)
    return made


def clean_name(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise Invalid(
            _("An organisation needs a name."), field="name", hint=_("Type at least one character.")
        )
    if len(name) > NAME_LENGTH:
        raise Invalid(
            _("The name is longer than %(limit)d characters.") % {"limit": NAME_LENGTH},
            field="name",
            hint=_("Shorten it."),
        )
    return name


def _free_slug(name: str) -> str:
    """A readable beginning and a random end: unique without asking the table first."""
    readable = slugify(name)[:40].strip("-") or "organisation"
    return f"{readable}-{get_random_string(8, 'abcdefghjkmnpqrstvwxyz0123456789')}"
