"""Caps on what model calls may use, how far each is used up in its period, and what is reserved.

Amounts are whole numbers, because a cap must not depend on rounding: tokens, or hundred-millionths of
a US dollar (`spending.amounts`). Counting is `spending.budgets`' part, and nobody else's.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from conversations.models.conversation import Conversation
from harness.ids import new_id
from spending.amounts import amount_text


def new_budget_id() -> str:
    return new_id("bdgt")


class BudgetQuerySet(models.QuerySet["Budget"]):
    def in_force(self) -> Self:
        return self.filter(removed_at=None)

    def applying_to(
        self,
        conversation: Conversation,
        payer: int,
        *,
        asker: int | None = None,
        server_keys: bool = False,
    ) -> Self:
        """All whose cap a call of this conversation counts against, widest first. `asker` is the key of the
        person for whom it is; None: for whom the present turn is.

        `payer` is the key of the person charged for it (`accounts.persons.charged_person`). With
        `server_keys` the call uses a key of the deployment; a person's own budget for those comes last.
        """
        person = Q(scope=Budget.Scope.PERSON) & (Q(user=None) | Q(user=payer))
        return (
            self.in_force()
            .filter(
                (person if server_keys else Q(pk__in=[]))
                | Q(scope=Budget.Scope.DEPLOYMENT)
                | Q(
                    scope=Budget.Scope.ORGANISATION,
                    organisation=conversation.organisation_id,
                )
                | Q(
                    scope=Budget.Scope.USER,
                    organisation=conversation.organisation_id,
                    user__in={asker or conversation.asker_id, payer},
                )
                | Q(scope=Budget.Scope.CONVERSATION, conversation__in=_lineage(conversation))
            )
            .order_by("scope", "pk")
        )

    def visible_to(self, user: User) -> Self:
        """One's own, the shared one of organisations one belongs to, and whatever one may manage."""
        if not user.is_active:
            return self.none()
        if user.is_superuser:
            return self.all()
        memberships = user.memberships.all()
        managed = memberships.filter(role__in=[role for role in Role if role.manages])
        return self.filter(
            Q(
                scope=Budget.Scope.ORGANISATION,
                organisation__in=memberships.values("organisation"),
            )
            | Q(scope=Budget.Scope.PERSON, user=user)
            | Q(scope=Budget.Scope.PERSON, user=None)
            | Q(user=user, organisation__in=memberships.values("organisation"))
            | Q(
                conversation__owner=user,
                conversation__organisation__in=memberships.values("organisation"),
            )
            | Q(organisation__in=managed.values("organisation"))
        )


