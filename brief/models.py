"""Briefs: what happened for a person in an organisation between two moments, and when she wants to be told.

What one says is put together by `compiling` and kept as it was said. That each due time makes one brief is a
constraint here.
"""

from __future__ import annotations

from datetime import time
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from brief.contents import Contents
from harness.ids import new_id

DEFAULT_AT = time(7, 30)


def new_brief_id() -> str:
    return new_id("brief")


class BriefWish(models.Model):
    """When a person wants a brief about her work in one organisation, and by which ways. Without a row she
    gets none and finds everything on the page."""

    class Days(models.TextChoices):
        ALL = "all", _("every day")
        WORKDAYS = "workdays", _("from Monday to Friday")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="brief_wishes"
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    is_on = models.BooleanField(_("on"), default=False)
    at = models.TimeField(_("at"), default=DEFAULT_AT)
    """On the clocks of `timezone`."""
    timezone = models.CharField(_("time zone"), max_length=60, default="UTC")
    days = models.CharField(_("days"), max_length=10, choices=Days, default=Days.ALL)
    by_mail = models.BooleanField(_("by mail"), default=True)
    by_webhook = models.BooleanField(_("by webhook"), default=False)
    is_quiet = models.BooleanField(_("quiet"), default=True)
    """No mail and no webhook where there is nothing to tell."""
    is_written = models.BooleanField(_("written by a model"), default=False)
    """A model puts a short text above the lines."""
    provider = models.CharField(max_length=50, blank=True)
    """Of the model that writes; empty: the server's choice (AGENTSITE_BRIEF_MODELS)."""
    model = models.CharField(max_length=100, blank=True)
    effort = models.CharField(max_length=10, blank=True)
    next_at = models.DateTimeField(null=True, editable=False)
    """The next due time; null while it is off."""

    class Meta:
        verbose_name = _("wish for a brief")
        verbose_name_plural = _("wishes for briefs")
        constraints = [
            models.UniqueConstraint(fields=["user", "organisation"], name="brief_wish_once")
        ]
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(next_at__isnull=False), name="brief_wish_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.organisation_id}"


class BriefQuerySet(models.QuerySet["Brief"]):
    def visible_to(self, user: User) -> Self:
        """The person's own, in organisations she still belongs to."""
        return self.filter(user=user, organisation__memberships__user=user)

    def to_mail(self) -> Self:
        return self.filter(mail=Brief.Mail.WAITING).order_by("pk")

    def to_write(self) -> Self:
        """For which no model was asked yet."""
        return self.filter(is_held=True, writing=Brief.Writing.WANTED).order_by("pk")


class Brief(models.Model):
    class Mail(models.TextChoices):
        NONE = "none", _("not mailed")
        WAITING = "waiting", _("about to be mailed")
        SENDING = "sending", _("being mailed")
        SENT = "sent", _("mailed")
        FAILED = "failed", _("could not be mailed")

    class Writing(models.TextChoices):
        """What became of the text above the lines."""

        NONE = "none", _("not wanted")
        WANTED = "wanted", _("about to be written")
        ASKED = "asked", _("asked")
        WRITTEN = "written", _("written")
        UNUSABLE = "unusable", _("the answer held no text")
        FAILED = "failed", _("failed")
        RESTS = "rests", _("the model did not answer lately")
        NO_MODEL = "no_model", _("no model or no key")
        NO_ROOM = "no_room", _("no budget left")
        LOST = "lost", _("lost with its process")
        DROPPED = "dropped", _("words of it were taken out")

    uid = models.CharField(max_length=40, unique=True, default=new_brief_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="briefs"
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    due_at = models.DateTimeField()
    since = models.DateTimeField()
    until = models.DateTimeField()
    """It tells of what happened after `since` and no later than `until`."""
    stored_contents = models.JSONField(db_column="contents")
    mail = models.CharField(max_length=10, choices=Mail, default=Mail.NONE)
    tries = models.PositiveSmallIntegerField(default=0)
    is_held = models.BooleanField(default=False)
    """It goes out once it is known what becomes of its text."""
    writing = models.CharField(max_length=20, choices=Writing, default=Writing.NONE)
    text = models.TextField(blank=True)
    """A model's, as plain words: nothing in it is to be followed or to lead anywhere."""
    provider = models.CharField(max_length=50, blank=True)
    """Of the model that was asked."""
    model = models.CharField(max_length=100, blank=True)
    model_request_id = models.CharField(max_length=40, null=True, unique=True)
    """None: no model was asked. At most one is, for one brief."""
    asked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = BriefQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("brief")
        verbose_name_plural = _("briefs")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "organisation", "due_at"], name="brief_once_a_due_time"
            )
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(mail="waiting"), name="brief_to_mail"),
            models.Index(fields=["id"], condition=Q(is_held=True), name="brief_held"),
            models.Index(
                fields=["provider", "model", "asked_at"],
                condition=Q(writing="failed"),
                name="brief_writing_failed",
            ),
            models.Index("user", "organisation", F("id").desc(), name="brief_list"),
            models.Index(fields=["created_at"], name="brief_age"),
        ]

    def __str__(self) -> str:
        return self.uid

    def get_absolute_url(self) -> str:
        return reverse("brief:one", kwargs={"uid": self.uid})

    @property
    def contents(self) -> Contents:
        return Contents.model_validate(self.stored_contents)
