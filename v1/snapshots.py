"""What a session says of itself: its agent's snapshot, what it used, how long it worked, its cap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Any, Literal

from django.db.models import Count, DurationField, F, QuerySet, Sum
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from pydantic import Field as PydanticField

from accounts.models import User
from conversations.models import Conversation, FileResource, Run, SessionVault
from conversations.outcomes import Standing, outcomes_of
from conversations.sandboxing import session_root
from recall.models import AttachedStore
from schedules.models import OrderRun
from spending.amounts import dollars_of
from spending.models import Budget, Usage
from subagents.casting import kind_of
from subagents.kinds import ADVISOR
from subagents.models import Subagent, Tree
from tools_app.workspace import PUBLIC_ROOT

from .agents import ConfiguredAgent, configured, session_agent
from .door import Shape

CENT = Decimal("0.01")
MOUNT = PUBLIC_ROOT
"""Where clients say that the workspace is."""


class Stats(Shape):
    active_seconds: float
    duration_seconds: float


class Money(Shape):
    amount: str
    """Whole cents."""
    currency: Literal["USD"] = "USD"


class BudgetShape(Shape):
    type: Literal["limit"] = "limit"
    max_list_cost: Money


class UsageShape(Shape):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation: dict[str, int]
    server_tool_use: dict[str, int]
    active_seconds: float
    list_cost: Money | None
    """Null while a model without a price was used."""


class FileResourceShape(Shape):
    type: Literal["file"] = "file"
    id: str
    file_id: str
    mount_path: str
    created_at: datetime
    updated_at: datetime


class OutcomeShape(Shape):
    type: Literal["outcome_evaluation"] = "outcome_evaluation"
    outcome_id: str
    description: str
    iteration: int
    result: str
    explanation: str | None
    completed_at: datetime | None


class MemoryStoreResourceShape(Shape):
    type: Literal["memory_store"] = "memory_store"
    memory_store_id: str
    access: Literal["read_write", "read_only"]
    instructions: str | None
    name: str
    description: str
    mount_path: str


ResourceShape = Annotated[
    FileResourceShape | MemoryStoreResourceShape, PydanticField(discriminator="type")
]


class SessionShape(Shape):
    type: Literal["session"] = "session"
    id: str
    status: Literal["rescheduling", "running", "idle", "terminated"]
    title: str | None
    agent: ConfiguredAgent
    environment_id: str
    resources: list[ResourceShape]
    vault_ids: list[str]
    metadata: dict[str, str]
    outcome_evaluations: list[OutcomeShape]
    stats: Stats
    usage: UsageShape
    budget: BudgetShape | None
    deployment_id: str | None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    x_owner_id: str
    x_organization_id: str
    x_features: dict[str, bool]
    x_last_seq: int
    """Number of the newest event: what `after_seq` counts in."""


@dataclass
class Figures:
    """What several sessions used, read with one query each."""

    usage: dict[int, dict[str, Any]] = field(default_factory=dict)
    active: dict[int, float] = field(default_factory=dict)
    caps: dict[int, int] = field(default_factory=dict)
    resources: dict[int, list[FileResource]] = field(default_factory=dict)
    stores: dict[int, list[AttachedStore]] = field(default_factory=dict)
    vaults: dict[int, list[str]] = field(default_factory=dict)
    outcomes: dict[int, list[Standing]] = field(default_factory=dict)
    deployments: dict[int, str] = field(default_factory=dict)
    works_below: set[int] = field(default_factory=set)
    """Those that rest because subagents work for them."""
    called: dict[int, Subagent] = field(default_factory=dict)
    """As what each was asked last."""


def with_all(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    return rows.select_related(
        "agent_version__agent__organisation",
        "agent_version__agent__current",
        "environment",
        "owner",
        "organisation",
        "parent",
    )


def figures_of(rows: Sequence[Conversation]) -> Figures:
    keys = [row.pk for row in rows]
    figures = Figures()
    sums = {name: Coalesce(Sum(name), 0) for name in Usage.TOKENS}
    spent: Any = Usage.objects.filter(conversation__in=keys).order_by().values("conversation")
    for each in spent.annotate(**sums, money=Sum("cost"), calls=Count("id"), priced=Count("cost")):
        figures.usage[each["conversation"]] = each
    runs: Any = Run.objects.filter(conversation__in=keys).order_by().values("conversation")
    worked = Sum(Coalesce("ended_at", Now()) - F("started_at"), output_field=DurationField())
    for each in runs.annotate(worked=worked):
        figures.active[each["conversation"]] = each["worked"].total_seconds()
    caps = Budget.objects.in_force().filter(
        conversation__in=keys, unit=Budget.Unit.MONEY, period=Budget.Period.TOTAL
    )
    figures.caps.update(caps.values_list("conversation", "limit"))
    for resource in FileResource.objects.filter(conversation__in=keys):
        figures.resources.setdefault(resource.conversation_id, []).append(resource)
    given = AttachedStore.objects.filter(conversation__in=keys).select_related("store")
    for attached in given:
        figures.stores.setdefault(attached.conversation_id, []).append(attached)
    runs_of_orders = OrderRun.objects.filter(conversation__in=keys)
    figures.deployments.update(runs_of_orders.values_list("conversation", "order__uid"))
    lent = SessionVault.objects.filter(conversation__in=keys).order_by("place")
    for key, uid in lent.values_list("conversation", "vault__uid"):
        figures.vaults.setdefault(key, []).append(uid)
    figures.outcomes.update(outcomes_of(keys))
    live = Subagent.objects.live().in_foreground().filter(parent__in=keys)
    figures.works_below.update(row.parent_id for row in live.only("parent"))
    if figures.works_below:
        asking = Tree.objects.filter(root__in=figures.works_below).exclude(asks={})
        figures.works_below -= {tree.root_id for tree in asking if tree.asks.get("rests")}
    if any(row.parent_id for row in rows):
        for asked in Subagent.objects.filter(child__in=keys).order_by("pk"):
            if asked.child_id is not None:
                figures.called[asked.child_id] = asked
    return figures


def session_shapes(rows: Sequence[Conversation], reader: User) -> list[dict[str, Any]]:
    """As `reader` may see them."""
    figures = figures_of(rows)
    return [_shape(row, figures, reader) for row in rows]


def session_shape(row: Conversation, reader: User) -> dict[str, Any]:
    return session_shapes([row], reader)[0]


def status_of(row: Conversation, figures: Figures) -> str:
    """An advisor's thread ends with its answer; who rests only until subagents have answered works."""
    asked = figures.called.get(row.pk)
    if row.archived_at is not None:
        return "terminated"
    if asked is not None and kind_of(asked) is ADVISOR and not asked.is_live:
        return "terminated"
    if row.waits_for_worker and row.pk in figures.works_below:
        return "running"
    return "running" if row.is_about_to_start else str(row.status)


