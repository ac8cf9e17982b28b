"""A sealed key for a model service, held for the deployment, an organisation or one person.

Sealing and opening is `accounts.vault`'s; which key counts is `accounts.provider_keys`'.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models.organisation import Organisation, Role
from accounts.models.user import User
from harness.ids import new_id


def new_provider_key_uid() -> str:
    return new_id("pkey")


class Scope(models.TextChoices):
    DEPLOYMENT = "deployment", _("Everybody on this server")
    ORGANISATION = "organisation", _("My organisation")
    USER = "user", _("Only me")


class ProviderKeyQuerySet(models.QuerySet["ProviderKey"]):
    def visible_to(self, user: User | AnonymousUser) -> ProviderKeyQuerySet:
        """One's own, those of organisations one manages, and for superusers the deployment's."""
        if not user.is_authenticated:
            return self.none()
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=[role for role in Role if role.manages]
        )
        condition = models.Q(user=user) | models.Q(organisation__in=managed)
        if user.is_superuser:
            condition |= models.Q(user=None, organisation=None)
        return self.filter(condition)


class ProviderKey(models.Model):
    uid = models.CharField(
        _("public id"), max_length=40, unique=True, default=new_provider_key_uid, editable=False
    )
    provider = models.CharField(_("provider"), max_length=60)
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="provider_keys",
        verbose_name=_("organisation"),
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="provider_keys",
        verbose_name=_("person"),
    )
    base_url = models.URLField(_("base URL"), max_length=500, blank=True)
    sealed_key = models.TextField(blank=True, editable=False)
    """Ciphertext; empty for a server that needs no key."""
    last_four = models.CharField(
        _("last four characters"), max_length=4, blank=True, editable=False
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("created by"),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    objects: ClassVar[models.Manager[ProviderKey]] = ProviderKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("provider key")
        verbose_name_plural = _("provider keys")
        ordering = ["provider", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(user=None) | models.Q(organisation=None),
                name="provider_key_has_one_scope",
            ),
            models.UniqueConstraint(
                fields=["provider"],
                condition=models.Q(user=None, organisation=None),
                name="one_deployment_key_per_provider",
            ),
            models.UniqueConstraint(
                fields=["organisation", "provider"],
                condition=models.Q(organisation__isnull=False),
                name="one_organisation_key_per_provider",
            ),
            models.UniqueConstraint(
                fields=["user", "provider"],
                condition=models.Q(user__isnull=False),
                name="one_user_key_per_provider",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} ({self.get_scope_label()})"

    @property
    def scope(self) -> Scope:
        if self.user_id is not None:
            return Scope.USER
        if self.organisation_id is not None:
            return Scope.ORGANISATION
        return Scope.DEPLOYMENT

    def get_scope_label(self) -> str:
        return str(self.scope.label)
