"""What came of the conversations that begin with an agent's canary, beside those that begin with the version
in use. Reads rows and counts; nothing of what was said is in it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from agents.models import AgentVersion
from conversations.ancestry import WithDescendants
from conversations.models import Conversation, Event
from conversations.models.conversation import ConversationQuerySet
from deadletters.models import DeadLetter
from harness.events import FeedbackGiven
from spending.models import Usage

from .models import Canary

FEEDBACK = FeedbackGiven.model_fields["type"].default


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the conversations that people began with one version since the canary began."""

    version: int
    conversations: int
    failed: int
    """With a turn that ended in a failure."""
    cost: Decimal
    """US dollars, with all that their agents began."""
    unpriced: bool
    """Some of it has no known price, so that `cost` is too little."""
    good: int
    """Answers that readers think well of."""
    bad: int

    @property
    def failed_percent(self) -> int:
        return round(100 * self.failed / self.conversations) if self.conversations else 0

    @property
    def cost_each(self) -> Decimal:
        return self.cost / self.conversations if self.conversations else Decimal(0)


def canary_of(agent_id: int) -> Canary | None:
    """The one that goes on."""
    rows = Canary.objects.filter(agent=agent_id, ended_as="")
    return rows.select_related("version", "against", "started_by").first()


def figures(canary: Canary) -> tuple[Figures, Figures]:
    """Of the version in use, then of the canary."""
    return _figures(canary, canary.against), _figures(canary, canary.version)


def as_json(canary: Canary) -> dict[str, Any]:
    """For programs; `/api` says what each key means."""
    return {
        "version": canary.version.number,
        "share": canary.share,
        "reason": canary.reason,
        "started_at": canary.started_at.isoformat(),
        **{
            name: {
                "version": of.version,
                "conversations": of.conversations,
                "failed": of.failed,
                "cost": str(of.cost),
                "unpriced": of.unpriced,
                "good": of.good,
                "bad": of.bad,
            }
            for name, of in zip(("in_use", "canary"), figures(canary), strict=True)
        },
    }


def _figures(canary: Canary, version: AgentVersion) -> Figures:
    began = Conversation.objects.listed().filter(
        agent_version=version, created_at__gte=canary.started_at, origin=None
    )
    if canary.ended_at is not None:
        began = began.filter(created_at__lt=canary.ended_at)
    spent = Usage.objects.filter(conversation__in=WithDescendants(began.order_by().values("pk")))
    good, bad = _feedback(began)
    return Figures(
        version=version.number,
        conversations=began.count(),
        failed=DeadLetter.objects.filter(conversation__in=began.values("pk"))
        .values("conversation")
        .distinct()
        .count(),
        cost=spent.aggregate(sum=Sum("cost"))["sum"] or Decimal(0),
        unpriced=spent.filter(cost=None).exists(),
        good=good,
        bad=bad,
    )


def _feedback(began: ConversationQuerySet) -> tuple[int, int]:
    """Good and bad, by the last word of each reader about each answer."""
    rows = Event.objects.filter(conversation__in=began.values("pk"), type=FEEDBACK)
    words = rows.order_by("conversation", "seq").values_list("actor", "payload")
    last = {(actor, said["event_id"]): said["rating"] for actor, said in words.iterator()}
    given = list(last.values())
    return given.count("up"), given.count("down")
