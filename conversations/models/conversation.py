"""Conversations: one durable thread of work between people and an agent.

The log (`Event`) is the truth; `status`, `stop_reason`, `title`, `features` and the counters here
are its projections, written by `conversations.log` in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Membership, Organisation, User
from agents.models.agent import AgentVersion, read_config
from agents.models.environment import Environment
from harness.agentconfig import AgentConfig, Features
from harness.events import WAITS_FOR_WORKER
from harness.ids import new_conversation_id
from jobs.prepared import Prepared
from wire.ids import session_uid

from .share import DECIDING, WRITING, Share, ShareRole


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, user: User) -> Self:
        """The person's own, in organisations she still belongs to. What is not given to anybody else
        (`visible_to`, `writable_by`, `decidable_by`) only these allow."""
        return self.filter(owner=user, organisation__memberships__user=user)

    def visible_to(self, user: User) -> Self:
        """Those she may read: her own, and those shared with her while their owner and she belong to
        their organisation."""
        return self._allowing(user, tuple(ShareRole))

    def writable_by(self, user: User) -> Self:
        """Those in which she may say something."""
        return self._allowing(user, WRITING)

    def decidable_by(self, user: User) -> Self:
        """Those in which she may answer calls that ask."""
        return self._allowing(user, DECIDING)

    def shared_with(self, user: User) -> Self:
        """Those of others that she may read."""
        return self.visible_to(user).exclude(owner=user)

    def named(self, uid: str) -> Self:
        """By the id that a person or a program gave, however it is spelled."""
        return self.filter(uid=session_uid(uid.replace("\0", "")))

    def _allowing(self, user: User, roles: Sequence[ShareRole]) -> Self:
        given = Share.objects.order_by().filter(
            Q(user=user) | Q(user=None),
            conversation=OuterRef("pk"),
            role__in=[role.value for role in roles],
        )
        owners = Membership.objects.order_by().filter(
            organisation=OuterRef("organisation"), user=OuterRef("owner")
        )
        return self.filter(
            Q(owner=user) | Exists(given) & Exists(owners), organisation__memberships__user=user
        )

    def of_members(self) -> Self:
        """Those for whose owner an agent may work: her account is open and she belongs here still."""
        return self.filter(owner__is_active=True, organisation__memberships__user=F("owner"))

    def interruptible(self) -> Self:
        """Those that `may_be_interrupted`."""
        status = Conversation.Status
        at_work = Q(status__in=[status.RUNNING, status.RESCHEDULING])
        waits = Q(status=status.IDLE, stop_reason__in=["requires_action", WAITS_FOR_WORKER])
        starts = Q(queued_count__gt=0, owes_run=True)
        return self.filter(at_work | waits | starts).exclude(status=status.TERMINATED)

    def listed_in(self, organisation: Organisation, *, archived: bool = False) -> Self:
        """What the organisation's list shows."""
        return self.listed().filter(organisation=organisation, archived_at__isnull=not archived)

    def listed(self) -> Self:
        """Not the conversations that agents started, nor those that another subject shows."""
        return self.filter(parent=None, unlisted=False)

    def with_what_a_page_shows(self) -> Self:
        return self.select_related(
            "agent_version__agent", "environment", "organisation", "owner", "parent"
        )

    def in_list_order(self) -> Self:
        """By last activity; `id` makes the order total. What a person pinned she finds before it
        (`keeping.listing`)."""
        return self.order_by("-active_at", "-id")


