"""Organisations come into being."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.crypto import get_random_string
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.models import Membership, Organisation, Role, User
from accounts.permissions import require_manager
from harness.errors import Forbidden, Invalid

NAME_LENGTH = 120


def create_organisation(*, actor: User, name: str) -> Organisation:
    """A new organisation that `actor` owns. Raises Invalid for an empty or too long name."""
    if not actor.is_active:
        raise Forbidden(_("An inactive account cannot create an organisation."))
    name = clean_name(name)
    with transaction.atomic():
        organisation = Organisation.objects.create(name=name, slug=_free_slug(name))
        Membership.objects.create(user=actor, organisation=organisation, role=Role.OWNER)
    return organisation


def rename_organisation(*, actor: User, organisation: Organisation, name: str) -> Organisation:
    """Give the organisation another name; its short name in addresses stays."""
    require_manager(actor, organisation)
    organisation.name = clean_name(name)
    organisation.save(update_fields=["name"])
    return organisation


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
            lost.exclude(memberships__user=user).update(personal_of=None)
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
