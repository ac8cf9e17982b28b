"""Memory stores: named folders of memories, of one person, one agent or a whole organisation.

Who sees a store is said here, who may change what is in it by `memory.access`.
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from agents.models import Agent
from harness.ids import new_id
from memory.retrieval.words import audience_of

NAME_LIMIT = 255
DESCRIPTION_LIMIT = 1_024


def new_store_id() -> str:
    return new_id("memstore")


class MemoryStoreQuerySet(models.QuerySet["MemoryStore"]):
    def visible_to(self, user: User) -> Self:
        """Her own, those of her organisations, and those of agents there that she sees. Nobody sees
        another person's, whatever she manages."""
        return self.seen_by(user) if user.is_active else self.none()

    def seen_by(self, user: User) -> Self:
        """The same, for who has asked whether her account is open; of a query that is built once, `user` may
        be what is given then."""
        agents = Agent.objects.visible_to(user).values("pk")
        shared = Q(owner=None) & (Q(agent=None) | Q(agent__in=agents))
        mine = Organisation.objects.filter(memberships__user=user).values("pk")
        return self.filter(Q(owner=user) | shared, organisation__in=mine)

    def in_force(self) -> Self:
        return self.filter(archived_at=None)


class MemoryStore(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_store_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="memory_stores"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="memory_stores",
    )
    """Whose alone it is. Empty: it is shared."""
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="memory_stores"
    )
    """Of a shared one: the agent whose it is, in this organisation. Empty: the organisation's."""
    name = models.CharField(_("name"), max_length=NAME_LIMIT)
    description = models.CharField(_("description"), max_length=DESCRIPTION_LIMIT, blank=True)
    metadata: Any = models.JSONField(default=dict)
    """What programs note on it: names and texts. Agents do not see them."""
    main = models.BooleanField(default=False, editable=False)
    """The one in which a person's agents keep what they learn of her."""
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    archived_at = models.DateTimeField(_("archived at"), null=True, blank=True, editable=False)

    objects = MemoryStoreQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("memory store")
        verbose_name_plural = _("memory stores")
        constraints = [
            models.CheckConstraint(
                condition=Q(owner=None) | Q(agent=None), name="memory_store_has_one_scope"
            ),
            models.UniqueConstraint(
                fields=["organisation", "owner"],
                condition=Q(main=True),
                name="memory_store_main_once",
            ),
        ]
        indexes = [models.Index(fields=["owner", "organisation"], name="memory_store_of_person")]

    def __str__(self) -> str:
        return self.uid

    @property
    def audience(self) -> str:
        """Of whom the index finds what is in it: the same for all stores that the same people may see."""
        if self.owner_id is not None:
            return audience_of("p", self.owner_id, self.organisation_id)
        if self.agent_id is not None:
            return audience_of("a", self.agent_id, self.organisation_id)
        return audience_of("o", self.organisation_id)

    @property
    def scope(self) -> str:
        if self.owner_id is not None:
            return "person"
        return "agent" if self.agent_id is not None else "organization"
