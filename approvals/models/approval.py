"""Approvals: each one question about one tool call, answered once.

`approvals.projection` writes them with the log; `actions.approvals` decides. What runs is bound to
`input_sha256`, never to what a page happened to show.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.persons import accounts_of
from accounts.reviewing import reviewed_organisations
from accounts.staff import has_staff_permission
from conversations.models.conversation import Conversation
from harness.ids import new_id
from harness.patterns import input_hash

VIEW = "approvals.view_approval"
CHANGE = "approvals.change_approval"


def new_approval_uid() -> str:
    return new_id("appr")


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def visible_to(self, user: User) -> Self:
        """Those of conversations in which the person may decide, those of organisations she reviews,
        and all for staff with the permission."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, VIEW) or has_staff_permission(user, CHANGE):
            return self
        own = Q(conversation__in=Conversation.objects.decidable_by(user))
        reviewed = Q(organisation__in=reviewed_organisations(user))
        return self.filter(own | reviewed)

    def waiting(self, now: datetime | None = None) -> Self:
        """Open, and not past their time (which the sweep may not have noticed yet)."""
        moment = now or timezone.now()
        return self.filter(state=Approval.State.PENDING).filter(
            Q(expires_at=None) | Q(expires_at__gt=moment)
        )

    def overdue(self, now: datetime | None = None) -> Self:
        return self.filter(state=Approval.State.PENDING, expires_at__lte=now or timezone.now())

    def partly_allowed(self) -> Self:
        """What somebody has allowed, as it is asked now, that several people must allow."""
        allowed = ApprovalDecision.objects.filter(
            approval=models.OuterRef("pk"),
            round=models.OuterRef("round"),
            verdict=ApprovalDecision.Verdict.APPROVE,
        )
        return self.filter(models.Exists(allowed), needed__gt=1)

    def decidable_by(self, user: User) -> Self:
        """What waits for an answer that this person may give now."""
        if not user.is_active:
            return self.none()
        found = self.waiting()
        if not has_staff_permission(user, CHANGE):
            own = Q(conversation__in=Conversation.objects.decidable_by(user))
            reviewed = Q(organisation__in=reviewed_organisations(user))
            found = found.filter(own & Q(reviewers_only=False) | reviewed)
        if user.is_service:
            # Those it may decide on because a rule names it are not looked for: it has no queue.
            found = found.filter(needed=1, reviewers_only=False, requester_may_not_decide=False)
        acts_for = User.objects.filter(accounts_of(user))
        found = found.exclude(requester_may_not_decide=True, requested_by__in=acts_for)
        wrote = Approval.also_requested_by.through.objects.filter(user__in=acts_for)
        found = found.exclude(requester_may_not_decide=True, pk__in=wrote.values("approval"))
        voted = ApprovalDecision.objects.filter(
            by=user, verdict=ApprovalDecision.Verdict.APPROVE, round=models.F("approval__round")
        )
        return found.exclude(pk__in=voted.values("approval_id"))


