"""Agents (presets): who works, and each version of how.

A version never changes; changing an agent adds one (`actions.agents`). A conversation keeps the
version it began with. A member's own agent is hers alone until a review (`models.review`) releases a
version of it to her organisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Self

import orjson
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from harness.agentconfig import STORED, AgentConfig
from harness.ids import new_id

KEPT_CONFIGS = 100
"""Configurations that are not read again when a run asks for them."""


CHANGE = "agents.change_agent"
"""What staff need to make versions of agents that are nobody's own."""


def new_agent_id() -> str:
    return new_id("agent")


def read_config(stored: Mapping[str, Any]) -> AgentConfig:
    """The configuration of these stored fields: for the same ones the same object, because every run
    holds its own for as long as it streams."""
    try:
        text = orjson.dumps(stored)
    except TypeError:  # halves of characters
        return AgentConfig.model_validate(stored, context=STORED)
    return _config_of(text)


@lru_cache(maxsize=KEPT_CONFIGS)
def _config_of(stored: bytes) -> AgentConfig:
    return AgentConfig.model_validate(orjson.loads(stored), context=STORED)


class AgentQuerySet(models.QuerySet["Agent"]):
    def visible_to(self, user: User) -> Self:
        """The deployment's own agents and those of the person's organisations, but other members' private
        ones."""
        return self.filter(
            Q(organisation__isnull=True)
            | Q(organisation__memberships__user=user) & (Q(private=False) | Q(owner=user))
        ).distinct()

    def usable_in(self, organisation: Organisation) -> Self:
        """Those that work done for this organisation may use."""
        return self.filter(Q(organisation__isnull=True) | Q(organisation=organisation))

    def on_offer(self) -> Self:
        """Those a new conversation may choose."""
        return self.filter(archived_at__isnull=True, current__isnull=False)


class Agent(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_agent_id, editable=False)
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="agents",
        help_text=_("Empty: everybody on this server may use it."),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="own_agents",
        verbose_name=_("whose own"),
    )
    """The member who made it for herself; empty: it is the organisation's, or the server's."""
    private = models.BooleanField(_("private"), default=False, editable=False)
    """Only its owner is offered it. Never taken away but by a review, not even when she is gone."""
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=500, blank=True)
    seed_name = models.CharField(max_length=100, unique=True, null=True, editable=False)
    """Set on the agents we ship, so that a later start finds them again."""
    seed_digest = models.CharField(max_length=64, blank=True, editable=False)
    """Digest of what the last seeding wrote: while it still matches, staff changed nothing."""
    current = models.ForeignKey(
        "AgentVersion", on_delete=models.RESTRICT, null=True, related_name="+", editable=False
    )
    """What new conversations begin with. Of an agent that is shared it was reviewed."""
    canary = models.ForeignKey(
        "AgentVersion", on_delete=models.RESTRICT, null=True, related_name="+", editable=False
    )
    """A newer version that a share of them begins with, until it is promoted or rolled back."""
    canary_share = models.PositiveSmallIntegerField(default=0, editable=False)
    """Percent of new conversations."""
    metadata = models.JSONField(default=dict, editable=False)
    """What programs note on it: names and texts."""
    archived_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = AgentQuerySet.as_manager()

    namesake = False
    """Whether the list it was read for holds another of its name (`namesakes.told_apart`)."""

    class Meta:
        ordering = ["name", "pk"]
        verbose_name = _("agent (preset)")
        verbose_name_plural = _("agents (presets)")

    def __str__(self) -> str:
        return self.name

    @property
    def newest(self) -> AgentVersion | None:
        """The last version, also one that is offered to nobody yet."""
        return self.versions.select_related("base").order_by("-number").first()

    def drawn_for(self, conversation_uid: str) -> AgentVersion:
        """What the new conversation of this id begins with: the same answer whenever it is asked, so that
        whoever has to know beforehand may ask as well."""
        assert self.current is not None, "on_offer() promises it"  # noqa: S101
        if self.canary is None or self.canary.number < self.current.number:
            return self.current
        # The canary is part of the draw, or the next one would go to the same conversations' ids.
        drawn = sha256(f"{self.canary_id}:{conversation_uid}".encode()).digest()
        chosen = int.from_bytes(drawn[:8]) % 100 < self.canary_share
        return self.canary if chosen else self.current


class AgentVersionQuerySet(models.QuerySet["AgentVersion"]):
    def visible_to(self, user: User) -> Self:
        """Those of agents the person sees; drafts where she makes the agent's versions."""
        seen = Agent.objects.visible_to(user).values("pk")
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=[role for role in Role if role.manages]
        )
        drafts = Q(agent__owner=user) | Q(
            agent__owner=None, agent__organisation__in=managed.values("pk")
        )
        if has_staff_permission(user, CHANGE):
            drafts |= Q(agent__owner=None)
        return self.filter(Q(draft=False) | drafts, agent__in=seen)


class AgentVersion(models.Model):
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    stored_config = models.JSONField(db_column="config")
    base = models.ForeignKey(
        "self", on_delete=models.RESTRICT, null=True, related_name="narrowed", editable=False
    )
    """Of a member's own agent: the version it may do no more than. Empty: nobody but its makers bounds it."""
    draft = models.BooleanField(default=False, editable=False)
    """Offered to those alone who make its agent's versions; a review or a release ends that."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AgentVersionQuerySet.as_manager()

    class Meta:
        ordering = ["agent", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number_unique")
        ]

    def __str__(self) -> str:
        return f"{self.agent} v{self.number}"

    @property
    def config(self) -> AgentConfig:
        return read_config(self.stored_config)
