"""What people are told of: how each wishes to be, her browsers that take pushes, and what each was told.

`waiting`, `claims`, `mailing`, `pushing` and `announcing` write them. That nobody is told of the same thing
twice by the same channel is a constraint here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from conversations.models import Conversation
from harness.ids import new_id

from .quiet import quiet_end

DEFAULT_MAIL_MINUTES = 5
LONGEST_MAIL_MINUTES = 24 * 60
"""What a person may choose to wait."""
PUSH_MINUTES = 1
"""What waits for less is neither pushed nor announced: she may be looking at it."""


class Kind(models.TextChoices):
    WAITS = "waits", _("waits for you")
    DONE = "done", _("done while you were away")
    BRIEF = "brief", _("daily brief")
    TEST = "test", _("test")


class Channel(models.TextChoices):
    MAIL = "mail", _("mail")
    PUSH = "push", _("push")
    WEBHOOK = "webhook", _("webhook")


class When(models.TextChoices):
    ALWAYS = "always", _("Always")
    AWAY = "away", _("When I am away")
    NEVER = "never", _("Never")


def new_device_id() -> str:
    return new_id("pdev")


class NoticeWishQuerySet(models.QuerySet["NoticeWish"]):
    def by_webhook(self) -> Self:
        """Of those who want to be told of something that way."""
        none = {"waits_by_webhook": When.NEVER, "done_by_webhook": When.NEVER}
        return self.exclude(**none)


class NoticeWish(models.Model):
    """What a person wants to be told of, by which ways and when. Without a row it is as the defaults say."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_wish"
    )
    waits_by_mail = models.CharField(max_length=10, choices=When, default=When.AWAY)
    waits_by_push = models.CharField(max_length=10, choices=When, default=When.AWAY)
    done_by_mail = models.CharField(max_length=10, choices=When, default=When.NEVER)
    done_by_push = models.CharField(max_length=10, choices=When, default=When.AWAY)
    waits_by_webhook = models.CharField(max_length=10, choices=When, default=When.NEVER)
    done_by_webhook = models.CharField(max_length=10, choices=When, default=When.NEVER)
    """To endpoints of the conversation's organisation that subscribed to it."""
    brief_by_push = models.CharField(max_length=10, choices=When, default=When.NEVER)
    """*Always* or *never*: it comes at a time of her own. Its mail is `brief`'s."""
    mail_after_minutes = models.PositiveSmallIntegerField(default=DEFAULT_MAIL_MINUTES)
    tells_contents = models.BooleanField(default=True)
    """Whether a push names what waits and the conversation; else it only says that something is there."""
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    """On the clocks of `timezone`; both or none."""
    timezone = models.CharField(max_length=60, default="UTC")

    objects = NoticeWishQuerySet.as_manager()

    def __str__(self) -> str:
        return f"wishes of {self.user_id}"

    def when(self, kind: str, channel: str) -> str:
        match kind, channel:
            case Kind.WAITS, Channel.MAIL:
                return self.waits_by_mail
            case Kind.WAITS, Channel.PUSH:
                return self.waits_by_push
            case Kind.DONE, Channel.MAIL:
                return self.done_by_mail
            case Kind.DONE, Channel.PUSH:
                return self.done_by_push
            case Kind.WAITS, Channel.WEBHOOK:
                return self.waits_by_webhook
            case Kind.DONE, Channel.WEBHOOK:
                return self.done_by_webhook
            case Kind.BRIEF, Channel.PUSH:
                return self.brief_by_push
        return When.NEVER.value

    def after(self, channel: str) -> timedelta:
        minutes = self.mail_after_minutes if channel == Channel.MAIL else PUSH_MINUTES
        return timedelta(minutes=minutes)

    def quiet_end(self, moment: datetime) -> datetime | None:
        """When her quiet hours end, if `moment` is in them."""
        return quiet_end(
            moment.astimezone(UTC), self.quiet_from, self.quiet_until, zone=self.timezone
        )


class WaitNotice(models.Model):
    """That a person was told of one thing by one channel, or is about to be."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="wait_notices"
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="wait_notices"
    )
    subject = models.CharField(max_length=60)
    """What it is about: the id of the call that asks and how often it was asked, a task's, and the like."""
    channel = models.CharField(max_length=10, choices=Channel, default=Channel.MAIL)
    batch = models.CharField(max_length=40, db_index=True)
    """What was told together."""
    tries = models.PositiveSmallIntegerField(default=1)
    mailed_at = models.DateTimeField(null=True)
    """Null: not yet, refused by the mail server, or no mail."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "subject", "channel"], name="wait_notice_once")
        ]

    def __str__(self) -> str:
        return f"{self.subject} for {self.user_id}"


class Seen(models.Model):
    """When a person last opened a conversation that waited for somebody."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "conversation"], name="seen_once")]

    def __str__(self) -> str:
        return f"{self.conversation_id} by {self.user_id}"


class PushKey(models.Model):
    """The server's own key, by which push services know it (RFC 8292). `pushkeys` makes it and signs."""

    name = models.CharField(max_length=10, unique=True, default="current")
    """One row, however many processes make it at once."""
    sealed = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class DeviceQuerySet(models.QuerySet["Device"]):
    def visible_to(self, user: User) -> Self:
        """The person's own."""
        return self.filter(user=user)


class Device(models.Model):
    """One browser that takes pushes for a person, as long as the session lasts in which she said so."""

    uid = models.CharField(max_length=40, unique=True, default=new_device_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="push_devices"
    )
    session_key = models.CharField(max_length=40, db_index=True)
    name = models.CharField(max_length=100)
    """Of the browser, for people."""
    endpoint = models.TextField()
    """Where pushes for it are sent; whoever knows it is nearly the browser, so it is shown to nobody."""
    endpoint_sha256 = models.CharField(max_length=64, unique=True)
    """A browser is one person's at a time: who last said so in it."""
    p256dh = models.CharField(max_length=100)
    auth = models.CharField(max_length=30)
    """What a push to it is encrypted with (RFC 8291), in URL-safe base64 without padding."""
    server_key = models.CharField(max_length=100)
    """Our public key that it was signed up with: it takes pushes of no other."""
    last_code = models.CharField(max_length=30, blank=True)
    """What came of the last push; empty: none was sent yet."""
    last_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.uid


class PushQuerySet(models.QuerySet["Push"]):
    def due_at(self, now: datetime) -> Self:
        return self.filter(next_at__lte=now).order_by("next_at", "pk")


class Push(models.Model):
    """One push that is to be sent to one browser; gone when it is sent, or dropped.

    It holds no words: what it says is put together when it is sent, of what is so by then.
    """

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="pushes")
    kind = models.CharField(max_length=10, choices=Kind)
    batch = models.CharField(max_length=40, blank=True)
    """The notices (`WaitNotice`) that it tells of; empty: of none."""
    path = models.CharField(max_length=200, blank=True)
    """What it opens, where it tells of no notices."""
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(db_index=True)
    """When it is due; while it is being sent, when others may take it for lost."""
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PushQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.kind} for {self.device_id}"
