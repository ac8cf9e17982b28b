"""Teams: a conversation whose agent leads others, each in a child conversation of its own, what they write to
each other, and what they ask of each other and of people.

Whether somebody works, waits or is idle is a state of her conversation and kept nowhere else.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from conversations.models import Conversation, Event
from harness.ids import new_id

from .board import Task

NAME_LIMIT = 40
ROLE_LIMIT = 300
TEXT_LIMIT = 20_000


def new_team_id() -> str:
    return new_id("team")


def new_mail_id() -> str:
    return new_id("mail")


def new_request_id() -> str:
    return new_id("treq")


class TeamQuerySet(models.QuerySet["Team"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(lead__in=Conversation.objects.visible_to(user))

    def live(self) -> Self:
        """Those with somebody who was not dismissed."""
        return self.filter(teammates__dismissed_at=None, teammates__isnull=False).distinct()


class Team(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_team_id, editable=False)
    lead = models.OneToOneField(Conversation, on_delete=models.CASCADE, related_name="team")
    told_stuck = models.CharField(max_length=64, blank=True)
    """Of the standstill that was told last (`standstill`)."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamQuerySet.as_manager()

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")

    def __str__(self) -> str:
        return self.uid


class TeammateQuerySet(models.QuerySet["Teammate"]):
    def active(self) -> Self:
        return self.filter(dismissed_at=None)


class Teammate(models.Model):
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, related_name="teammates", db_index=False
    )
    name = models.CharField(max_length=NAME_LIMIT)
    role = models.CharField(max_length=ROLE_LIMIT, blank=True)
    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="teammate"
    )
    told = models.CharField(max_length=20, blank=True)
    """The status that the lead's log tells last (`members.Status`)."""
    rest_seq = models.PositiveBigIntegerField(default=0, editable=False)
    """Up to here in its conversation (`news_seq`) was decided whether the lead hears of its rest."""
    idle_since = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    """A person stopped it: what is written to it waits until she lets it go on."""
    dismissed_at = models.DateTimeField(null=True)
    key = models.CharField(max_length=100, null=True)
    """Of the call that asked for it."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeammateQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("teammate")
        verbose_name_plural = _("teammates")
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="teammate_name_unique"),
            models.UniqueConstraint(
                fields=["team", "key"], condition=Q(key__isnull=False), name="teammate_key_unique"
            ),
        ]
        indexes = [
            models.Index(
                fields=["idle_since"],
                condition=Q(dismissed_at=None, idle_since__isnull=False),
                name="teammate_idle",
            )
        ]

    def __str__(self) -> str:
        return self.name


class MailQuerySet(models.QuerySet["Mail"]):
    def with_reading(self) -> Self:
        """Each with `was_read`: whether the receiver's agent has taken it into its dialogue."""
        taken = Event.objects.filter(uid=OuterRef("event_uid"), processed_at__isnull=False)
        return self.annotate(was_read=Exists(taken))

    def unread(self) -> Self:
        return self.with_reading().filter(was_read=False)


class Mail(models.Model):
    """One message in one mailbox. It is delivered once: as an event of the receiver's log, which says when
    it was read."""

    class Kind(models.TextChoices):
        MESSAGE = "message", _("message")
        BROADCAST = "broadcast", _("to all")
        REQUEST = "request", _("request")
        PERSON = "person", _("from a person")
        NOTICE = "notice", _("notice")

    uid = models.CharField(max_length=40, unique=True, default=new_mail_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="mails", db_index=False)
    kind = models.CharField(max_length=20, choices=Kind)
    sender = models.ForeignKey(Conversation, on_delete=models.CASCADE, null=True, related_name="+")
    """Whose agent wrote it; empty: it tells of what happened, or is the owner's."""
    receiver = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="mails")
    text = models.TextField()
    untrusted_by = models.CharField(max_length=300, blank=True)
    key = models.CharField(max_length=120)
    """Of the call or the happening that it comes of: the same key reaches the same mailbox once."""
    event_uid = models.CharField(max_length=40, blank=True)
    """Of the message in the receiver's log; empty while it is held back."""
    created_at = models.DateTimeField(auto_now_add=True)
    was_read: bool
    """Of rows that `with_reading` found."""

    objects = MailQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("team message")
        verbose_name_plural = _("team messages")
        constraints = [
            models.UniqueConstraint(fields=["team", "receiver", "key"], name="mail_once")
        ]
        indexes = [
            models.Index(fields=["receiver"], condition=Q(event_uid=""), name="mail_held_back")
        ]

    def __str__(self) -> str:
        return self.uid

    @property
    def is_read(self) -> bool:
        """Whether the receiver's agent has taken it into its dialogue."""
        taken = Event.objects.filter(uid=self.event_uid, processed_at__isnull=False)
        return bool(self.event_uid) and taken.exists()


class TeamRequestQuerySet(models.QuerySet["TeamRequest"]):
    def pending(self) -> Self:
        return self.filter(state=TeamRequest.State.PENDING)

    def waiting_for(self, user: User) -> Self:
        """Questions to her that nobody has answered, where she can still see the team."""
        teams = Team.objects.visible_to(user)
        return self.pending().filter(person=user, team__in=teams)


class TeamRequest(models.Model):
    """What one asks of another by its id: answered once, by whom it names, or it expires."""

    class Kind(models.TextChoices):
        SHUTDOWN = "shutdown", _("to end its work")
        PLAN = "plan", _("to review a plan")
        HANDOVER = "handover", _("to take over a task")
        QUESTION = "question", _("a question")

    class State(models.TextChoices):
        PENDING = "pending", _("waits")
        APPROVED = "approved", _("approved")
        REJECTED = "rejected", _("rejected")
        EXPIRED = "expired", _("expired")

    uid = models.CharField(max_length=40, unique=True, default=new_request_id, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="requests")
    kind = models.CharField(max_length=20, choices=Kind)
    asker = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    """Whose agent asks."""
    addressee = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, null=True, related_name="+"
    )
    """Whose agent is asked; empty: a person is."""
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    task = models.ForeignKey(Task, on_delete=models.CASCADE, null=True, related_name="+")
    text = models.TextField()
    state = models.CharField(max_length=20, choices=State, default=State.PENDING)
    answer = models.TextField(blank=True)
    untrusted_by = models.CharField(max_length=300, blank=True)
    """What of the answer strangers may have said, or another person, in words."""
    key = models.CharField(max_length=100)
    """Of the call that asked."""
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    objects = TeamRequestQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("request in a team")
        verbose_name_plural = _("requests in teams")
        constraints = [
            models.UniqueConstraint(fields=["team", "key"], name="team_request_once"),
            models.CheckConstraint(
                condition=Q(addressee=None) ^ Q(person=None), name="team_request_names_one"
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=Q(state="pending"), name="team_request_expiry"
            )
        ]

    def __str__(self) -> str:
        return self.uid
