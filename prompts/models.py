"""Named prompts: texts that agents are given behind their instructions, in versions that never change.

A label points to one version of a prompt and is moved. What the harness itself says is no prompt of these:
those sentences are `agents.models.Prompt`.
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.ids import new_id

from .filling import Variable

VIEW_ANY = "prompts.view_prompt"
CHANGE_ANY = "prompts.change_prompt"
"""What staff need for the server's own prompts, and for those of any organisation."""


def new_prompt_id() -> str:
    return new_id("prompt")


def new_source_id() -> str:
    return new_id("psrc")


class PromptQuerySet(models.QuerySet["Prompt"]):
    def visible_to(self, user: User) -> Self:
        """The server's own and those of the person's organisations; all for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_ANY):
            return self
        member = Organisation.objects.filter(memberships__user=user).values("pk")
        return self.filter(Q(organisation=None) | Q(organisation__in=member))

    def usable_in(self, organisation: Organisation | None) -> Self:
        """The organisation's first, so that it stands in the place of the server's of the same name; None:
        the server's alone."""
        rows = self.filter(Q(organisation=None) | Q(organisation=organisation))
        return rows.order_by("name", models.F("organisation").asc(nulls_last=True))


class Prompt(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_prompt_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, null=True, blank=True, related_name="prompts"
    )
    """Null: agents of every organisation may name it."""
    name = models.CharField(_("name"), max_length=64)
    description = models.CharField(_("what it is for"), max_length=500, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = PromptQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("named prompt")
        verbose_name_plural = _("named prompts")
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="prompt_name_unique"),
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(organisation=None),
                name="prompt_name_unique_on_server",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PromptSourceQuerySet(models.QuerySet["PromptSource"]):
    def visible_to(self, user: User) -> Self:
        """Those of organisations that she manages; all for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW_ANY):
            return self
        roles = [role for role in Role if role.manages]
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=roles
        ).values("pk")
        return self.filter(organisation__in=managed)


class PromptSource(models.Model):
    """A place elsewhere whose prompts an organisation has copies of. Only the copies are ever read by a
    conversation, so that nothing waits for it while it is away."""

    class Kind(models.TextChoices):
        LANGFUSE = "langfuse", _("Langfuse")
        SITE = "site", _("another Agentsite")
        GIT = "git", _("a folder of a Git repository at a commit")

    uid = models.CharField(max_length=40, unique=True, default=new_source_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="prompt_sources"
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    address = models.CharField(_("address"), max_length=500)
    folder = models.CharField(_("folder"), max_length=200, blank=True)
    commit = models.CharField(_("commit"), max_length=40, blank=True)
    """Both of a repository."""
    labels = models.JSONField(default=dict)
    """Labels there, and what each is called here."""
    moves_labels = models.BooleanField(default=False)
    """Labels here follow without a person's word, unless an agent whose releases are held names one."""
    sealed = models.TextField(blank=True, editable=False)
    """What it is asked with."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """For whom it is asked: as long as she may change prompts here."""
    created_at = models.DateTimeField(auto_now_add=True)
    reached_at = models.DateTimeField(null=True, editable=False)
    """When it answered last."""
    away_since = models.DateTimeField(null=True, editable=False)
    """Null: it answered when it was asked last."""
    failures = models.PositiveIntegerField(default=0, editable=False)
    """In a row."""
    problem = models.CharField(max_length=500, blank=True, editable=False)
    remarks = models.JSONField(default=list, editable=False)
    """What of it was not taken, in words."""
    due_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)

    objects = PromptSourceQuerySet.as_manager()

    class Meta:
        ordering = ["address", "id"]
        verbose_name = _("source of prompts")
        verbose_name_plural = _("sources of prompts")
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "kind", "address", "folder"], name="prompt_source_unique"
            )
        ]

    def __str__(self) -> str:
        return self.address


class PromptVersion(models.Model):
    prompt = models.ForeignKey(
        Prompt, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField(_("version"))
    text = models.TextField(_("text"))
    stored_variables = models.JSONField(db_column="variables", default=list)
    digest = models.CharField(max_length=64)
    """SHA-256 of text and variables (`filling.digest_of`)."""
    note = models.CharField(_("what changed"), max_length=500, blank=True)
    source = models.ForeignKey(
        PromptSource, on_delete=models.SET_NULL, null=True, related_name="versions"
    )
    """Where it was fetched; null also once that source is taken away."""
    origin = models.CharField(max_length=600, blank=True)
    """Where it was fetched, and its version there, in words; empty: it was written here."""
    waits = models.BooleanField(default=False)
    """It was fetched, and nobody has allowed it yet: no agent is given it, by whatever name."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["prompt", "-number"]
        verbose_name = _("version of a named prompt")
        verbose_name_plural = _("versions of named prompts")
        constraints = [
            models.UniqueConstraint(fields=["prompt", "number"], name="prompt_version_unique")
        ]

    def __str__(self) -> str:
        return f"{self.prompt} v{self.number}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(Variable.model_validate(each) for each in self.stored_variables)


