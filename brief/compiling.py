"""Puts together what a person is to be told: reads the tables of what worked for her, and writes nothing.

No model is asked. First lines are what the agents said last, as the runs' own rows have them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, F, Q, Sum
from django.urls import reverse
from django.utils import timezone

from accounts.models import Organisation, User
from approvals.beside import tabs
from approvals.models import Approval
from conversations.models import BackgroundCommand, Conversation
from deadletters.models import DeadLetter
from schedules.models import OrderRun, StandingOrder
from schedules.projection import STOPPED
from spending.models import Budget, Usage
from spending.standings import standings
from subagents.models import Subagent

from .contents import Contents, Line, Spent

MOST = 40
"""Lines of one list; more are counted."""
MOST_RUNS = 2_000
"""Runs of schedules that are looked at, the latest."""
NAME = 120
"""Characters of a name."""


def compile_brief(
    user: User, organisation: Organisation, *, since: datetime, until: datetime
) -> Contents:
    """What happened after `since` and no later than `until`, and what waits and how budgets stand now."""
    found = OrderRun.objects.visible_to(user).filter(
        order__organisation=organisation, ended_at__gt=since, ended_at__lte=until
    )
    runs = list(found.select_related("order", "conversation").order_by("-pk")[:MOST_RUNS])
    lists = [
        list(_waits(user, organisation)),
        [*_ended_well(runs), *_background(user, organisation, since, until, well=True)],
        [
            *_failed(runs),
            *_background(user, organisation, since, until, well=False),
            *_letters(user, organisation),
        ],
        [*_left_out(runs), *_paused(user, organisation, since, until)],
        [*_drifted(runs), *_changed(user, organisation)],
    ]
    waits, ran, failed, skipped, changed = (tuple(each[:MOST]) for each in lists)
    return Contents(
        waits=waits,
        ran=ran,
        failed=failed,
        skipped=skipped,
        changed=changed,
        spent=_spent(user, organisation, since, until, runs),
        budgets=tuple(_budgets(user, organisation)),
        more=sum(max(0, len(each) - MOST) for each in lists),
    )


# --- what waits -----------------------------------------------------------------------------------


def _waits(user: User, organisation: Organisation) -> Iterator[Line]:
    asked = Approval.objects.decidable_by(user).filter(organisation=organisation)
    asking = set()
    for approval in asked.select_related("conversation").order_by("asked_at", "pk")[: 2 * MOST]:
        asking.add(approval.conversation_id)
        yield Line(
            kind="approval",
            name=approval.tool,
            path=reverse("approvals:approval", kwargs={"uid": approval.uid}),
            words=name_in_brief(approval.conversation.title),
            at=approval.asked_at,
        )
    waiting = Conversation.objects.owned_by(user).filter(
        organisation=organisation,
        status=Conversation.Status.IDLE,
        stop_reason="requires_action",
        archived_at=None,
    )
    for conversation in waiting.exclude(pk__in=asking).order_by("active_at")[: 2 * MOST]:
        yield Line(
            kind="question",
            name=name_in_brief(conversation.title),
            path=conversation.get_absolute_url(),
            at=conversation.active_at,
        )
    for tab in tabs(user):
        if tab.count:
            yield Line(kind="list", name=str(tab.label), path=tab.address, words=tab.count)


# --- what ran, and how it ended -------------------------------------------------------------------


def _ended_well(runs: Iterable[OrderRun]) -> Iterator[Line]:
    for run in runs:
        if run.state == OrderRun.State.SUCCEEDED:
            yield _of_run(run)


def _failed(runs: Iterable[OrderRun]) -> Iterator[Line]:
    for run in runs:
        # Whoever stopped one knows.
        if run.state == OrderRun.State.FAILED and run.error != STOPPED:
            yield _of_run(run)


def _of_run(run: OrderRun) -> Line:
    target = run.conversation or run.order
    return Line(
        kind="schedule",
        name=run.order.name,
        path=target.get_absolute_url(),
        words=run.words,
        code=run.error,
        at=run.ended_at,
        cost=run.cost,
    )


def _background(
    user: User, organisation: Organisation, since: datetime, until: datetime, *, well: bool
) -> Iterator[Line]:
    """Subagents and commands beside the turns of conversations of hers."""
    good = Q(state="completed")
    wanted = good if well else ~good & ~Q(state__in=["stopped", "cancelled"])
    own = Conversation.objects.owned_by(user).filter(organisation=organisation, unlisted=False)
    agents = Subagent.objects.filter(
        wanted, background=True, parent__in=own, ended_at__gt=since, ended_at__lte=until
    )
    for subagent in agents.select_related("child", "parent").order_by("pk")[: 2 * MOST]:
        yield Line(
            kind="subagent",
            name=name_in_brief(subagent.description),
            path=(subagent.child or subagent.parent).get_absolute_url(),
            words=subagent.detail,
            code="" if well else subagent.state,
            at=subagent.ended_at,
        )
    commands = BackgroundCommand.objects.filter(
        wanted, conversation__in=own, ended_at__gt=since, ended_at__lte=until
    )
    for command in commands.select_related("conversation").order_by("pk")[: 2 * MOST]:
        yield Line(
            kind="command",
            name=name_in_brief(command.command),
            path=command.conversation.get_absolute_url(),
            words=command.detail,
            code="" if well else command.state,
            at=command.ended_at,
        )


def _letters(user: User, organisation: Organisation) -> Iterator[Line]:
    """Turns that are given up until somebody does something, other than those of schedules, which are told
    of as runs."""
    own = Conversation.objects.owned_by(user).filter(organisation=organisation, unlisted=False)
    told = OrderRun.objects.exclude(conversation=None).values("conversation")
    letters = DeadLetter.objects.open().filter(conversation__in=own)
    letters = letters.exclude(conversation__in=told).select_related("conversation")
    for letter in letters.order_by("failed_at")[: 2 * MOST]:
        yield Line(
            kind="turn",
            name=name_in_brief(letter.conversation.title),
            path=letter.conversation.get_absolute_url(),
            words=letter.message[:500],
            code=letter.code,
            at=letter.failed_at,
        )


# --- what did not run, and what is another thing now ----------------------------------------------


def _left_out(runs: Iterable[OrderRun]) -> Iterator[Line]:
    """One line for each schedule and reason."""
    found: defaultdict[tuple[int, str], list[OrderRun]] = defaultdict(list)
    for run in runs:
        if run.state == OrderRun.State.SKIPPED:
            found[run.order_id, run.skip].append(run)
    for (_order, why), left_out in found.items():
        last = left_out[0]
        yield Line(
            kind="schedule",
            name=last.order.name,
            path=last.order.get_absolute_url(),
            code=f"skip:{why}",
            count=sum(run.skipped or 1 for run in left_out),
            at=last.ended_at,
        )


def _paused(
    user: User, organisation: Organisation, since: datetime, until: datetime
) -> Iterator[Line]:
    """Those that paused themselves; what she paused she knows."""
    paused = StandingOrder.objects.visible_to(user).filter(
        organisation=organisation, archived_at=None, paused_at__gt=since, paused_at__lte=until
    )
    for order in paused.exclude(pause=StandingOrder.Pause.MANUAL).order_by("paused_at"):
        yield Line(
            kind="schedule",
            name=order.name,
            path=order.get_absolute_url(),
            words=order.pause_words,
            code=f"pause:{order.pause}",
            at=order.paused_at,
        )


def _drifted(runs: Iterable[OrderRun]) -> Iterator[Line]:
    """Runs that were set up otherwise than the one before."""
    for run in runs:
        if run.drift:
            target = run.conversation or run.order
            yield Line(
                kind="schedule",
                name=run.order.name,
                path=target.get_absolute_url(),
                words="; ".join(run.drift_words)[:500],
                code="drift",
                at=run.started_at,
            )


def _changed(user: User, organisation: Organisation) -> Iterator[Line]:
    """Schedules whose agent has a newer version than the one that they stay with."""
    mine = StandingOrder.objects.visible_to(user).filter(organisation=organisation)
    behind = (
        mine.in_force()
        .exclude(agent_version__agent__current=None)
        .exclude(agent_version__agent__current=F("agent_version"))
    )
    for order in behind.select_related("agent_version__agent__current")[: 2 * MOST]:
        agent = order.agent_version.agent
        newest = agent.current.number if agent.current else 0
        yield Line(
            kind="schedule",
            name=order.name,
            path=order.get_absolute_url(),
            words=f"{agent.name}: {order.agent_version.number} → {newest}",
            code="newer_version",
        )


# --- money ----------------------------------------------------------------------------------------


def _spent(
    user: User,
    organisation: Organisation,
    since: datetime,
    until: datetime,
    runs: Iterable[OrderRun],
) -> Spent:
    rows = Usage.objects.filter(
        charged_to=user, organisation=organisation, created_at__gt=since, created_at__lte=until
    ).order_by()
    sums = rows.aggregate(
        calls=Count("pk"),
        unpriced=Count("pk", filter=Q(cost=None)),
        tokens=Sum(sum((F(name) for name in Usage.TOKENS[1:]), F(Usage.TOKENS[0])), default=0),
        total=Sum("cost", default=Decimal(0)),
    )
    return Spent(
        cost=sums["total"],
        tokens=sums["tokens"],
        calls=sums["calls"],
        unpriced=sums["unpriced"],
        by_schedules=sum((run.cost for run in runs if run.cost is not None), Decimal(0)),
    )


def _budgets(user: User, organisation: Organisation) -> Iterator[Line]:
    """Those of a calendar that hold for her here, with how far each is used up."""
    own = Q(scope=Budget.Scope.ORGANISATION) | Q(user=user)
    held = Budget.objects.visible_to(user).in_force().filter(own, organisation=organisation)
    held = held.exclude(period=Budget.Period.RUN).select_related("organisation", "user").distinct()
    for each in standings(held.order_by("scope", "pk")[:MOST], now=timezone.now(), person=user.pk):
        yield Line(
            kind="budget",
            name=each.name,
            path=reverse("spending:budgets"),
            words=f"{each.spent_text} / {each.limit_text} {each.period_text}",
            count=each.percent,
            code="near" if each.is_near else "",
        )


def name_in_brief(text: str) -> str:
    """One line; empty where there is no name, for which whoever shows it has a word."""
    shown = " ".join(text.split())
    return shown if len(shown) <= NAME else shown[: NAME - 1] + "…"
