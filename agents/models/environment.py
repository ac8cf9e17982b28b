"""Environments: reusable descriptions of where an agent's tools run and what they may use.

The sandbox's policy is kept as the text that staff wrote; what it means is `sandbox`'s. An
organisation's own rules can only take away from what an environment allows.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from harness.ids import new_id
from sandbox.policy import Policy, read_policy

DEFAULT_UPLOAD_LIMIT = 10 * 1024 * 1024


def new_environment_id() -> str:
    return new_id("env")


class EnvironmentQuerySet(models.QuerySet["Environment"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(
            Q(organisation__isnull=True) | Q(organisation__memberships__user=user)
        ).distinct()

    def usable_in(self, organisation: Organisation) -> Self:
        """Those that work done for this organisation may use."""
        return self.filter(Q(organisation__isnull=True) | Q(organisation=organisation))

    def on_offer(self) -> Self:
        return self.filter(archived_at__isnull=True)

    def of_this_server(self) -> Self:
        """On offer to everybody, with their commands run by this server and no worker; the oldest first."""
        here = self.on_offer().exclude(backend=Environment.Backend.WORKER)
        return here.filter(organisation__isnull=True).order_by("pk")


class Environment(models.Model):
    class Backend(models.TextChoices):
        AUTOMATIC = "", _("automatic: the first that can hold the policy")
        BUBBLEWRAP = "bubblewrap", "bubblewrap"
        PROCESS = "process", "process"
        DOCKER = "docker", "docker"
        OPENSHELL = "openshell", "openshell"
        WORKER = "worker", _("worker: another machine that takes its work from this server")
        NONE = "none", _("none: unconfined, only where the server's settings allow it")

    uid = models.CharField(max_length=40, unique=True, default=new_environment_id, editable=False)
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="environments",
        help_text=_("Empty: everybody on this server may use it."),
    )
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=500, blank=True)
    upload_limit = models.PositiveBigIntegerField(
        _("upload limit"), default=DEFAULT_UPLOAD_LIMIT, help_text=_("Bytes of one uploaded file.")
    )
    backend = models.CharField(
        _("sandbox"), max_length=20, choices=Backend, blank=True, default=Backend.AUTOMATIC
    )
    policy = models.TextField(_("sandbox policy"), blank=True)
    """YAML or JSON as it was written; empty: the defaults, without network."""
    trusts_workers = models.BooleanField(
        _("trust what workers answer"),
        default=False,
        help_text=_(
            "Only where the workers' machines hold and reach nothing that strangers wrote. Otherwise "
            "what a command or a file says makes later calls that reach outside ask a person."
        ),
    )
    version = models.PositiveIntegerField(_("version"), default=1, editable=False)
    """Counts the changes of sandbox and policy."""
    metadata = models.JSONField(default=dict, editable=False)
    """What programs note on it: names and texts."""
    seed_name = models.CharField(max_length=100, unique=True, null=True, editable=False)
    seed_digest = models.CharField(max_length=64, blank=True, editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = EnvironmentQuerySet.as_manager()

    namesake = False
    """Whether the list it was read for holds another of its name (`namesakes.told_apart`)."""

    class Meta:
        ordering = ["name", "pk"]
        verbose_name = _("environment")
        verbose_name_plural = _("environments")

    def __str__(self) -> str:
        return self.name

    @property
    def has_workers(self) -> bool:
        """Whether its commands and files are on workers' machines instead of this server's."""
        return self.backend == self.Backend.WORKER

    @property
    def sandbox_policy(self) -> Policy:
        return read_policy(self.policy)


class SandboxRules(models.Model):
    """What an organisation takes away from every environment its people use."""

    organisation = models.OneToOneField(
        Organisation, on_delete=models.CASCADE, related_name="sandbox_rules"
    )
    policy = models.TextField(_("sandbox policy"))
    """Names only what is to be stricter; what it does not mention stays as the environment has it."""
    version = models.PositiveIntegerField(_("version"), default=1, editable=False)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("sandbox rules of an organisation")
        verbose_name_plural = _("sandbox rules of organisations")

    def __str__(self) -> str:
        return str(self.organisation)

    @property
    def sandbox_policy(self) -> Policy:
        return read_policy(self.policy)
