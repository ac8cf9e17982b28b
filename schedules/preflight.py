"""A dry run of a standing order: what it may call, where it would rest with nobody there and who would be
asked, what it reaches, what it is pinned to, and what it may cost at worst. Nothing is begun or stored.

Judged by the same policy as a run (`harness.policy`); what depends on a call's arguments is said to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.persons import charged_person
from approvals.policyrules import rules_of_new
from conversations.judging import judging_kit
from conversations.kits import tools_of
from conversations.models import Conversation
from conversations.sandboxing import SandboxPlan, policy_in
from harness.agentconfig import ToolRule
from harness.errors import Invalid
from harness.events import SpanModelRequestStart
from harness.history import History
from harness.kit import Kit
from harness.policy import Judgement, Situation, Verdict
from harness.rules import AskTerms, LevelledRule
from harness.tools import Effect
from recall.reach import stores_of_new
from sandbox.policy import Policy
from skillsets.fixing import chosen_for
from spending.amounts import amount_text, units_of
from spending.applying import without_replaced
from spending.models import Budget
from spending.prices import worst_cost
from spending.standings import Standing, standings
from steering.models import SteeringFile
from tools_app.builtin.shell import BASH
from tools_app.builtin.wakes import MAX_IN_ROW, MAX_PER_TURN
from vaults.models import Vault

from .drafts import Draft, check_draft, messages_of, outcome_of
from .models import StandingOrder
from .pins import departure, pins_of
from .running import CannotBegin, Departed, require_beginnable
from .templates import UNTRUSTED, places_in

MONTH = timedelta(days=30)
MOST_STORES = 50
MOST_RUNS = 3_000
"""Due times of a month that are counted one by one; denser ones are counted for a day."""
WAKE = "continue_later"
MOST_WAKES = MAX_IN_ROW * MAX_PER_TURN
"""Turns that an agent has itself woken for before a person speaks, each with limits of its own."""
STRANGERS = "a page or an answer that strangers wrote"


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """One tool that a run is offered."""

    name: str
    effect: str
    verdict: str
    """`allow`, `ask`, `deny`, or `depends` on its arguments."""
    reason: str
    asks_after_strangers: bool
    """Asks once a run has read what strangers wrote, though it is allowed before."""
    asked: tuple[str, ...] = ()
    """Who would be asked, by name."""


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    standing: Standing
    fits: bool | None
    """Whether the worst case of its period is no more than is left; None: unknown."""

    @property
    def words(self) -> str:
        if self.fits is None:
            return _("cannot be told")
        return _("enough at worst") if self.fits else _("may run out")


@dataclass(frozen=True, slots=True)
class Preflight:
    problem: str
    """Why a run would not begin now; empty: it would."""
    departed: bool
    """That is because something is another thing than it was saved with: saving it again mends it."""
    refused_checks: tuple[tuple[str, str], ...]
    """Commands that would check its outcome and would not run, which fails them, each with why."""
    tools: tuple[ToolCheck, ...]
    servers: tuple[str, ...]
    """MCP servers whose tools it has; each call asks unless a rule says otherwise."""
    hosts: tuple[str, ...]
    """That commands and fetches may reach; `*`: every public one."""
    skills: tuple[str, ...]
    vaults: tuple[str, ...]
    memories: tuple[str, ...]
    """Stores of memory that it reads of, and may write to as the agent's tools allow."""
    instructed_by: tuple[str, ...]
    """Whose standing instructions hold for it."""
    model: str
    by_service: bool
    """Its model's service is to shorten a long conversation, where it can."""
    version: int
    current_version: int
    messages: int
    run_cost: int | None
    """What one run may cost at worst, in hundred-millionths of a US dollar; None: nobody can tell."""
    wakes: int
    """Turns that its agent may have itself woken for, which the worst case counts."""
    has_team: bool
    """Its agent may bring teammates in, each with limits of its own: only a cap bounds what a run costs."""
    capped: bool
    """Whether that is the order's own cap and not what its agent's limits allow."""
    runs_a_month: int
    """By the clock, in the thirty days to come."""
    budgets: tuple[BudgetCheck, ...]
    upcoming: tuple[datetime, ...]
    timezone: str
    """On whose clocks it is due."""

    @property
    def stops(self) -> tuple[ToolCheck, ...]:
        """Tools at whose call a run would rest with nobody there."""
        return tuple(one for one in self.tools if one.verdict in {"ask", "depends"})

    @property
    def month_cost(self) -> int | None:
        return None if self.run_cost is None else self.run_cost * self.runs_a_month

    @property
    def run_cost_text(self) -> str:
        return self._money(self.run_cost)

    @property
    def month_cost_text(self) -> str:
        return self._money(self.month_cost)

    def _money(self, units: int | None) -> str:
        if units is not None:
            return amount_text("money", units)
        if self.has_team:
            return _("not bounded: it may work as a team")
        return _("unknown: its model has no price")


