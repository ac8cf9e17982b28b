"""May this call run? A pure judgement over tool, arguments, rules, switches and a person's answer.

Asked twice for each call: when it is stored (so that people see why it waits) and again right
before it is executed, for every caller alike. What is on offer to a model is judged here as well.
How the rules weigh against each other is explained in docs/adr/0014.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from harness.agentconfig import AskOptions, Features, ToolRule
from harness.dangers import graded
from harness.events import UserToolConfirmation
from harness.patterns import input_hash
from harness.rules import (
    CONDITIONS,
    AskTerms,
    Condition,
    Grant,
    Level,
    LevelledRule,
    Risk,
    conditions_of,
    level_named,
)
from harness.tools import Effect, Tool
from reading.commandmatching import Match, vouches
from reading.hostnames import MeantBy, as_written

UNKNOWN = (
    "This call was under way when its process ended, so it may or may not have happened. "
    "Allow it to run it again; deny it to leave it at that."
)
_REACH = {Effect.READ: 0, Effect.WORKSPACE: 1, Effect.OUTSIDE: 2}
_ANYBODY = AskOptions()
_EVERY_TIME = AskOptions(strict=True)
_RISKS: tuple[Risk, ...] = ("low", "medium", "high")


MCP = ("mcp:", "mcp__")
"""How a rule begins that may allow tools of MCP servers: one on `*` was not made with strangers' in mind."""


def address_of(tool: Tool) -> str:
    """How rules address a tool of an MCP server: `mcp:<server>:<tool>`."""
    return f"mcp:{tool.mcp_server}:{tool.name.removeprefix(f'mcp__{tool.mcp_server}__')}"


