"""What was spent: one row for each model call of any kind, and the prices that turn it into money."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation
from conversations.models.conversation import Conversation
from conversations.models.run import Run

MODEL_LENGTH = 100
"""Of a model's name as it is kept; services have longer ones, of which the beginning is kept."""


class Usage(models.Model):
    TOKENS = (
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    )
    """The columns that add up to a call's tokens."""

    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="usage")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    charged_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """The person whose budgets count it: `user`, or who answers for that service account. Null when that
    account is deleted."""
    server_keys = models.BooleanField(default=False)
    """Whether a key of the deployment was used."""
    conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="usage"
    )
    """Null once the conversation is deleted: what was spent stays counted."""
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="+")
    model_request_id = models.CharField(max_length=40, unique=True)
    """The id of the span's start event: one row a request, however often it is reported."""
    purpose = models.CharField(max_length=30)
    provider = models.CharField(max_length=50)
    model = models.CharField(max_length=MODEL_LENGTH)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cache_creation_input_tokens = models.PositiveIntegerField(default=0)
    cache_read_input_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    """In US dollars by the price table at that time; null when the price was unknown, never 0."""
    milliseconds = models.PositiveIntegerField(default=0)
    first_delta_milliseconds = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("model call")
        verbose_name_plural = _("usage")
        indexes = [
            models.Index(fields=["organisation", "created_at"], name="usage_organisation_time"),
            models.Index(fields=["user", "created_at"], name="usage_user_time"),
            models.Index(fields=["charged_to", "created_at"], name="usage_charged_time"),
            models.Index(fields=["created_at"], name="usage_time"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.provider}/{self.model}"

    @property
    def total_tokens(self) -> int:
        return sum(getattr(self, name) for name in self.TOKENS)


class ModelPrice(models.Model):
    """US dollars per million tokens. The longest `model` that the used model's name begins with wins."""

    provider = models.CharField(_("provider"), max_length=50)
    model = models.CharField(
        _("model"), max_length=100, help_text=_("A model's name or how it begins.")
    )
    from_prompt_tokens = models.PositiveIntegerField(
        _("from prompt size"),
        default=0,
        help_text=_("For services that charge more for long prompts: the price counts from here."),
    )
    input = models.DecimalField(_("input"), max_digits=10, decimal_places=4)
    output = models.DecimalField(_("output"), max_digits=10, decimal_places=4)
    cache_write = models.DecimalField(_("cache write"), max_digits=10, decimal_places=4)
    cache_read = models.DecimalField(_("cache read"), max_digits=10, decimal_places=4)
    seed_digest = models.CharField(max_length=64, blank=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["provider", "model", "from_prompt_tokens"]
        verbose_name = _("model price")
        verbose_name_plural = _("model prices")
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model", "from_prompt_tokens"], name="model_price_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"