class Budget(models.Model):
    class Scope(models.IntegerChoices):
        """Numbered in the order in which rows are locked."""

        DEPLOYMENT = 1, _("everybody on this server")
        ORGANISATION = 2, _("the organisation")
        USER = 3, _("one member")
        CONVERSATION = 4, _("one conversation")
        PERSON = 5, _("a person on this server's keys")

    class Unit(models.TextChoices):
        TOKENS = "tokens", _("tokens")
        MONEY = "money", _("US dollars")

    class Period(models.TextChoices):
        DAY = "day", _("a day")
        MONTH = "month", _("a month")
        TOTAL = "total", _("in all")
        RUN = "run", _("a run")

    uid = models.CharField(max_length=40, unique=True, default=new_budget_id, editable=False)
    scope = models.PositiveSmallIntegerField(_("scope"), choices=Scope)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, null=True, blank=True, related_name="budgets"
    )
    """Set for every scope but the deployment's and a person's: who may manage it."""
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="budgets",
    )
    """Of a person's budget on the server's keys: empty caps everybody who has none of her own."""
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, null=True, blank=True, related_name="budgets"
    )
    unit = models.CharField(_("unit"), max_length=10, choices=Unit)
    period = models.CharField(_("period"), max_length=10, choices=Period)
    """Days and months of the calendar in the site's time zone; a run lasts from the message that begins
    it to the rest that ends it, with all that its helpers do meanwhile."""
    limit = models.PositiveBigIntegerField(_("limit"))
    ceiling = models.PositiveBigIntegerField(null=True, editable=False)
    """Of a conversation's budget: the limit that somebody who manages it set, beyond which its owner
    may not go; null when nobody did."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Who set the limit that holds now, or lifted it."""
    updated_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    """Kept after it was lifted, with what was spent under it."""

    objects = BudgetQuerySet.as_manager()

    class Meta:
        ordering = ["scope", "pk"]
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        constraints = [
            models.CheckConstraint(
                name="budget_scope_names_its_subject",
                condition=Q(scope=1, organisation=None, user=None, conversation=None)
                | Q(scope=2, organisation__isnull=False, user=None, conversation=None)
                | Q(scope=3, organisation__isnull=False, user__isnull=False, conversation=None)
                | Q(scope=4, organisation__isnull=False, user=None, conversation__isnull=False)
                | Q(scope=5, organisation=None, conversation=None),
            ),
            models.UniqueConstraint(
                fields=["unit", "period"],
                condition=Q(scope=1, removed_at=None),
                name="one_deployment_budget",
            ),
            models.UniqueConstraint(
                fields=["organisation", "unit", "period"],
                condition=Q(scope=2, removed_at=None),
                name="one_organisation_budget",
            ),
            models.UniqueConstraint(
                fields=["organisation", "user", "unit", "period"],
                condition=Q(scope=3, removed_at=None),
                name="one_member_budget",
            ),
            models.UniqueConstraint(
                fields=["conversation", "unit", "period"],
                condition=Q(scope=4, removed_at=None),
                name="one_conversation_budget",
            ),
            models.UniqueConstraint(
                fields=["user", "unit", "period"],
                condition=Q(scope=5, removed_at=None, user__isnull=False),
                name="one_person_budget",
            ),
            models.UniqueConstraint(
                fields=["unit", "period"],
                condition=Q(scope=5, removed_at=None, user=None),
                name="one_budget_for_each_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.whose}: {self.limit_text} {self.get_period_display()}"

    @property
    def whose(self) -> str:
        """Whom it caps, in words."""
        match self.scope:
            case Budget.Scope.ORGANISATION:
                return str(self.organisation)
            case Budget.Scope.USER:
                return _now("%(person)s in %(organisation)s") % {
                    "person": self.user,
                    "organisation": self.organisation,
                }
            case Budget.Scope.CONVERSATION:
                owner = self.conversation.owner if self.conversation else ""
                return _now("A conversation of %(person)s") % {"person": owner}
            case Budget.Scope.PERSON if self.user is not None:
                return _now("%(person)s on this server's keys") % {"person": self.user}
            case Budget.Scope.PERSON:
                return _now("Each person on this server's keys")
        return _now("This server")

    @property
    def is_for_each(self) -> bool:
        """Whether it is counted for each person by herself."""
        return self.scope == Budget.Scope.PERSON and self.user_id is None

    @property
    def is_personal(self) -> bool:
        """Whether its figures are one person's, and not for all who read her conversations."""
        return self.scope in {Budget.Scope.USER, Budget.Scope.PERSON}

    @property
    def limit_text(self) -> str:
        return amount_text(self.unit, self.limit)


class BudgetPeriod(models.Model):
    """How far a budget is used up on one day, in one month, in all, or in a conversation's latest run.

    reserved + spent ≤ limit holds at every commit, with one exception that no cap can prevent: what
    was spent before the limit was set so low, or beyond a call's own estimate.
    """

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="periods")
    starts_on = models.DateField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    """Whose share it is, of a budget for each person."""
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, null=True, related_name="+"
    )
    """Of a budget for each run: the conversation that people began, whose runs it counts in turn."""
    turn = models.CharField(max_length=40, blank=True)
    """The run that is counted now; the next one begins at nothing."""
    limit = models.PositiveBigIntegerField()
    """The budget's in this period; in this row so that one lock covers all three numbers."""
    spent = models.PositiveBigIntegerField(default=0)
    reserved = models.PositiveBigIntegerField(default=0)
    """The sum of the reservations that point here."""

    class Meta:
        verbose_name = _("budget period")
        verbose_name_plural = _("budget periods")
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "starts_on"],
                condition=Q(user=None, conversation=None),
                name="one_row_per_period",
            ),
            models.UniqueConstraint(
                fields=["budget", "starts_on", "user"],
                condition=Q(user__isnull=False, conversation=None),
                name="one_row_per_period_and_person",
            ),
            models.UniqueConstraint(
                fields=["budget", "conversation"],
                condition=Q(user=None, conversation__isnull=False),
                name="one_row_per_run",
            ),
            models.UniqueConstraint(
                fields=["budget", "conversation", "user"],
                condition=Q(user__isnull=False, conversation__isnull=False),
                name="one_row_per_run_and_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.starts_on}"

    @property
    def room(self) -> int:
        """What may still be reserved; negative when more was spent than is allowed now."""
        return self.limit - self.spent - self.reserved


class Reservation(models.Model):
    """The worst case of one model call under way, held back in one period of one budget."""

    model_request_id = models.CharField(max_length=40)
    """The id of the span's start event."""
    period = models.ForeignKey(BudgetPeriod, on_delete=models.CASCADE, related_name="reservations")
    conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Null once it is deleted: then nobody settles the call, and a job gives back what it held."""
    amount = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("reservation")
        verbose_name_plural = _("reservations")
        constraints = [
            models.UniqueConstraint(
                fields=["model_request_id", "period"], name="one_reservation_per_call"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model_request_id}: {self.amount}"


class BudgetStopQuerySet(models.QuerySet["BudgetStop"]):
    def held(self) -> Self:
        return self.filter(released_at=None)

    def released(self) -> Self:
        return self.filter(released_at__isnull=False)


class BudgetStop(models.Model):
    """A conversation whose last call a budget refused, until it goes on, for whatever reason."""

    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="budget_stop"
    )
    period = models.ForeignKey(BudgetPeriod, on_delete=models.CASCADE, related_name="stops")
    needed = models.PositiveBigIntegerField(null=True)
    """What the refused call would have reserved; null when that is unknown for lack of a price."""
    created_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True)
    """Since when it may go on; a job sees to it."""
    released_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Who raised or lifted the budget; null when other calls made room."""

    objects = BudgetStopQuerySet.as_manager()

    class Meta:
        verbose_name = _("stop at a budget")
        verbose_name_plural = _("stops at budgets")
        indexes = [
            models.Index(
                fields=["id"], condition=Q(released_at__isnull=False), name="budget_stops_released"
            )
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id} at {self.period_id}"


def _lineage(conversation: Conversation) -> list[int]:
    """The conversation, the one that started it, and so on up."""
    ids = [conversation.pk]
    parent = conversation.parent_id
    while parent is not None:
        ids.append(parent)
        parent = Conversation.objects.values_list("parent_id", flat=True).get(pk=parent)
    return ids
