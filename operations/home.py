"""What the admin's first page tells a member of staff: what waits, fails, costs and changed.

Each part is there for whoever may open the list that it leads to, and asks for nothing else. Every query ends
at a bound: figures stop counting, and what has failed is looked for among the latest rows alone. Nothing here
is what people wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.administration.requests import actor_of
from accounts.models import User
from accounts.staff import has_staff_permission
from agents.models.review import DECIDE_ANY, AgentReview
from approvals.models import Approval
from audit.models import AuditEntry
from conversations.claims import owing
from conversations.models import Conversation, Run
from deadletters.models import DeadLetter
from memory.models import EmbeddingClaim
from spending.amounts import money, number
from spending.models import Budget, Usage
from spending.reports import Span
from spending.standings import Standing, standings
from webhooks.models import WebhookDelivery, WebhookEndpoint
from workers.models import WorkItem

from .listing import COUNTED, Figure

SHOWN = 5
"""Rows of a list in a panel; its link leads to all."""
LOOKED_BACK = 1_000
"""Among so many of the latest rows failures are looked for, and changes among as many of the audit log."""
MOST_BUDGETS = 200
KEPT_SECONDS = 60
"""How long the sums of what was spent are believed, which are the only ones that grow with the month."""

Act = AuditEntry.Action
ROUTINE = (
    Act.ASKED,
    Act.SEEN,
    Act.ASSIGNED,
    Act.ALLOWED,
    Act.DENIED,
    Act.PUT_ASIDE,
    Act.EXPIRED,
    Act.CANCELLED,
    Act.REFUSED,
)
"""What the audit log holds of the day's work; the rest is somebody changing how this site behaves."""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of a panel, with the list behind it."""

    label: str
    figure: str
    address: str = ""
    is_bad: bool = False
    since: datetime | None = None
    percent: int | None = None
    """How full, for what has a limit."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing of a panel's short list."""

    label: str
    address: str = ""
    remark: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    name: str
    title: str
    lines: Sequence[Line] = ()
    entries: Sequence[Entry] = ()
    entries_title: str = ""
    empty: str = ""
    """Said where there is neither a figure above nothing nor an entry."""
    links: Sequence[tuple[str, str]] = ()

    @property
    def is_quiet(self) -> bool:
        return not self.entries and all(line.figure == "0" for line in self.lines)