def preflight_of(order: StandingOrder, *, now: datetime | None = None) -> Preflight:
    """Of an order as it is. Who may see it, the caller has asked."""
    now, approvers = now or timezone.now(), list(order.approvers.all())
    return _preflight(order, approvers, now, has_readers=order.readers.exists())


def preview(
    draft: Draft,
    *,
    actor: User,
    organisation: Organisation,
    order: StandingOrder | None = None,
    now: datetime | None = None,
) -> Preflight:
    """Of one that is not saved yet; `order`: what it is to change. Raises what saving it would raise."""
    now = now or timezone.now()
    checked = check_draft(draft, actor=actor, organisation=organisation, order=order)
    wanted = StandingOrder(
        organisation=organisation, owner=actor, handled_at=now, **checked.columns
    )
    return _preflight(wanted, checked.approvers, now, has_readers=bool(checked.readers))


def _preflight(
    order: StandingOrder, approvers: Sequence[User], now: datetime, *, has_readers: bool
) -> Preflight:
    config = order.agent_version.config
    sandbox = _policy(order)
    tools = _tools(order, approvers, sandbox)
    wakes = MOST_WAKES * any(one.name == WAKE and one.verdict != "deny" for one in tools)
    turns = _turns(order) * (1 + wakes)
    run_cost, capped = _run_cost(order, turns)
    runs = _runs_a_month(order, now)
    current = order.agent_version.agent.current
    chosen = chosen_for(order.agent_version, order.organisation, order.owner)
    problem, departed = _problem(order)
    return Preflight(
        problem=problem,
        departed=departed,
        refused_checks=tuple(_refused_checks(order, sandbox)),
        tools=tools,
        servers=tuple(use.name for use in config.mcp_servers),
        hosts=("*",)
        if sandbox.unrestricted
        else tuple(sorted({endpoint.host for endpoint in sandbox.endpoints})),
        skills=(
            *(f"{one.skill.name} {one.label}" for one in chosen.versions),
            *chosen.problems,
        ),
        vaults=tuple(
            Vault.objects.filter(uid__in=order.vaults).values_list("display_name", flat=True)
        ),
        memories=_memories(order, has_readers=has_readers),
        instructed_by=tuple(_instructed_by(order)),
        model=f"{order.provider}/{order.model}",
        by_service=config.shortening.by == "service",
        version=order.agent_version.number,
        current_version=current.number if current else 0,
        messages=_turns(order),
        run_cost=run_cost,
        wakes=0 if capped else wakes,
        has_team=config.features.teams,
        capped=capped,
        runs_a_month=runs,
        budgets=_budgets(order, run_cost, turns, runs, now),
        upcoming=tuple(order.timing.upcoming(now, 5)),
        timezone=order.timezone,
    )


def _memories(order: StandingOrder, *, has_readers: bool) -> tuple[str, ...]:
    version = order.agent_version
    if not version.config.features.memory:
        return ()
    agent = version.agent_id
    stores = stores_of_new(order.owner, order.organisation, agent, read_by_others=has_readers)
    return tuple(stores.order_by("name").values_list("name", flat=True).distinct()[:MOST_STORES])