class Conversation(models.Model):
    class Status(models.TextChoices):
        IDLE = "idle", _("idle")
        RUNNING = "running", _("running")
        RESCHEDULING = "rescheduling", _("trying again soon")
        TERMINATED = "terminated", _("ended")

    uid = models.CharField(max_length=40, unique=True, default=new_conversation_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="conversations"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.RESTRICT, related_name="+")
    environment = models.ForeignKey(Environment, on_delete=models.RESTRICT, related_name="+")
    title = models.CharField(_("title"), max_length=200, blank=True)
    status = models.CharField(max_length=20, choices=Status, default=Status.IDLE)
    stop_reason = models.CharField(max_length=30, blank=True)
    """Type of the last rest's stop reason; empty before the first. `WAITS_FOR_WORKER` in place of
    `requires_action` where nothing but workers can act."""
    stored_features = models.JSONField(db_column="features", default=dict)
    overrides = models.JSONField(default=dict)
    """Fields of `AgentConfig` that differ here from the agent's version; read `config`."""
    last_seq = models.PositiveBigIntegerField(default=0)
    news_seq = models.PositiveBigIntegerField(default=0, editable=False)
    """Of the last event that is news to readers: the agent came to rest, with an answer, a question or a
    failure. What people say themselves is none."""
    message_count = models.PositiveIntegerField(default=0)
    """Messages people posted and replies with text."""
    queued_count = models.PositiveIntegerField(default=0)
    """Messages that wait for their turn."""
    context_tokens = models.PositiveIntegerField(default=0)
    """Prompt and reply tokens of the last main model request: how full the context is."""
    owes_run = models.BooleanField(default=False)
    """Something came in that a run must heed and none has come to rest over yet: the sweep's word,
    should the wake have been lost."""
    metadata = models.JSONField(default=dict)
    """What programs note on it: names and texts."""
    front_end_seq = models.PositiveBigIntegerField(null=True, editable=False)
    """Of the last event that a front end sent something along with; the log has it."""
    rewound_seq = models.PositiveBigIntegerField(null=True, editable=False)
    """Of the last event that chose a branch; null: all of the log counts."""
    files_due_seq = models.PositiveBigIntegerField(null=True, editable=False)
    """Of the event that says that files are to be brought back, as long as that is not done."""
    origin = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, editable=False, related_name="forks"
    )
    """The conversation from which its log begins as a copy."""
    others_wrote = models.BooleanField(default=False, editable=False)
    """Somebody else than the owner has said something in it, ever."""
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
    )
    """Whose message was taken in last, or who had a summary made since; empty: the owner. See `asker_id`."""
    preset = models.CharField(max_length=200, blank=True, editable=False)
    """What the program that began it called its agent by; empty: nothing was said."""
    unlisted = models.BooleanField(default=False, editable=False)
    """It belongs to a subject that shows it on pages of its own: no list of conversations does."""
    told_date = models.DateField(null=True, editable=False)
    """What its agent is told as the day on which it began; null: the day it did."""
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    active_at = models.DateTimeField(default=timezone.now)
    """When the log last grew."""

    objects = ConversationQuerySet.as_manager()

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        indexes = [
            models.Index(
                fields=["active_at"], condition=Q(owes_run=True), name="conversation_owing"
            ),
            models.Index(
                fields=["status"],
                condition=Q(status__in=["running", "rescheduling"]),
                name="conversation_busy",
            ),
            models.Index(
                fields=["active_at", "id"],
                condition=Q(status="idle", stop_reason="requires_action"),
                name="conversation_waiting",
            ),
            models.Index(
                fields=["files_due_seq"],
                condition=Q(files_due_seq__isnull=False),
                name="conversation_files_due",
            ),
            models.Index(
                "owner",
                F("active_at").desc(),
                F("id").desc(),
                name="conversation_list",
            ),
        ]

    def __str__(self) -> str:
        # Not the title: lists and confirmations of the admin print this, also for staff who may not
        # read what people wrote.
        return self.uid

    def get_absolute_url(self) -> str:
        return reverse("conversations:conversation", kwargs={"uid": self.uid})

    def refresh_from_db(
        self, using: str | None = None, fields: Any = None, from_queryset: Any = None
    ) -> None:
        """Who asks for one column that was not read (`logsql.hold`) is given all that were not, with its
        agent's version and its owner: what follows events asks for one after the other."""
        missing = self.get_deferred_fields()
        only = fields is not None and from_queryset is None and missing.issuperset(fields)
        whole = _WHOLE.first(pk=self.pk) if only else None
        if whole is None:  # or it is gone, which is told there
            super().refresh_from_db(using, fields, from_queryset)
            return
        self.__dict__.update({name: whole.__dict__[name] for name in missing})
        for name in _BESIDE:
            known = self._state.fields_cache.get(name) is not None
            if not known and getattr(self, f"{name}_id") == getattr(whole, f"{name}_id"):
                setattr(self, name, getattr(whole, name))

    @property
    def first_day(self) -> date:
        return self.told_date or self.created_at.date()

    @property
    def asker_id(self) -> int:
        """The key of the account whose message the present turn answers."""
        return self.asked_by_id or self.owner_id

    @property
    def has_askers(self) -> bool:
        """Whether a turn may be somebody else's than the owner's."""
        return self.others_wrote or self.asked_by_id is not None

    @property
    def features(self) -> Features:
        return Features.model_validate(self.stored_features)

    @property
    def config(self) -> AgentConfig:
        """The agent as it is in this conversation: its version with this conversation's overrides."""
        overrides = self.overrides  # first: where it was not read, the version comes along
        return read_config({**self.agent_version.stored_config, **overrides})

    @property
    def is_running(self) -> bool:
        return self.status in {self.Status.RUNNING, self.Status.RESCHEDULING}

    @property
    def waits_for_person(self) -> bool:
        """It rests until somebody answers a call that asks."""
        return self.status == self.Status.IDLE and self.stop_reason == "requires_action"

    @property
    def waits_for_worker(self) -> bool:
        """It rests until workers of its environment have answered; no person is asked anything."""
        return self.status == self.Status.IDLE and self.stop_reason == WAITS_FOR_WORKER

    @property
    def may_be_interrupted(self) -> bool:
        """Whether there is anything to stop: it is at work or about to be, or waits for somebody."""
        return self.status != self.Status.TERMINATED and (
            self.is_running
            or self.is_about_to_start
            or self.waits_for_person
            or self.waits_for_worker
        )

    @property
    def is_about_to_start(self) -> bool:
        """It rests, but a run is owed for what waits in the queue."""
        return (
            self.status == self.Status.IDLE
            and not self.waits_for_person
            and not self.waits_for_worker
            and self.owes_run
            and self.queued_count > 0
        )

    @property
    def holds_queue(self) -> bool:
        """Messages wait, and none is taken before somebody says so."""
        return (
            self.status == self.Status.IDLE
            and self.queued_count > 0
            and not self.waits_for_person
            and not self.waits_for_worker
            and not self.owes_run
        )

    @property
    def has_stopped_short(self) -> bool:
        """It rests because of a failure, a limit or a refusal."""
        return self.status == self.Status.IDLE and self.stop_reason in {
            "retries_exhausted",
            "budget_reached",
            "refusal",
        }

    def features_with(self, changes: dict[str, bool]) -> dict[str, Any]:
        return Features.model_validate({**self.stored_features, **changes}).model_dump()


_BESIDE = ("agent_version", "owner")
_WHOLE = Prepared(
    lambda given: Conversation.objects.select_related(*_BESIDE).order_by().filter(pk=given.pk)
)