def with_panels(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by the theme for the admin's first page (`UNFOLD["DASHBOARD_CALLBACK"]`)."""
    return {**context, "panels": panels(actor_of(request))}


def panels(user: User) -> list[Panel]:
    """Those of which the person may see anything."""
    made = (waits(user), fails(user), costs(user), changed(user))
    return [panel for panel in made if panel is not None]


def may_see(user: User, model: str) -> bool:
    """As the admin asks: whoever may change rows may look at them. `model` is `app.name`."""
    app, _dot, name = model.partition(".")
    return any(has_staff_permission(user, f"{app}.{verb}_{name}") for verb in ("view", "change"))


# --- what waits -----------------------------------------------------------------------------------


def waits(user: User) -> Panel | None:
    """Calls that wait for an answer, conversations for people or a run, and work for workers."""
    lines, entries = [], []
    if may_see(user, "approvals.approval"):
        found = Approval.objects.visible_to(user).waiting()
        lines.append(_line(_("Approvals"), found, reverse("approvals:approvals"), "asked_at"))
        oldest = found.select_related("organisation", "requested_by").order_by("pk")[:SHOWN]
        entries = [
            Entry(
                label=one.tool,
                address=reverse("approvals:approval", kwargs={"uid": one.uid}),
                remark=" · ".join(
                    str(part) for part in (one.organisation, one.requested_by) if part
                ),
                at=one.asked_at,
            )
            for one in oldest
        ]
    if has_staff_permission(user, DECIDE_ANY):
        asked = AgentReview.objects.visible_to(user).waiting()
        reviews = reverse("agents:reviews")
        lines.append(_line(_("Agents that wait for a review"), asked, reviews, "asked_at"))
    if may_see(user, "conversations.conversation"):
        stopped = Conversation.objects.filter(
            status=Conversation.Status.IDLE, stop_reason="requires_action"
        )
        lines += [
            _line(
                _("Conversations that wait for people"),
                stopped,
                reverse("operations:operations-waiting"),
                "active_at",
            ),
            _line(
                _("Conversations that wait for a run"),
                owing(),
                reverse("operations:operations-backlog"),
                "active_at",
            ),
        ]
    if may_see(user, "workers.workitem"):
        queued = WorkItem.objects.filter(state=WorkItem.State.QUEUED)
        lines.append(
            _line(
                _("Work that no worker took"),
                queued,
                _list_of("workers.workitem", state__exact="queued"),
                "created_at",
            )
        )
    if not lines:
        return None
    return Panel(
        "waits",
        _("What waits"),
        lines,
        entries,
        entries_title=_("Asked longest ago"),
        empty=_("Nobody and nothing waits."),
    )


# --- what fails -----------------------------------------------------------------------------------


def fails(user: User) -> Panel | None:
    """Turns that were given up, and failures of runs, webhooks and workers among the latest of each."""
    lines, entries = [], []
    if may_see(user, "deadletters.deadletter"):
        found = DeadLetter.objects.open()
        address = reverse("operations:operations-letters")
        lines.append(_line(_("Dead letters"), found, address, "created_at", is_bad=True))
        latest = found.select_related("conversation", "organisation").order_by("-pk")[:SHOWN]
        entries = [
            Entry(
                label=letter.code,
                address=reverse("admin:deadletters_deadletter_change", args=[letter.pk]),
                remark=f"{letter.organisation} · {letter.get_cause_display()}",
                at=letter.failed_at,
            )
            for letter in latest
        ]
    if may_see(user, "conversations.run"):
        for state, label in (
            (Run.State.FAILED, _("Failed runs")),
            (Run.State.LOST, _("Lost runs")),
        ):
            runs = _latest(Run.objects.all()).filter(state=state)
            address = _list_of("conversations.run", state__exact=state.value)
            lines.append(_line(label, runs, address, is_bad=True))
    if may_see(user, "webhooks.webhookdelivery"):
        dead = _latest(WebhookDelivery.objects.all()).filter(state=WebhookDelivery.State.DEAD)
        address = _list_of("webhooks.webhookdelivery", state__exact="dead")
        lines.append(_line(_("Webhook deliveries given up"), dead, address, is_bad=True))
    if may_see(user, "webhooks.webhookendpoint"):
        off = WebhookEndpoint.objects.filter(disabled_at__isnull=False).exclude(
            disabled_reason=WebhookEndpoint.Reason.PERSON
        )
        address = _list_of("webhooks.webhookendpoint", disabled_reason__exact="failing")
        lines.append(_line(_("Webhooks switched off"), off, address, is_bad=True))
    if may_see(user, "workers.workitem"):
        ended = (WorkItem.Ending.LOST, WorkItem.Ending.UNCLAIMED)
        lost = _latest(WorkItem.objects.all()).filter(ending__in=ended)
        address = _list_of("workers.workitem", ending__exact="lost")
        lines.append(_line(_("Work lost with its worker"), lost, address, is_bad=True))
    if may_see(user, "memory.memorystore"):
        lines += _embeddings_lines()
    if not lines:
        return None
    return Panel(
        "fails",
        _("What fails"),
        lines,
        entries,
        entries_title=_("Failed last"),
        empty=_("Nothing failed."),
    )


def _embeddings_lines() -> Iterator[Line]:
    """Why there are no new vectors, where a service was asked for some and gave none."""
    failing = EmbeddingClaim.objects.exclude(problem="").order_by("name").first()
    if settings.AGENTSITE_EMBEDDINGS and failing is not None:
        address = _list_of("memory.memorystore")
        yield Line(_("Service of embeddings"), failing.problem, address, is_bad=True)


# --- what it costs --------------------------------------------------------------------------------


def costs(user: User) -> Panel | None:
    """What was spent today and this month, and the shared budgets that are fullest."""
    lines: list[Line] = []
    if may_see(user, "spending.usage"):
        today = timezone.localdate()
        lines += _spent(_("Today"), Span(today, today))
        lines += _spent(_("This month"), Span(today.replace(day=1), today))
    if may_see(user, "spending.budget"):
        lines += [_budget_line(one) for one in _fullest()]
    if not lines:
        return None
    lists = {"spending.budget": _("Budgets"), "spending.modelprice": _("Model prices")}
    return Panel(
        "costs",
        _("What it costs"),
        lines,
        links=[(label, _list_of(model)) for model, label in lists.items() if may_see(user, model)],
    )


def _spent(label: str, span: Span) -> Iterator[Line]:
    key = f"operations.spent.{span.first}.{span.last}"
    sums: dict[str, Any] | None = cache.get(key)
    if sums is None:
        sums = span.of(Usage.objects.order_by()).aggregate(
            calls=Count("pk"), unpriced=Count("pk", filter=Q(cost=None)), cost=Sum("cost")
        )
        cache.set(key, sums, KEPT_SECONDS)
    address = _list_of(
        "spending.usage",
        created_at_from=span.first.isoformat(),
        created_at_to=span.last.isoformat(),
    )
    told = money(sums["cost"] or Decimal(0))
    calls = ngettext("%(calls)s call", "%(calls)s calls", sums["calls"]) % {
        "calls": number(sums["calls"])
    }
    yield Line(label, f"{told} · {calls}", address)
    if sums["unpriced"]:
        yield Line(
            _("%(when)s without a known price") % {"when": label},
            number(sums["unpriced"]),
            _list_of("spending.usage", created_at_from=span.first.isoformat()),
            is_bad=True,
        )


def _fullest() -> list[Standing]:
    """Of the budgets that many share, and of those the fullest first."""
    shared = Budget.objects.in_force().filter(
        scope__in=(Budget.Scope.DEPLOYMENT, Budget.Scope.ORGANISATION)
    )
    found = standings(
        shared.exclude(period=Budget.Period.RUN)
        .select_related("organisation", "user")
        .order_by("scope", "pk")[:MOST_BUDGETS]
    )
    return sorted(found, key=lambda one: -one.percent)[:SHOWN]


def _budget_line(one: Standing) -> Line:
    told = _("%(spent)s of %(limit)s %(period)s") % {
        "spent": one.spent_text,
        "limit": one.limit_text,
        "period": one.period_text,
    }
    return Line(
        _("Budget: %(whose)s") % {"whose": one.name},
        told,
        _list_of("spending.budget"),
        is_bad=one.is_near,
        percent=one.percent,
    )


# --- what changed ---------------------------------------------------------------------------------


def changed(user: User) -> Panel | None:
    """Who lately changed how the site behaves."""
    if not may_see(user, "audit.auditentry"):
        return None
    latest = _latest(AuditEntry.objects.visible_to(user)).exclude(action__in=ROUTINE)
    entries = [
        Entry(
            label=capfirst(entry.get_action_display()),
            address=reverse("admin:audit_auditentry_change", args=[entry.pk]),
            remark=" · ".join(
                str(part) for part in (entry.actor_name, entry.organisation, entry.tool) if part
            ),
            at=entry.at,
        )
        for entry in latest.select_related("organisation").order_by("-pk")[: 2 * SHOWN]
    ]
    return Panel(
        "changed",
        _("What changed"),
        entries=entries,
        empty=_("Nobody changed anything lately."),
        links=[(_("Audit log"), _list_of("audit.auditentry"))],
    )


# --- parts ----------------------------------------------------------------------------------------


def _line(
    label: str, found: QuerySet[Any], address: str, since: str = "", *, is_bad: bool = False
) -> Line:
    count = found.order_by()[: COUNTED + 1].count()
    oldest = (
        found.order_by(since).values_list(since, flat=True).first() if count and since else None
    )
    return Line(label, Figure(count).shown, address, is_bad=is_bad and count > 0, since=oldest)


def _latest(rows: Any) -> Any:
    """The newest rows by their key, whatever else is asked of them: a range that ends, with any filter."""
    newest = rows.model._default_manager.order_by("-pk").values_list("pk", flat=True).first() or 0  # noqa: SLF001
    return rows.filter(pk__gt=newest - LOOKED_BACK)


def _list_of(model: str, **chosen: str) -> str:
    address = reverse(f"admin:{model.replace('.', '_')}_changelist")
    return f"{address}?{urlencode(chosen)}" if chosen else address