def _problem(order: StandingOrder) -> tuple[str, bool]:
    try:
        require_beginnable(order)
    except CannotBegin as refusal:
        return refusal.words, isinstance(refusal, Departed)
    words = departure(order.pins, pins_of(order.agent_version, order.organisation, order.owner))
    return words, bool(words)


def _policy(order: StandingOrder) -> Policy:
    """What environment, organisation and agent let commands do; nothing, where that cannot be read."""
    own = order.agent_version.config.sandbox
    try:
        return policy_in(order.environment, order.organisation_id, own)
    except Invalid:
        return Policy()


def _kit(order: StandingOrder, sandbox: Policy, *, partly: bool = True) -> Kit:
    """What judges a run's calls; without `partly` by the rules alone that hold for every input of a tool."""
    version = order.agent_version
    config = version.config
    rules: Sequence[LevelledRule] = rules_of_new(
        order.organisation_id, version.agent_id, order.owner_id
    )
    if not partly:
        always = tuple(rule for rule in config.tools if not _is_partial(rule))
        config = config.model_copy(update={"tools": always})
        rules = [held for held in rules if not _is_partial(held.rule)]
    place = SandboxPlan(0, "", Path(), order.environment.backend, sandbox)
    return judging_kit(config, rules, tools_of(place, {}))


def _begun(order: StandingOrder) -> Situation:
    strangers = UNTRUSTED if places_in(messages_of(order)) else ""
    return Situation(order.agent_version.config.features, tainted_by=strangers)


def _refused_checks(order: StandingOrder, sandbox: Policy) -> Iterator[tuple[str, str]]:
    """What asks is not run either: nobody is asked about a check."""
    outcome = outcome_of(order)
    if outcome is None or not outcome.checks:
        return
    kit, history = _kit(order, sandbox), History(features=order.agent_version.config.features)
    policy, bash = kit.policy_in(history), kit.tools_in(history).get(BASH.name)
    for check in outcome.checks:
        given = {"command": check.run}
        judgement = policy.judge(bash, BASH.name, _begun(order), arguments=given)
        if order.environment.has_workers:
            yield check.run, _("Its environment has workers, and checks run on this server alone.")
        elif judgement.verdict is not Verdict.ALLOW:
            yield check.run, judgement.reason


def _instructed_by(order: StandingOrder) -> Iterator[str]:
    agent = order.agent_version.agent
    for row in SteeringFile.objects.for_work(order.organisation_id, agent.pk).select_related(
        "agent"
    ):
        yield str(order.organisation if row.agent is None else row.agent)


def _tools(
    order: StandingOrder, approvers: Sequence[User], sandbox: Policy
) -> tuple[ToolCheck, ...]:
    config = order.agent_version.config
    kit = _kit(order, sandbox)
    # What rules that hold back some inputs alone change depends on the input.
    plain = _kit(order, sandbox, partly=False)
    history = History(features=config.features)
    policy, always = kit.policy_in(history), plain.policy_in(history)
    begun = _begun(order)
    later = Situation(config.features, tainted_by=STRANGERS)
    found = []
    for name, tool in sorted(kit.tools_in(history).items()):
        if not policy.offers(tool, history.features):
            continue
        judgement = policy.judge(tool, name, begun, arguments={})
        verdict = judgement.verdict.value
        if tool.external:
            verdict = Verdict.ALLOW.value  # whom it asks answers it
        elif judgement.verdict is not Verdict.ALLOW and (
            always.judge(tool, name, begun, arguments={}).verdict is Verdict.ALLOW
        ):
            verdict = "depends"
        after = policy.judge(tool, name, later, arguments={})
        found.append(
            ToolCheck(
                name=name,
                effect=tool.effect.value,
                verdict=verdict,
                reason=judgement.reason,
                asks_after_strangers=verdict == Verdict.ALLOW.value
                and tool.effect is Effect.OUTSIDE
                and after.verdict is Verdict.ASK,
                asked=_asked(order, approvers, judgement) if verdict in {"ask", "depends"} else (),
            )
        )
    return tuple(found)


