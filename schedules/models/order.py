"""Standing orders: which agent is to do what, when, within which bounds. On `/v1` they are *deployments*.

When one is due is `times`', what happens then `running`'s. A due time becomes a row of `OrderRun`, and a
constraint there lets each be one row.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from agents.models import AgentVersion, Environment
from harness.ids import new_id
from schedules.mailaddresses import address_of
from schedules.times import Cron, Rule, Timing


def new_order_id() -> str:
    return new_id("depl")


class StandingOrderQuerySet(models.QuerySet["StandingOrder"]):
    def visible_to(self, user: User) -> Self:
        """The person's own, in organisations she still belongs to."""
        return self.filter(owner=user, organisation__memberships__user=user)

    def in_force(self) -> Self:
        return self.filter(archived_at=None, paused_at=None)

    def due(self, now: datetime) -> Self:
        """Those that have something to begin, the longest waiting first. By an index that holds nothing
        but orders with a time to come."""
        return self.filter(next_start_at__lte=now).order_by("next_start_at")

    def with_what_a_page_shows(self) -> Self:
        return self.select_related("organisation", "owner", "agent_version__agent", "environment")


class StandingOrder(models.Model):
    class Missed(models.TextChoices):
        SKIP = "skip", _("leave it out")
        ONCE = "once", _("make it up once")
        ALL = "all", _("make up the last ones, up to a number")

    class Overlap(models.TextChoices):
        SKIP = "skip", _("leave the new run out")
        QUEUE = "queue", _("begin it when the earlier one has ended")
        REPLACE = "replace", _("stop the earlier one")

    class After(models.TextChoices):
        ANY = "any", _("however it ended")
        SUCCESS = "success", _("if it ended well")
        FAILURE = "failure", _("if it failed")

    class Pause(models.TextChoices):
        MANUAL = "manual", _("somebody paused it")
        ERROR = "error", _("it could not begin")
        FAILURES = "failures", _("too many runs failed one after the other")
        RIGHTS = "rights", _("its owner may not do this any more")
        IDLE = "idle", _("too many runs brought nothing new")

    uid = models.CharField(max_length=40, unique=True, default=new_order_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="standing_orders"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="standing_orders"
    )
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=500, blank=True)

    # --- what is done ---
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.RESTRICT, related_name="+")
    provider = models.CharField(max_length=50)
    model = models.CharField(max_length=200)
    """What the agent's model meant when the order was saved; a run with another one does not begin."""
    pins = models.JSONField(default=dict)
    """What instructs its runs, as it was when the order was saved (`schedules.pins`)."""
    environment = models.ForeignKey(Environment, on_delete=models.RESTRICT, related_name="+")
    messages = models.JSONField(default=list)
    """The content of each first message, as the log stores it."""
    outcome = models.JSONField(null=True, blank=True)
    """What a run works towards behind its messages: without it being reached no run has ended well. None:
    nothing is judged."""
    files = models.JSONField(default=list)
    """Pairs of the id of a stored file and its path."""
    vaults = models.JSONField(default=list)
    """Ids of vaults of the owner's that runs may draw on."""
    budget = models.PositiveBigIntegerField(null=True, blank=True)
    """What one run may spend, in hundred-millionths of a US dollar."""
    approvers = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+", blank=True)
    """May decide on what a run asks, beside the owner."""

    works_queue = models.BooleanField(_("works a queue"), default=False)
    """Each of its runs takes one item of its queue, and none begins where there is none."""

    # --- where results go, beside the conversation ---
    mails_owner = models.BooleanField(_("results by mail"), default=False)
    """How each run ended is mailed to the owner."""
    readers = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+", blank=True)
    """May read the conversations of its runs, and are mailed how each ended."""
    result_files = models.PositiveSmallIntegerField(_("results kept as files"), default=0)
    """Answers of the last so many runs are files among the owner's; 0: none is."""

    # --- when ---
    cron = models.CharField(_("cron expression"), max_length=200, blank=True)
    timezone = models.CharField(_("time zone"), max_length=60, default="UTC")
    dates = models.JSONField(default=list)
    """Single due times as ISO texts in UTC."""
    after = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="followers"
    )
    """Begins whenever a run of this order has ended."""
    after_outcome = models.CharField(max_length=10, choices=After, default=After.SUCCESS)
    hook_secret = models.TextField(blank=True, editable=False)
    """Sealed; empty: no webhook begins it."""
    mail_from = models.JSONField(default=list)
    """Whose mails begin it: addresses, and domains as `@example.org`; empty: nobody's."""
    mail_key = models.CharField(max_length=40, blank=True, editable=False)
    """What its address has before the domain; empty: it has none."""
    missed = models.CharField(_("missed due times"), max_length=10, choices=Missed, default="skip")
    most_missed = models.PositiveSmallIntegerField(default=1)
    overlap = models.CharField(
        _("when the last run is not done"), max_length=10, choices=Overlap, default=Overlap.SKIP
    )
    jitter = models.PositiveIntegerField(_("spread"), default=0)
    """Most seconds after its due time that a run begins."""
    failures_to_pause = models.PositiveSmallIntegerField(default=3)
    """After so many failed runs in a row it is paused; 0: never."""
    idle_to_pause = models.PositiveSmallIntegerField(default=0)
    """After so many runs in a row that said the same it is paused; 0: never."""

    # --- how it stands ---
    paused_at = models.DateTimeField(null=True, blank=True)
    pause = models.CharField(max_length=10, choices=Pause, blank=True)
    pause_error = models.CharField(max_length=60, blank=True)
    """With `ERROR`: what it could not begin for, as a type of the public API."""
    pause_words = models.CharField(max_length=500, blank=True)
    failures = models.PositiveIntegerField(default=0)
    """Runs that failed since the last that did not."""
    repeats = models.PositiveIntegerField(default=0)
    """Runs since the last that brought something new."""
    last_digest = models.CharField(max_length=64, blank=True)
    """Of what the last run that ended well said."""
    handled_at = models.DateTimeField()
    """Due times up to here are settled; never set back."""
    next_due_at = models.DateTimeField(null=True, blank=True)
    next_start_at = models.DateTimeField(null=True, blank=True)
    """When the next due time is begun; null: nothing is to come, or it is paused or archived."""
    last_run_at = models.DateTimeField(null=True, blank=True)
    """When the last run by the clock began."""
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = StandingOrderQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        constraints = [
            models.UniqueConstraint(
                fields=["mail_key"], condition=~Q(mail_key=""), name="standing_order_mail_key"
            )
        ]
        indexes = [
            models.Index(
                fields=["next_start_at"],
                condition=Q(next_start_at__isnull=False),
                name="standing_order_due",
            ),
            models.Index(F("owner"), F("id").desc(), name="standing_order_list"),
        ]

    def __str__(self) -> str:
        return self.uid

    def get_absolute_url(self) -> str:
        return reverse("schedules:schedule", kwargs={"uid": self.uid})

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None and self.archived_at is None

    @property
    def timing(self) -> Timing:
        return Timing(
            key=self.uid,
            cron=Cron(self.cron, self.timezone) if self.cron else None,
            dates=tuple(datetime.fromisoformat(at) for at in self.dates),
            jitter=self.jitter,
        )

    @property
    def rule(self) -> Rule:
        grace = timedelta(seconds=settings.AGENTSITE_SCHEDULE_GRACE_SECONDS)
        missed: Any = self.missed
        return Rule(missed, self.most_missed, grace)

    @property
    def has_hook(self) -> bool:
        return self.hook_secret != ""

    @property
    def mail_address(self) -> str:
        """Where mails to it are sent; empty: it takes none."""
        return address_of(self.mail_key) if self.mail_key else ""

    def upcoming(self, now: datetime, count: int = 5) -> list[datetime]:
        """The next due times, also of one that is paused; none of one that is archived."""
        if self.archived_at is not None:
            return []
        return self.timing.upcoming(max(now, self.handled_at).astimezone(UTC), count)

    def foresee(self) -> None:
        """Set when it is due next, by what is settled."""
        following = self.timing.next_after(self.handled_at)
        waits = self.archived_at is None and self.paused_at is None
        self.next_due_at = following[0] if following and waits else None
        self.next_start_at = following[1] if following and waits else None