class Approval(models.Model):
    class State(models.TextChoices):
        PENDING = "pending", _("waiting")
        APPROVED = "approved", _("approved")
        DENIED = "denied", _("denied")
        EXPIRED = "expired", _("expired")
        CANCELLED = "cancelled", _("no longer needed")

    class Risk(models.TextChoices):
        LOW = "low", _("low")
        MEDIUM = "medium", _("medium")
        HIGH = "high", _("high")

    uid = models.CharField(max_length=40, unique=True, default=new_approval_uid, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="approvals"
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="approvals"
    )
    """The one that asks; a subagent's or teammate's is a child."""
    root = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="approvals_below")
    """The conversation that people began: the asking one itself, or what it descends from."""
    call_uid = models.CharField(max_length=40)
    """The call's id, everywhere the same."""
    round = models.PositiveIntegerField(default=1)
    """Counts how often this call was asked for: again when its outcome is unknown, or on other terms."""
    tool = models.CharField(_("tool"), max_length=128)
    input = models.JSONField(_("input"))
    """Exactly as the model sent it."""
    input_sha256 = models.CharField(max_length=64)
    effect = models.CharField(_("reach"), max_length=20, blank=True)
    destructive = models.BooleanField(default=False)
    tainted = models.BooleanField(default=False)
    """Untrusted content had come into the run."""
    touches = models.JSONField(default=dict)
    """What it would touch: see `tools_app.touches`."""
    acts_on = models.TextField(blank=True, editable=False)
    """The ids of what it shows the texts of, between spaces: where one is forgotten, they go."""
    host = models.CharField(max_length=253, blank=True, editable=False)
    """The machine that the call goes to, of a tool that has one."""
    rule_level = models.CharField(_("level of the rule"), max_length=20, blank=True)
    rule_uid = models.CharField(max_length=40, blank=True)
    reason = models.TextField(_("why it waits"), blank=True)
    """Which rule stopped it, in words."""
    risk = models.CharField(_("risk"), max_length=10, choices=Risk, default=Risk.MEDIUM)
    needed = models.PositiveSmallIntegerField(default=1)
    """How many different people must allow it."""
    reviewers_only = models.BooleanField(default=False)
    requester_may_not_decide = models.BooleanField(default=False)
    service_accounts = models.JSONField(default=list)
    """Ids of those that may answer although people are asked for: the rules name them."""
    may_be_settled = models.BooleanField(default=True)
    """Whether an answer may also hold for later calls (scopes beyond `once`)."""
    turn_uid = models.CharField(max_length=40, blank=True)
    """The turn it belongs to, for the scope `run`."""
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("requested by"),
    )
    """The person the agent works for."""
    also_requested_by = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    """Who else wrote anywhere in its tree, whatever turn it was."""
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("assigned to"),
    )
    """Whom it was handed to: who is asked first, not who alone may answer."""
    assignee_role = models.CharField(max_length=16, choices=Role, blank=True)
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.PENDING)
    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    """Denied when nobody answers until then; empty: it waits for ever."""
    closed_at = models.DateTimeField(_("closed at"), null=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Whose answer settled it; empty when nobody's did."""
    final_input = models.JSONField(null=True)
    """What it was allowed with, where a person changed the input; while it waits, what the last of
    several people put in its place, or what it was allowed with before it was asked anew."""

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["-asked_at", "-id"]
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "call_uid"], name="approval_of_call"),
        ]
        indexes = [
            models.Index(
                fields=["organisation"],
                condition=~Q(acts_on=""),
                name="approval_acts_on",
            ),
            models.Index(
                fields=["organisation", "asked_at"],
                condition=Q(state="pending"),
                name="approval_waiting",
            ),
            models.Index(
                fields=["expires_at"], condition=Q(state="pending"), name="approval_expiring"
            ),
            models.Index(fields=["organisation", "state", "-asked_at"], name="approval_history"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} · {self.uid}"

    def get_absolute_url(self) -> str:
        """Where the question stands in its conversation; the owner's page."""
        page = reverse("conversations:conversation", kwargs={"uid": self.conversation.uid})
        return f"{page}#u-{self.call_uid}"

    @property
    def is_waiting(self) -> bool:
        return self.state == self.State.PENDING and not self.is_overdue

    @property
    def is_overdue(self) -> bool:
        return (
            self.state == self.State.PENDING
            and self.expires_at is not None
            and self.expires_at <= timezone.now()
        )

    @property
    def effective_input(self) -> dict[str, Any]:
        """What it runs, ran or would run with."""
        chosen: dict[str, Any] = self.input if self.final_input is None else self.final_input
        return chosen

    @property
    def effective_sha256(self) -> str:
        """The hash an answer must name: of what it would run with as things stand."""
        return input_hash(self.effective_input)

    @property
    def asked_first(self) -> str:
        """Whom it was handed to, as rules and programs name them; empty: nobody in particular."""
        if self.assignee is not None:
            return f"person:{self.assignee.uid}"
        return f"role:{self.assignee_role}" if self.assignee_role else ""

    @property
    def wants_people(self) -> bool:
        """Whether a condition makes who answers matter: then no program does."""
        return self.needed > 1 or self.reviewers_only or self.requester_may_not_decide

    @property
    def was_edited(self) -> bool:
        return self.final_input is not None


class ApprovalDecision(models.Model):
    """One account's answer, or that time ran out. `by` is empty for that, and when the account is gone."""

    class Verdict(models.TextChoices):
        APPROVE = "approve", _("approved")
        DENY = "deny", _("denied")
        NOT_NOW = "not_now", _("put aside")

    class Scope(models.TextChoices):
        ONCE = "once", _("once")
        RUN = "run", _("this run")
        CONVERSATION = "conversation", _("this conversation")
        ALWAYS = "always", _("always")

    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="decisions")
    round = models.PositiveIntegerField(default=1)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("by"),
    )
    persons = models.JSONField(default=list)
    """The keys of all who stood behind the account when it answered, sorted; empty when time ran out."""
    at = models.DateTimeField(_("at"), default=timezone.now)
    verdict = models.CharField(_("verdict"), max_length=10, choices=Verdict)
    reason = models.TextField(_("reason"), blank=True)
    edited_input = models.JSONField(null=True)
    input_sha256 = models.CharField(max_length=64, blank=True)
    """Of the input that was decided on."""
    scope = models.CharField(max_length=12, choices=Scope, default=Scope.ONCE)
    pattern = models.CharField(max_length=1_000, blank=True)
    """Which calls a scope beyond `once` covers; empty: exactly this one."""
    key = models.CharField(max_length=100, null=True)
    """The sender's own idempotency key: the same key twice is one decision."""

    class Meta:
        ordering = ["id"]
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        constraints = [
            models.UniqueConstraint(
                fields=["approval", "key"],
                condition=Q(key__isnull=False),
                name="decision_key_unique",
            ),
            models.UniqueConstraint(
                fields=["approval", "round", "by", "input_sha256"],
                condition=Q(verdict="approve"),
                name="one_consent_a_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} · {self.approval_id}"

    @property
    def is_of_nobody(self) -> bool:
        """Whether time ran out, rather than that somebody answered."""
        return self.by_id is None and not self.persons