class PromptLabel(models.Model):
    prompt = models.ForeignKey(
        Prompt, on_delete=models.CASCADE, related_name="labels", db_index=False
    )
    name = models.CharField(_("label"), max_length=50)
    version = models.ForeignKey(PromptVersion, on_delete=models.CASCADE, related_name="labels")
    moved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    moved_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["prompt", "name"]
        verbose_name = _("label of a named prompt")
        verbose_name_plural = _("labels of named prompts")
        constraints = [
            models.UniqueConstraint(fields=["prompt", "name"], name="prompt_label_unique")
        ]

    def __str__(self) -> str:
        return self.name


class PulledLabel(models.Model):
    """What a label of a source pointed to when it was asked last. Where the label here points elsewhere, a
    person may have it follow."""

    source = models.ForeignKey(
        PromptSource, on_delete=models.CASCADE, related_name="pulled", db_index=False
    )
    version = models.ForeignKey(PromptVersion, on_delete=models.CASCADE, related_name="pulled")
    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="pulled")
    label = models.CharField(max_length=50)
    """As it is called here."""
    remote_name = models.CharField(max_length=200)
    remote_version = models.CharField(max_length=64)
    seen_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["prompt__name", "label"]
        verbose_name = _("label of a source of prompts")
        verbose_name_plural = _("labels of sources of prompts")
        constraints = [
            models.UniqueConstraint(
                fields=["source", "prompt", "label"], name="pulled_label_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.prompt_id}:{self.label}"


class PromptSet(models.Model):
    """That the prompts of a conversation's agent were fixed; they hold from that event on."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    since_seq = models.PositiveBigIntegerField()
    """Of the event with which they were fixed; the next set ends it."""
    agent_version = models.ForeignKey(
        AgentVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["conversation", "-since_seq"]
        verbose_name = _("prompts of a conversation")
        verbose_name_plural = _("prompts of conversations")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "since_seq"], name="prompt_set_once_an_event"
            )
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}:{self.since_seq}"


class UsedPrompt(models.Model):
    """One text of a set, word for word as prompts had it."""

    set = models.ForeignKey(PromptSet, on_delete=models.CASCADE, related_name="used")
    version = models.ForeignKey(PromptVersion, on_delete=models.RESTRICT, related_name="used")
    wanted = models.CharField(max_length=50)
    """The label or number that the agent named."""
    text = models.TextField()
    """With its variables filled in."""

    class Meta:
        ordering = ["id"]
        verbose_name = _("prompt of a conversation")
        verbose_name_plural = _("prompts of a conversation")

    def __str__(self) -> str:
        return f"{self.set_id}:{self.version_id}"


def variables_as_stored(variables: tuple[Variable, ...]) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json") for each in variables]