class Verdict(Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    reason: str = ""
    """In words for people and model: which rule, and what to do instead."""
    level: Level | None = None
    """Of the rule that decided, where one did."""
    rule: str = ""
    """Its uid, if it is kept in a table."""
    terms: AskTerms | None = None
    """Set when the verdict is to ask."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What of a conversation's state bears on a judgement."""

    features: Features
    turn: str = ""
    tainted_by: str = ""
    """What brought untrusted content into the run since a person last spoke; empty: nothing did."""
    together: int = 1
    """Calls of the same tool that would begin together with this one, itself counted."""
    ever_tainted_by: str = ""
    """What brought untrusted content in since the conversation began."""


@dataclass(frozen=True, slots=True)
class _Ask:
    level: Level
    words: str
    options: AskOptions = _ANYBODY
    rule: str = ""
    taint: bool = False

    @classmethod
    def put(cls, terms: AskTerms, words: str = "") -> _Ask:
        """The question that was put on these terms, whatever asks by now."""
        return cls(
            level_named(terms.level),
            words or "It was asked about, and nobody has answered yet.",
            terms.options.model_copy(update={"strict": not terms.may_be_settled}),
            terms.rule,
            terms.tainted and terms.effect == Effect.OUTSIDE.value,
        )

    def is_settled_by(self, grant: Grant) -> bool:
        """A permission given in advance settles what its giver could have answered, no more."""
        wanted = self.options
        return (
            not wanted.strict
            and self.level >= grant.level
            and conditions_of(wanted) <= conditions_of(grant)
            and (grant.tainted or not self.taint)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """`rules` are the agent's own; `others` those of every other level."""

    rules: Sequence[ToolRule]
    others: Sequence[LevelledRule] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """All there are, to know what a rule on one of them keeps a general one from."""
    meant_by: MeantBy = as_written
    _ordered: tuple[LevelledRule, ...] = field(init=False, repr=False, compare=False)
    """Broadest level first."""
    _denying: tuple[LevelledRule, ...] = field(init=False, repr=False, compare=False)
    """Of these, those that deny whatever the input: what is on offer is asked of every tool at each step."""

    def __post_init__(self) -> None:
        own = [LevelledRule(rule, Level.AGENT) for rule in self.rules]
        ordered = tuple(sorted([*own, *self.others], key=lambda held: held.level))
        denying = tuple(
            held
            for held in ordered
            if held.rule.permission == "always_deny" and held.rule.when is None
        )
        object.__setattr__(self, "_ordered", ordered)
        object.__setattr__(self, "_denying", denying)

    def offers(self, tool: Tool, features: Features) -> bool:
        """Whether the model is told of the tool at all: not if it is denied whatever its input."""
        if tool.feature and not getattr(features, tool.feature, False):
            return False
        if features.plan_mode and tool.effect is not Effect.READ:
            return False
        denied = any(self._covers(held.rule, tool.name) for held in self._denying)
        return self._lists(tool) and not denied

    def judge(
        self,
        tool: Tool | None,
        name: str,
        features: Features | Situation,
        decision: UserToolConfirmation | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        unknown: bool = False,
        asked: AskTerms | None = None,
    ) -> Judgement:
        """Deny wins, then asking; a person's answer settles only what asks.

        `asked` are the terms of the question that was put about this call, which `decision` answers.
        Where more is demanded by now, or the call would go to another machine, the answer does not do and
        the verdict is to ask anew. Where less is, the question still stands: only an answer, or a permission
        that covers it, ends it.
        """
        if tool is None:
            return Judgement(Verdict.DENY, f"There is no tool called {name}.")
        state = features if isinstance(features, Situation) else Situation(features)
        given = arguments or {}
        refusal = self._refusal(tool, state.features, given)
        if refusal is not None:
            return refusal
        asks = [_Ask(Level.TOOL, UNKNOWN, _EVERY_TIME)] if unknown else []
        asks += self._asks(tool, state, given)
        if moved := asked is not None and _moved(tool, asked):
            asks.append(_Ask.put(asked, moved))
        grants = [
            held
            for held in self._allowing(tool.name, given)
            # What is taken away is only named by arguments: a yes is for what was shown with them then.
            if _holds(held.grant, tool, state) and not tool.asks_once_tainted(given)
        ]
        open_asks = [ask for ask in asks if not any(_settles(held.grant, ask) for held in grants)]
        question = None
        if open_asks:
            question = _question(tool, state, open_asks, given, unknown=unknown)
        if decision is not None:
            return _answered(decision, given, question, asked)
        if question is not None:
            return question
        if asked is not None and not moved:
            put = _Ask.put(asked)
            if not any(_settles(held.grant, put) for held in grants):
                level = level_named(asked.level)
                return Judgement(Verdict.ASK, put.words, level, asked.rule, asked)
            asks.insert(0, put)
        return _allowed(asks, grants)

    def allows_unseen(self, tool: Tool, state: Situation) -> bool:
        """Whether every call of it may run, whatever its arguments: nobody here sees them before one that a
        model's service makes by itself."""
        if any(held.rule.when is not None for held in self._about(tool.name)):
            return False
        return self.judge(tool, tool.name, state).verdict is Verdict.ALLOW

    # --- denying ----------------------------------------------------------------------------------

    def _refusal(
        self, tool: Tool, features: Features, given: Mapping[str, Any]
    ) -> Judgement | None:
        name = tool.name
        if tool.feature and not getattr(features, tool.feature, False):
            words = f"{name} is not available: {tool.feature.replace('_', ' ')} is off."
            return Judgement(Verdict.DENY, words)
        if features.plan_mode and tool.effect is not Effect.READ:
            return Judgement(
                Verdict.DENY,
                f"{name} is not available in plan mode, which only reads. "
                "Present the plan with present_plan first.",
            )
        for held in self._about(name):
            if held.rule.permission == "always_deny" and self._met(held, tool, given) is Match.YES:
                how = held.rule.words() if held.rule.when else name
                words = f"A rule {_of(held.level)} denies {how}."
                return Judgement(Verdict.DENY, words, held.level, held.uid)
        if not self._lists(tool):
            words = f"{name} is not among this agent's tools."
            return Judgement(Verdict.DENY, words, Level.AGENT)
        return None

    # --- asking -----------------------------------------------------------------------------------

    def _asks(self, tool: Tool, state: Situation, given: Mapping[str, Any]) -> list[_Ask]:
        asks = list(self._asks_by_rules(tool, given))
        if tool.always_asks:
            asks.append(_Ask(Level.TOOL, f"{tool.name} always asks a person.", _EVERY_TIME))
        if words := tool.asks_about(given, state.together):
            # What it asks by itself is as far from people's rules as what an agent was not allowed:
            # an answer to it settles none that an organisation makes.
            asks.append(_Ask(Level.AGENT, words))
        if state.features.approval and tool.effect is not Effect.READ:
            words = "Approval is on in this conversation: everything that changes something asks."
            asks.append(_Ask(Level.CONVERSATION, words))
        if state.tainted_by and tool.effect is Effect.OUTSIDE:
            words = (
                f"Untrusted content ({state.tainted_by}) came into this run, and {tool.name} reaches "
                "outside: such calls ask until a person speaks again."
            )
            asks.append(_Ask(Level.CONVERSATION, words, taint=True))
        if (ever := state.ever_tainted_by or state.tainted_by) and tool.asks_once_tainted(given):
            words = (
                f"Untrusted content ({ever}) came into this conversation, and {tool.name} takes away "
                "what others are told: such calls ask."
            )
            asks.append(_Ask(Level.CONVERSATION, words, taint=True))
        return asks

    def _asks_by_rules(self, tool: Tool, given: Mapping[str, Any]) -> Iterator[_Ask]:
        name = tool.name
        for held in self._about(name):
            rule, met = held.rule, self._met(held, tool, given)
            if met is Match.UNFAMILIAR and self._is_vouched_for(held, name, given):
                continue
            if rule.permission == "always_ask" and met is not Match.NO:
                how = rule.words() if rule.when else name
                words = f"A rule {_of(held.level)} asks before {how}."
                yield _Ask(held.level, words, rule.options, held.uid)
            elif rule.permission == "always_deny" and met not in {Match.NO, Match.YES}:
                words = (
                    f"A rule {_of(held.level)} denies {rule.words()}, and it cannot be told from "
                    "the arguments whether this is such a call."
                )
                yield _Ask(held.level, words, _EVERY_TIME, held.uid)
        # What a person allowed in advance settles questions within its bounds; it is no rule that
        # keeps one from being asked.
        allowed = [held for held in self._allowing(name, given) if held.grant is None]
        if (
            not allowed
            and not tool.granted
            and not any(
                held.rule.permission == "always_ask" and held.rule.when is None
                for held in self._about(name)
            )
        ):
            yield _Ask(Level.AGENT, f"No rule of this agent allows this call of {name}.")
        if tool.general and not any(held.rule.when for held in allowed):
            apart = any(held.level is Level.AGENT and held.rule.apart for held in allowed)
            yield from self._asks_for_what_it_reaches(tool, apart=apart)

    def _is_vouched_for(self, held: LevelledRule, name: str, given: Mapping[str, Any]) -> bool:
        """Whether a rule of the same level or a broader one allows this very command, so that a program
        nobody here knows is one that the rules' makers know."""
        meant = held.rule.when.prefix_words if held.rule.when else ()
        for other in self._allowing(name, given):
            allowed = other.rule.when.prefix_words if other.rule.when else ()
            familiar = meant and allowed and other.grant is None and other.level <= held.level
            if familiar and vouches(allowed, meant):
                return True
        return False

    def _asks_for_what_it_reaches(self, tool: Tool, *, apart: bool) -> Iterator[_Ask]:
        """A tool that does whatever it is told opens no way around a rule on another one.
        `apart`: the agent's own rules say what it may do by itself; those of other levels hold."""
        for held in self._ordered:
            if apart and held.level is Level.AGENT:
                continue
            if held.rule.permission == "always_allow" or self._covers(held.rule, tool.name):
                continue
            gated = sorted(
                other.name
                for other in self.tools.values()
                if self._covers(held.rule, other.name)
                and not other.feature
                and _REACH[other.effect] <= _REACH[tool.effect]
            )
            if gated:
                verb = "asks before" if held.rule.permission == "always_ask" else "denies"
                words = (
                    f"A rule {_of(held.level)} {verb} {gated[0]}, and {tool.name} can do the same."
                )
                yield _Ask(held.level, words, held.rule.options, held.uid)

    # --- rules ------------------------------------------------------------------------------------

    def _about(self, name: str) -> Iterator[LevelledRule]:
        return (held for held in self._ordered if self._covers(held.rule, name))

    def _covers(self, rule: ToolRule, name: str) -> bool:
        """A tool of an MCP server is meant by its name and by its address, one that does others' work by what
        holds them back."""
        tool = self.tools.get(name)
        if tool is not None and tool.stands_for and _holds_back(rule, tool):
            return True
        if tool is None or not tool.mcp_server:
            return fnmatchcase(name, rule.tool)
        if rule.permission == "always_allow" and not rule.tool.startswith(MCP):
            return False
        return fnmatchcase(name, rule.tool) or fnmatchcase(address_of(tool), rule.tool)

    def _lists(self, tool: Tool) -> bool:
        """Whether the tool is one of the agent's: no other level adds any. A run has those tools of MCP
        servers that were chosen for it, no others."""
        return (
            bool(tool.mcp_server)
            or tool.granted
            or any(fnmatchcase(tool.name, rule.tool) for rule in self.rules)
        )

    def _allowing(self, name: str, given: Mapping[str, Any]) -> Iterator[LevelledRule]:
        for held in self._about(name):
            if held.rule.permission == "always_allow":
                when = held.rule.when
                if when is None or when.surely(given):
                    yield held

    def _met(self, held: LevelledRule, tool: Tool, given: Mapping[str, Any]) -> Match:
        when = held.rule.when
        if when is None:
            return Match.YES
        if tool.stands_for and not fnmatchcase(tool.name, held.rule.tool):
            return Match.MAYBE  # the others have arguments of other names
        if when.argument and when.argument not in given and when.equals is None:
            # What a tool takes in place of an argument that is left out is its own affair.
            known = tool.input_schema.get("properties")
            left_out = isinstance(known, Mapping) and when.argument in known
            return Match.MAYBE if left_out else Match.NO
        return when.at_all(given, self.meant_by)


def _holds_back(rule: ToolRule, tool: Tool) -> bool:
    """Whether it asks before a tool whose work this one does, or denies it."""
    return rule.permission != "always_allow" and any(
        fnmatchcase(other, rule.tool) for other in tool.stands_for
    )


def _moved(tool: Tool, asked: AskTerms) -> str:
    """That the call would go elsewhere than people were asked about, in words; empty: it would not."""
    if asked.host == tool.host:
        return ""
    before, now = (f"to {host}" if host else "nowhere else" for host in (asked.host, tool.host))
    return f"When it was asked about, {tool.name} led {before}; now it leads {now}."


def _holds(grant: Grant | None, tool: Tool, state: Situation) -> bool:
    if grant is None or grant.host != tool.host:
        return False
    return not grant.turn or grant.turn == state.turn


def _settles(grant: Grant | None, ask: _Ask) -> bool:
    return grant is not None and ask.is_settled_by(grant)


def _of(level: Level) -> str:
    return {
        Level.TOOL: "of the tool",
        Level.DEPLOYMENT: "of this server",
        Level.ORGANISATION: "of this organisation",
        Level.AGENT: "of this agent",
        Level.CONVERSATION: "of this conversation",
        Level.RUN: "of this run",
    }[level]


def _allowed(asks: Sequence[_Ask], grants: Sequence[LevelledRule]) -> Judgement:
    if not asks:
        return Judgement(Verdict.ALLOW)
    held = next(held for held in grants if _settles(held.grant, asks[0]))
    words = f"A person allowed such calls in advance: {held.rule.words()}."
    return Judgement(Verdict.ALLOW, words, held.level, held.uid)


def _answered(
    decision: UserToolConfirmation,
    given: Mapping[str, Any],
    question: Judgement | None,
    asked: AskTerms | None,
) -> Judgement:
    """A person's word holds for the exact input she saw or wrote, on the terms that hold now."""
    if decision.result == "deny" and decision.expired:
        words = "Nobody answered in time whether this call may run, so it did not."
        return Judgement(Verdict.DENY, words)
    if decision.result == "deny":
        words = decision.deny_message or "No reason was given."
        return Judgement(Verdict.DENY, f"A person refused this call: {words}")
    if decision.input_sha256 and decision.input_sha256 != input_hash(given):
        words = "A person allowed this call with another input than it has now; ask again."
        return Judgement(Verdict.DENY, words)
    if question is not None and question.terms and asked and question.terms.host != asked.host:
        words = f"It was allowed before, but it would go elsewhere now. {question.reason}"
        return replace(question, reason=words)
    if question is not None and (more := _demanded_beyond(question.terms, decision, asked)):
        wanted = " and ".join(CONDITIONS[name] for name in more)
        words = f"It was allowed before, but now this takes {wanted}. {question.reason}"
        return replace(question, reason=words)
    return Judgement(Verdict.ALLOW, "A person allowed this call.")


def _demanded_beyond(
    terms: AskTerms | None, decision: UserToolConfirmation, asked: AskTerms | None
) -> list[Condition]:
    """What is demanded now and neither was when it was asked nor was met all the same."""
    if terms is None:
        return []
    if set(decision.service_accounts) <= set(terms.service_accounts):
        met = conditions_of(asked) if asked is not None else frozenset[Condition]()
        missing = conditions_of(terms) - met - set(decision.met)
    else:
        # A service account that no rule names any more is nobody where people are asked for.
        missing = conditions_of(terms)
    return [name for name in CONDITIONS if name in missing]


def _question(
    tool: Tool,
    state: Situation,
    asks: Sequence[_Ask],
    given: Mapping[str, Any],
    *,
    unknown: bool,
) -> Judgement:
    """All that asks as one question: the sum of the conditions, the shortest wait."""
    first = min(asks, key=lambda ask: ask.level)
    expiries = [ask.options.expires_seconds for ask in asks if ask.options.expires_seconds]
    terms = AskTerms(
        level=first.level.word,
        rule=first.rule,
        effect=tool.effect.value,
        destructive=tool.destructive,
        tainted=bool(state.tainted_by),
        risk=risk_of(tool, given, tainted=bool(state.tainted_by), unknown=unknown),
        two_people=any(ask.options.two_people for ask in asks),
        reviewers_only=any(ask.options.reviewers_only for ask in asks),
        requester_may_not_decide=any(ask.options.requester_may_not_decide for ask in asks),
        service_accounts=_named_by_all(asks),
        ask_first=_asked_first(asks),
        expires_seconds=min(expiries, default=None),
        may_be_settled=not (
            tool.asks_once_tainted(given) or any(ask.options.strict for ask in asks)
        ),
        turn=state.turn,
        host=tool.host,
    )
    words = UNKNOWN if unknown else " ".join(dict.fromkeys(ask.words for ask in asks))
    return Judgement(Verdict.ASK, words, first.level, first.rule, terms)


def _named_by_all(asks: Sequence[_Ask]) -> tuple[str, ...]:
    """The service accounts named by each of those that ask for people."""
    named = [ask.options.service_accounts for ask in asks if conditions_of(ask.options)]
    if not named:
        return ()
    return tuple(one for one in dict.fromkeys(named[0]) if all(one in each for each in named))


def _asked_first(asks: Sequence[_Ask]) -> str:
    """Whom the broadest rule names; of one level the first."""
    by_level = sorted(asks, key=lambda ask: ask.level)
    return next((ask.options.ask_first for ask in by_level if ask.options.ask_first), "")


def risk_of(
    tool: Tool, given: Mapping[str, Any], *, tainted: bool = False, unknown: bool = False
) -> Risk:
    """How much harm a wrong answer may do: reach, destruction and untrusted content add up, and a
    command is graded by its words."""
    if unknown:
        return "high"
    points = int(tool.effect is Effect.OUTSIDE) + int(tool.destructive)
    command = given.get("command")
    if tool.general and isinstance(command, str):
        points = _RISKS.index(graded(command).risk)
    return _RISKS[min(points + int(tainted), 2)]
