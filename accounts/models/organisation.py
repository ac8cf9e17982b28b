"""The tenant: an organisation, who belongs to it in which role, and who is invited.

Every later object belongs to a user in an organisation. What may be done is decided in
`accounts.actions`; here are only the rows.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models.user import User
from harness.ids import new_id


def new_organisation_uid() -> str:
    return new_id("org")


def new_invitation_uid() -> str:
    return new_id("inv")


class Role(models.TextChoices):
    OWNER = "owner", _("Owner")
    ADMIN = "admin", _("Administrator")
    MEMBER = "member", _("Member")
    REVIEWER = "reviewer", _("Reviewer")

    @property
    def manages(self) -> bool:
        """Whether this role manages members and the organisation's provider keys."""
        return self in (Role.OWNER, Role.ADMIN)

    def may_grant(self, other: Role) -> bool:
        """An owner grants any role; an administrator any but owner; the rest none."""
        return self is Role.OWNER or (self is Role.ADMIN and other is not Role.OWNER)


class OrganisationQuerySet(models.QuerySet["Organisation"]):
    def visible_to(self, user: User | AnonymousUser) -> OrganisationQuerySet:
        if not user.is_authenticated:
            return self.none()
        return self.of_member(user)

    def of_member(self, user: Any) -> OrganisationQuerySet:
        return self.filter(memberships__user=user)


class ReviewersSee(models.TextChoices):
    """What of somebody's conversation its organisation shows those who decide on a call of it."""

    CALL = "call", _("The call alone")
    REQUEST = "request", _("Also the conversation's title and what the person asked for")
    STEPS = "steps", _("Also the steps that led to it")


class Organisation(models.Model):
    uid = models.CharField(
        _("public id"), max_length=40, unique=True, default=new_organisation_uid, editable=False
    )
    name = models.CharField(_("name"), max_length=120)
    slug = models.SlugField(_("short name"), max_length=60, unique=True)
    personal_of = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="personal_organisation",
        verbose_name=_("personal organisation of"),
    )
    """Whose personal organisation this is; unique, so that a race cannot make two."""
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("made by"),
    )
    """Who is counted as having made it; empty for personal ones and once that account is gone."""
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="organisations"
    )
    reviewers_see = models.CharField(
        _("what reviewers see"),
        max_length=10,
        choices=ReviewersSee,
        default=ReviewersSee.REQUEST,
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects: ClassVar[models.Manager[Organisation]] = OrganisationQuerySet.as_manager()

    class Meta:
        verbose_name = _("organisation")
        verbose_name_plural = _("organisations")
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class MembershipQuerySet(models.QuerySet["Membership"]):
    def visible_to(self, user: User | AnonymousUser) -> MembershipQuerySet:
        """One sees the members of the organisations one belongs to."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(organisation__memberships__user=user)

    def owners(self) -> MembershipQuerySet:
        return self.filter(role=Role.OWNER)

    def role_in(self, organisation: Organisation, user: User | AnonymousUser) -> Role | None:
        """The user's role in the organisation, or None for a stranger."""
        if not user.is_authenticated:
            return None
        role = (
            self.filter(organisation=organisation, user=user).values_list("role", flat=True).first()
        )
        return Role(role) if role else None


class Membership(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="memberships",
        verbose_name=_("person"),
    )
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        related_name="memberships",
        verbose_name=_("organisation"),
    )
    role = models.CharField(_("role"), max_length=16, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects: ClassVar[models.Manager[Membership]] = MembershipQuerySet.as_manager()

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "organisation"],
                name="one_membership_per_person",
                violation_error_message=_("This person already belongs to the organisation."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.organisation} · {self.get_role_display()}"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def visible_to(self, user: User | AnonymousUser) -> InvitationQuerySet:
        """Whoever manages an organisation sees its invitations."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(
            organisation__memberships__user=user,
            organisation__memberships__role__in=[role for role in Role if role.manages],
        )

    def open_at(self, now: datetime) -> InvitationQuerySet:
        return self.filter(accepted_at=None, expires_at__gt=now)


class Invitation(models.Model):
    """A promise of membership to whoever holds the token and the e-mail address."""

    uid = models.CharField(
        _("public id"), max_length=40, unique=True, default=new_invitation_uid, editable=False
    )
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        related_name="invitations",
        verbose_name=_("organisation"),
    )
    email = models.EmailField(_("email address"))
    role = models.CharField(_("role"), max_length=16, choices=Role.choices, default=Role.MEMBER)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    """SHA-256 of the token in hexadecimal; the token itself is shown once and never stored."""
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("invited by"),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"))
    accepted_at = models.DateTimeField(_("accepted at"), null=True, blank=True)

    objects: ClassVar[models.Manager[Invitation]] = InvitationQuerySet.as_manager()

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "email"],
                condition=models.Q(accepted_at=None),
                name="one_open_invitation_per_email",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} → {self.organisation}"

    def is_open(self, now: datetime) -> bool:
        return self.accepted_at is None and self.expires_at > now
