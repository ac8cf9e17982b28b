"""Collects the facts of a trial that has come to rest: from its log, its workspace, and the money.

What runs in a sandbox runs on the engine's loop (`run_commands`); all else is read in a database thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db.models import Count, Q, Sum

from conversations.ancestry import WithDescendants
from conversations.log import entries_after
from conversations.models import Conversation
from conversations.sandboxing import SandboxPlan, plan_sandbox, run_once
from harness.errors import AgentError
from harness.events import WAITS_FOR_WORKER, SpanModelRequestEnd, SpanModelRequestStart
from harness.history import Entry
from harness.messages import Usage as Tokens
from spending.models import Usage
from spending.prices import cost_of, find_price
from tools_app.workspace import Workspace, workspace_for

from .checks.facts import Facts, Ran, facts_of
from .checks.spec import CommandCheck, FileCheck
from .models import Judgement, Trial
from .scripting import Played

FILE_LIMIT = 5_000_000
"""Bytes of a file that a check reads."""
OUTPUT = 20_000
"""Characters of a command's output."""


@dataclass(frozen=True, slots=True)
class Collected:
    facts: Facts
    commands: Mapping[int, CommandCheck]
    """Those that are still to run."""
    sandbox: SandboxPlan | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a trial took, with all that its agent had others do, and its judges."""

    cost: Decimal | None
    saved: Decimal
    model_calls: int
    cached_calls: int


def rests(conversation: Conversation) -> bool:
    """Whether nothing is to come of it by itself."""
    return (
        conversation.status in {Conversation.Status.IDLE, Conversation.Status.TERMINATED}
        and bool(conversation.stop_reason)
        and conversation.stop_reason != WAITS_FOR_WORKER
        and not (conversation.owes_run and conversation.stop_reason == "end_turn")
    )


def collect(trial_id: int) -> Collected | None:
    """None where it is not at that point: it works, or was concluded."""
    rows = Trial.objects.select_related(
        "evaluation",
        "conversation__owner",
        "conversation__organisation",
        "conversation__environment",
        "conversation__agent_version__agent",
    )
    trial = rows.filter(pk=trial_id, state__in=Trial.OPEN).first()
    conversation = trial.conversation if trial is not None else None
    if trial is None or conversation is None or not rests(conversation):
        return None
    spec = trial.spec
    entries = entries_after(conversation.pk, 0)
    spent = spent_of(trial)
    facts = replace(
        facts_of(entries, after=trial.first_seq),
        cost=None if spent.cost is None else spent.cost + spent.saved,
        files=_files(conversation, [c.path for c in spec.checks if isinstance(c, FileCheck)]),
        commands={int(place): Ran(*ran) for place, ran in trial.ran.items()},
    )
    due = {
        place: check
        for place, check in enumerate(spec.checks)
        if isinstance(check, CommandCheck) and place not in facts.commands
    }
    sandbox = None
    if due:
        workspace = workspace_for(conversation.uid)
        sandbox = plan_sandbox(conversation, conversation.config, workspace)
    return Collected(facts, due, sandbox)


def _files(conversation: Conversation, paths: Sequence[str]) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    workspace = Workspace(workspace_for(conversation.uid))
    for path in paths:
        try:
            found[path] = workspace.read_bytes(path, FILE_LIMIT)
        except AgentError:
            found[path] = None
    return found


async def run_commands(collected: Collected) -> Facts:
    """The facts with what came of the commands. On the engine's loop; never raises for a command."""
    facts, plan = collected.facts, collected.sandbox
    if plan is None:
        return facts
    ran = dict(facts.commands)
    for place, check in collected.commands.items():
        ended = await run_once(plan, check.run, float(check.seconds), most=OUTPUT)
        ran[place] = Ran(ended.exit_code, ended.output, ended.problem)
    return replace(facts, commands=ran)


def spent_of(trial: Trial) -> Spent:
    """A scripted model costs nothing; of any other without a price nobody knows."""
    judged = Judgement.objects.filter(trial=trial).values_list("conversation", flat=True)
    begun = Conversation.objects.filter(pk__in=[trial.conversation_id or 0, *judged])
    family = Conversation.objects.filter(pk__in=WithDescendants(begun.order_by().values("pk")))
    conversations = list(family.values_list("pk", flat=True))
    # Whom a script has asked may play none.
    free = Q(provider=Played.name) if trial.evaluation.scripted else Q(pk__in=[])
    sums = (
        Usage.objects.filter(conversation__in=conversations)
        .order_by()
        .aggregate(
            calls=Count("id"),
            priced=Count("id", filter=Q(cost__isnull=False) | free),
            cost=Sum("cost"),
        )
    )
    saved, cached = Decimal(0), 0
    for conversation_id in conversations:
        after = trial.first_seq if conversation_id == trial.conversation_id else 0
        more, calls = _saved(entries_after(conversation_id, after))
        saved, cached = saved + more, cached + calls
    cost = (sums["cost"] or Decimal(0)) if sums["priced"] == sums["calls"] else None
    return Spent(cost, saved, sums["calls"], cached)


def _saved(entries: Iterable[Entry]) -> tuple[Decimal, int]:
    """What replies from the cache would have cost, as far as their models have prices, and how many."""
    begun: dict[str, SpanModelRequestStart] = {}
    saved, calls = Decimal(0), 0
    for entry in entries:
        match entry.event:
            case SpanModelRequestStart() as start:
                begun[entry.uid] = start
            case SpanModelRequestEnd(cached=True) as end:
                calls += 1
                asked = begun.get(end.model_request_start_id)
                if asked is not None:
                    tokens = Tokens(**end.model_usage.model_dump())
                    price = find_price(asked.provider, asked.model, tokens.prompt_tokens)
                    saved += cost_of(price, tokens) or Decimal(0)
    return saved, calls