def agent_of(row: Conversation, reader: User) -> dict[str, Any]:
    version = row.agent_version
    return {"type": "agent", **configured(version.agent, version.number, row.config, row, reader)}


def _shape(row: Conversation, figures: Figures, reader: User) -> dict[str, Any]:
    ended = row.active_at if row.archived_at else timezone.now()
    return SessionShape(
        id=row.uid,
        status=status_of(row, figures),
        title=row.title or None,
        agent=ConfiguredAgent.model_validate(
            session_agent(row.agent_version, row.config, row, reader)
        ),
        environment_id=row.environment.uid,
        resources=[
            *resource_shapes(row, figures.resources.get(row.pk, [])),
            *store_shapes(figures.stores.get(row.pk, [])),
        ],
        vault_ids=figures.vaults.get(row.pk, []),
        metadata=row.metadata,
        outcome_evaluations=[outcome_shape(each) for each in figures.outcomes.get(row.pk, ())],
        stats=Stats(
            active_seconds=figures.active.get(row.pk, 0.0),
            duration_seconds=max(0.0, (ended - row.created_at).total_seconds()),
        ),
        usage=usage_of(row, figures),
        budget=budget_shape(figures.caps.get(row.pk)),
        deployment_id=figures.deployments.get(row.pk),
        created_at=row.created_at,
        updated_at=row.active_at,
        archived_at=row.archived_at,
        x_owner_id=row.owner.uid,
        x_organization_id=row.organisation.uid,
        x_features=row.features.model_dump(),
        x_last_seq=row.last_seq,
    ).wire()


def outcome_shape(standing: Standing) -> OutcomeShape:
    return OutcomeShape(
        outcome_id=standing.defined.outcome_id,
        description=standing.defined.description,
        iteration=standing.iteration,
        result=standing.state,
        explanation=standing.explanation or None,
        completed_at=standing.completed_at,
    )


def usage_of(row: Conversation, figures: Figures) -> UsageShape:
    used = figures.usage.get(row.pk, {})
    priced = used.get("calls", 0) == used.get("priced", 0)
    return UsageShape(
        input_tokens=used.get("input_tokens", 0),
        output_tokens=used.get("output_tokens", 0),
        cache_read_input_tokens=used.get("cache_read_input_tokens", 0),
        cache_creation={
            "ephemeral_5m_input_tokens": used.get("cache_creation_input_tokens", 0),
            "ephemeral_1h_input_tokens": 0,
        },
        server_tool_use={"web_search_requests": 0, "web_fetch_requests": 0},
        active_seconds=figures.active.get(row.pk, 0.0),
        list_cost=money_shape(used.get("money") or Decimal(0)) if priced else None,
    )


def money_shape(dollars: Decimal) -> Money:
    cents = (dollars / CENT).to_integral_value(ROUND_HALF_UP)
    return Money(amount=str(int(cents)))


def budget_shape(limit: int | None) -> BudgetShape | None:
    return None if limit is None else BudgetShape(max_list_cost=money_shape(dollars_of(limit)))


def resource_shapes(
    conversation: Conversation, resources: Sequence[FileResource]
) -> list[FileResourceShape]:
    """Each with the path at which commands of the session find it."""
    root = session_root(conversation) if resources else ""
    return [
        FileResourceShape(
            id=resource.uid,
            file_id=resource.file_uid,
            mount_path=f"{root}/{resource.path}",
            created_at=resource.created_at,
            updated_at=resource.updated_at,
        )
        for resource in resources
    ]


def store_shapes(given: Iterable[AttachedStore]) -> list[MemoryStoreResourceShape]:
    """Memory stores as they were called when the session began."""
    return [
        MemoryStoreResourceShape(
            memory_store_id=each.store.uid,
            access=each.access,
            instructions=each.instructions or None,
            name=each.name,
            description=each.description,
            mount_path=each.path,
        )
        for each in given
    ]
