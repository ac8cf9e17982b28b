"""A person who can sign in, or a service account, which only its tokens speak for.

What they may see and do follows from their memberships.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from harness.ids import new_id


def new_user_uid() -> str:
    return new_id("user")


class User(AbstractUser):
    class Kind(models.TextChoices):
        PERSON = "person", _("Person")
        SERVICE = "service", _("Service account")

    uid = models.CharField(
        _("public id"), max_length=40, unique=True, default=new_user_uid, editable=False
    )
    email = models.EmailField(_("email address"), blank=True)
    kind = models.CharField(
        _("kind"), max_length=10, choices=Kind.choices, default=Kind.PERSON, editable=False
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("made by"),
    )
    """Of a service account: who made it, or whom it was handed to when she left (`handing_over`). What it
    spends and what it holds counts as hers."""

    language = models.CharField(
        _("language"), max_length=10, blank=True, choices=settings.LANGUAGES, editable=False
    )
    """Of pages and mails; empty: what the browser asks for, and the site's own in mails."""

    deleting_since = models.DateTimeField(null=True, editable=False)
    """She deleted her account then: it is closed, and what is hers is being deleted. Opened again, it
    stays."""

    objects: ClassVar[UserManager[User]] = UserManager()  # type: ignore[assignment]

    class Meta(AbstractUser.Meta):
        verbose_name = _("person")  # type: ignore[assignment]
        verbose_name_plural = _("people")  # type: ignore[assignment]
        constraints = [
            models.UniqueConstraint(
                Lower("email"),
                condition=~models.Q(email=""),
                name="one_person_per_email",
                violation_error_message=_("Another person already has this e-mail address."),
            ),
            models.UniqueConstraint(
                Lower("username"),
                name="one_person_per_username",
                violation_error_message=_("Another person already has this user name."),
            ),
        ]

    def __str__(self) -> str:
        return self.get_full_name() or self.username

    @property
    def is_service(self) -> bool:
        """Made by an organisation's managers for an integration; it never signs in."""
        return self.kind == self.Kind.SERVICE