def _is_partial(rule: ToolRule) -> bool:
    return rule.when is not None and rule.permission != "always_allow"


def _asked(
    order: StandingOrder, approvers: Sequence[User], judgement: Judgement
) -> tuple[str, ...]:
    """Who may answer: the owner and her approvers, or those whom the rule names."""
    terms = judgement.terms or AskTerms()
    people: list[User] = []
    if not terms.requester_may_not_decide:
        people.append(order.owner)
    people += approvers
    names = [str(person) for person in people] if not terms.reviewers_only else []
    if terms.reviewers_only or terms.two_people or not names:
        names.append(_("reviewers of %(organisation)s") % {"organisation": order.organisation})
    return tuple(names)


# --- money ----------------------------------------------------------------------------------------


def _turns(order: StandingOrder) -> int:
    """That begin a run: each first message is one, and so is the work on an outcome, judgements and all."""
    return len(order.messages) + (order.outcome is not None)


def _run_cost(order: StandingOrder, turns: int) -> tuple[int | None, bool]:
    """All tokens that its agent's limits let one turn use, and the one request that may go past them, with a
    summary that a service makes of it, at the dearest price of its model and of those of its roles, for each
    turn; or the order's own cap."""
    config = order.agent_version.config
    limits = config.limits
    read = limits.context_window * (2 if config.shortening.by == "service" else 1)
    tokens = limits.token_budget + read + limits.output_tokens
    output = min(limits.steps * limits.output_tokens, tokens)
    models = {order.model, *(role.model for role in config.roles.values() if role.model)}
    costs = [
        worst_cost(
            SpanModelRequestStart(
                provider=order.provider,
                model=model,
                prompt_tokens_at_most=tokens - output,
                output_tokens_at_most=output,
            )
        )
        for model in models
    ]
    known = [cost for cost in costs if cost is not None]
    is_bounded = len(known) == len(costs) and not config.features.teams
    worst = units_of(max(known) * turns) if is_bounded else None
    if order.budget is not None and (worst is None or order.budget < worst):
        return order.budget, True
    return worst, False


def _runs_a_month(order: StandingOrder, now: datetime) -> int:
    found = 0
    for due in order.timing.after(now):
        if due > now + MONTH:
            return found
        found += 1
        if found == MOST_RUNS:
            break
    if found < MOST_RUNS:
        return found
    day = sum(1 for due in _within(order, now, now + timedelta(days=1)))
    return max(found, day * MONTH.days)


def _within(order: StandingOrder, begin: datetime, end: datetime) -> list[datetime]:
    found = []
    for due in order.timing.after(begin):
        if due > end:
            break
        found.append(due)
    return found


def _budgets(
    order: StandingOrder, run_cost: int | None, turns: int, runs: int, now: datetime
) -> tuple[BudgetCheck, ...]:
    payer = charged_person(order.owner, order.organisation_id)
    asked_by = Conversation(organisation=order.organisation, owner=order.owner)
    applying = Budget.objects.applying_to(asked_by, payer, server_keys=True)
    held = without_replaced(list(applying.select_related("organisation", "user")))
    day = len(_within(order, now, now + timedelta(days=1))) if runs < MOST_RUNS else runs // 30
    times = {
        Budget.Period.RUN.value: 1,
        Budget.Period.DAY.value: day,
        Budget.Period.MONTH.value: runs,
        Budget.Period.TOTAL.value: runs,
    }
    checks = []
    for standing in standings(held, now=now, person=payer):
        fits = None
        if standing.unit == Budget.Unit.MONEY and run_cost is not None:
            fits = run_cost * times[standing.period] <= standing.remaining
        elif standing.unit == Budget.Unit.TOKENS and not order.agent_version.config.features.teams:
            limits = order.agent_version.config.limits
            tokens = limits.token_budget + limits.context_window + limits.output_tokens
            most = tokens * turns * times[standing.period]
            fits = most <= standing.remaining
        checks.append(BudgetCheck(standing, fits))
    return tuple(checks)
