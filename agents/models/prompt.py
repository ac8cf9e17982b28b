"""Prompts: named texts of ours that agents are given beside their instructions, editable by staff."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Prompt(models.Model):
    name = models.SlugField(_("name"), max_length=100, unique=True)
    description = models.CharField(_("what it is for"), max_length=300, blank=True)
    text = models.TextField(_("text"))
    seed_digest = models.CharField(max_length=64, blank=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("prompt")
        verbose_name_plural = _("prompts")

    def __str__(self) -> str:
        return self.name
