"""The work queue of environments whose tools are carried out by workers, and who may take from it.

A work item says that a conversation has calls for a worker; at most one of them is alive for each
conversation. The calls themselves are in the log (`x.call_handed_out`); `HandedCall` is their index.
Who moves an item from state to state is `workers.items`.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.staff import has_staff_permission
from agents.models.environment import Environment
from conversations.models.conversation import Conversation
from harness.ids import new_id
from jobs.leases import lapsed

MANAGE_KEYS = "workers.change_environmentkey"
VIEW_WORK = "workers.view_workitem"


def new_environment_key_id() -> str:
    return new_id("ekey")


def new_work_id() -> str:
    return new_id("work")


class EnvironmentKeyQuerySet(models.QuerySet["EnvironmentKey"]):
    def visible_to(self, user: User) -> Self:
        """Keys open an environment for whoever holds them: only staff who manage them see any."""
        if not has_staff_permission(user, MANAGE_KEYS):
            return self.none()
        return self.filter(environment__in=Environment.objects.visible_to(user))

    def valid(self) -> Self:
        return self.filter(revoked_at=None)


class EnvironmentKey(models.Model):
    """What a worker shows to take work of one environment, and of no other."""

    uid = models.CharField(
        max_length=40, unique=True, default=new_environment_key_id, editable=False
    )
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(_("name"), max_length=80)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    """SHA-256 of the secret, in hexadecimal; the secret itself is not kept."""
    beginning = models.CharField(_("begins with"), max_length=20, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    """To the minute."""
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)

    objects = EnvironmentKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("environment key")
        verbose_name_plural = _("environment keys")

    def __str__(self) -> str:
        return f"{self.name} ({self.beginning}…)"


class WorkItemQuerySet(models.QuerySet["WorkItem"]):
    def visible_to(self, user: User) -> Self:
        """Those of the person's own conversations, and all for staff with the permission."""
        if has_staff_permission(user, VIEW_WORK):
            return self.filter(environment__in=Environment.objects.visible_to(user))
        return self.filter(conversation__in=Conversation.objects.owned_by(user))

    def alive(self) -> Self:
        return self.exclude(state=WorkItem.State.STOPPED)

    def of_members(self) -> Self:
        """Those of conversations for whose owner anybody may work still."""
        return self.filter(conversation__in=Conversation.objects.of_members())

    def permitted(self) -> Self:
        """Those that were offered and whose worker may act by them, as far as keys and people go."""
        return self.of_members().filter(key__in=EnvironmentKey.objects.valid())

    def leased(self) -> Self:
        """Some worker took them, and has not given them back."""
        return self.filter(state__in=LEASED)

    def lapsed(self) -> Self:
        """Taken by a worker that gave no sign of life for too long, by the database's clock."""
        return self.leased().filter(lapsed())


class WorkItem(models.Model):
    class State(models.TextChoices):
        QUEUED = "queued", _("queued")
        STARTING = "starting", _("starting")
        ACTIVE = "active", _("at work")
        STOPPING = "stopping", _("stopping")
        STOPPED = "stopped", _("stopped")

    class Ending(models.TextChoices):
        NONE = "", _("not ended")
        GIVEN_BACK = "given_back", _("given back by its worker")
        LOST = "lost", _("lost with its worker")
        UNCLAIMED = "unclaimed", _("offered, and not acknowledged in time")
        NEEDLESS = "needless", _("no longer needed")

    uid = models.CharField(max_length=40, unique=True, default=new_work_id, editable=False)
    environment = models.ForeignKey(
        Environment, on_delete=models.CASCADE, related_name="work_items"
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="work_items"
    )
    key = models.ForeignKey(
        EnvironmentKey, on_delete=models.SET_NULL, null=True, related_name="work_items"
    )
    """Whose holder has it; a key that is revoked takes its work along."""
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.QUEUED)
    ending = models.CharField(_("ending"), max_length=12, choices=Ending, blank=True, default="")
    digest = models.CharField(max_length=64, unique=True, null=True, editable=False)
    """SHA-256 of the secret that the worker got with it; none while nobody was offered it."""
    worker = models.CharField(_("worker"), max_length=200, blank=True)
    """As the worker calls itself."""
    metadata = models.JSONField(default=dict, editable=False)
    offered_at = models.DateTimeField(null=True, editable=False)
    acknowledged_at = models.DateTimeField(_("acknowledged at"), null=True, editable=False)
    started_at = models.DateTimeField(_("started at"), null=True, editable=False)
    heartbeat_at = models.DateTimeField(_("latest heartbeat"), null=True, editable=False)
    ttl_seconds = models.PositiveIntegerField(default=0, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    """By the database's clock. Past it the item counts as lost, whatever its worker does."""
    stop_requested_at = models.DateTimeField(null=True, editable=False)
    stopped_at = models.DateTimeField(_("stopped at"), null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = WorkItemQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("work item")
        verbose_name_plural = _("work items")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=~Q(state="stopped"),
                name="one_live_work_item_per_conversation",
            )
        ]
        indexes = [
            models.Index(
                fields=["environment", "id"],
                condition=~Q(state="stopped"),
                name="work_items_alive",
            )
        ]

    def __str__(self) -> str:
        return self.uid


LEASED = (WorkItem.State.STARTING, WorkItem.State.ACTIVE, WorkItem.State.STOPPING)


class HandedCall(models.Model):
    """A call that a worker is to carry out, and which item's worker was told of it, if any was."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="handed_calls"
    )
    call_uid = models.CharField(max_length=40, unique=True)
    seq = models.PositiveBigIntegerField()
    """Of the event that handed it out."""
    effect = models.CharField(max_length=20)
    idempotent = models.BooleanField(default=False)
    sent_to = models.ForeignKey(
        WorkItem, on_delete=models.SET_NULL, null=True, related_name="sent_calls"
    )
    """Written before the worker is answered: where it is empty, nobody can have begun the call."""

    def __str__(self) -> str:
        return self.call_uid
