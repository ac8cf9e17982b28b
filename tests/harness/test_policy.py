"""How rules of several levels weigh against each other, and what a person's answer settles."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agentconfig import AskOptions, Features, ToolRule
from harness.content import Document, PlainTextSource, Text
from harness.events import InputTaken, UserMessage, UserToolConfirmation
from harness.history import Entry, History
from harness.patterns import When, input_hash
from harness.policy import Judgement, Policy, Situation, Verdict
from harness.rules import AskTerms, Condition, Grant, Level, LevelledRule
from harness.tools import Effect, Tool

ALLOW, ASK, DENY = "always_allow", "always_ask", "always_deny"
LEVELS = [Level.DEPLOYMENT, Level.ORGANISATION, Level.AGENT, Level.CONVERSATION]


def tool(name: str = "bash", effect: Effect = Effect.WORKSPACE, **more: Any) -> Tool:
    return Tool(name, "", {"type": "object"}, lambda _context, _given: "", effect, **more)


def rule(permission: str, name: str = "*", **more: Any) -> ToolRule:
    return ToolRule.model_validate({"tool": name, "permission": permission, **more})


def at(level: Level, permission: str, name: str = "*", **more: Any) -> LevelledRule:
    return LevelledRule(rule(permission, name, **more), level, f"rule_{level.word}")


def command(prefix: str) -> When:
    return When(argument="command", prefix=prefix)


def judged(
    *others: LevelledRule,
    own: tuple[ToolRule, ...] = (rule(ALLOW),),
    used: Tool | None = None,
    given: dict[str, Any] | None = None,
    state: Situation | None = None,
    decision: UserToolConfirmation | None = None,
    tools: tuple[Tool, ...] = (),
    asked: AskTerms | None = None,
) -> Judgement:
    used = used or tool()
    policy = Policy(own, others, {one.name: one for one in (*tools, used)})
    return policy.judge(
        used,
        used.name,
        state or Situation(Features()),
        decision,
        arguments=given if given is not None else {"command": "ls"},
        asked=asked,
    )


def test_the_broadest_rule_that_names_somebody_says_who_is_asked_first() -> None:
    def asking(level: Level, name: str) -> LevelledRule:
        options = AskOptions(ask_first=name)
        return LevelledRule(ToolRule(tool="bash", permission=ASK, options=options), level)

    judgement = judged(
        asking(Level.CONVERSATION, "role:owner"),
        asking(Level.ORGANISATION, "person:user_1"),
        asking(Level.DEPLOYMENT, ""),
    )

    assert judgement.terms is not None
    assert judgement.terms.ask_first == "person:user_1"


@pytest.mark.parametrize("level", [Level.DEPLOYMENT, Level.ORGANISATION, Level.CONVERSATION])
def test_a_denial_at_any_level_wins_over_allowing_at_every_other(level: Level) -> None:
    others = [at(other, ALLOW) for other in LEVELS if other is not Level.AGENT]

    judgement = judged(*others, at(level, DENY, "bash"))

    assert judgement.verdict is Verdict.DENY
    assert judgement.level is level
    assert "denies bash" in judgement.reason


@given(
    st.lists(
        st.tuples(st.sampled_from(LEVELS), st.sampled_from([ALLOW, ASK, DENY])),
        min_size=1,
        max_size=6,
    )
)
def test_of_any_rules_the_strictest_counts_whatever_their_levels_and_order(
    rules: list[tuple[Level, str]],
) -> None:
    others = tuple(at(level, permission) for level, permission in rules)
    strictest = max((permission for _level, permission in rules), key=[ALLOW, ASK, DENY].index)

    assert judged(*others).verdict.value == strictest.removeprefix("always_")


def test_no_other_level_gives_an_agent_a_tool_that_is_not_its_own() -> None:
    judgement = judged(at(Level.DEPLOYMENT, ALLOW), own=(rule(ALLOW, "read_file"),))

    assert judgement.verdict is Verdict.DENY
    assert "not among this agent's tools" in judgement.reason


def test_what_comes_with_something_that_was_given_needs_no_rule_and_obeys_those_there_are() -> None:
    reading = tool("read_skill", Effect.READ, granted=True)
    only_bash = (rule(ALLOW, "bash"),)
    assert judged(own=only_bash, used=reading).verdict is Verdict.ALLOW
    for permission, verdict in ((ASK, Verdict.ASK), (DENY, Verdict.DENY)):
        for level in (Level.DEPLOYMENT, Level.ORGANISATION):
            other = at(level, permission, "read_*")
            assert judged(other, own=only_bash, used=reading).verdict is verdict
        own = (*only_bash, rule(permission, "read_*"))
        assert judged(own=own, used=reading).verdict is verdict


def test_a_tool_allowed_only_for_some_calls_asks_for_the_others() -> None:
    own = (rule(ALLOW, "bash", when={"argument": "command", "prefix": "git status"}),)

    assert judged(own=own, given={"command": "git status -s"}).verdict is Verdict.ALLOW
    assert judged(own=own, given={"command": "git status; rm x"}).verdict is Verdict.ASK
    assert judged(own=own, given={"command": "ls"}).verdict is Verdict.ASK


def test_a_pattern_that_cannot_be_told_from_the_arguments_asks_instead_of_denying() -> None:
    deny = at(Level.ORGANISATION, DENY, "bash", when={"argument": "command", "prefix": "rm"})

    assert judged(deny, given={"command": "ls; rm x"}).verdict is Verdict.DENY
    assert judged(deny, given={"command": "ls"}).verdict is Verdict.ALLOW
    unclear = judged(deny, given={"command": "$x y"})
    assert unclear.verdict is Verdict.ASK
    assert unclear.terms is not None
    assert not unclear.terms.may_be_settled


# --- in advance -----------------------------------------------------------------------------------


def grant(level: Level, *, turn: str = "", **met: Any) -> LevelledRule:
    return LevelledRule(
        rule(ALLOW, "bash", when={"sha256": input_hash({"command": "ls"})}),
        Level.CONVERSATION,
        "rule_saved",
        Grant(level=level, turn=turn, **met),
    )


@pytest.mark.parametrize(("asking", "given_at"), list(itertools.product(LEVELS, LEVELS)))
def test_a_saved_permission_settles_asking_of_its_level_and_narrower_ones_only(
    asking: Level, given_at: Level
) -> None:
    asks = (rule(ALLOW), rule(ASK)) if asking is Level.AGENT else (rule(ALLOW),)
    others = () if asking is Level.AGENT else (at(asking, ASK),)

    verdict = judged(*others, grant(given_at), own=asks).verdict

    assert verdict is (Verdict.ALLOW if asking >= given_at else Verdict.ASK)


def test_a_saved_permission_never_settles_a_denial_or_a_strict_question() -> None:
    saved = grant(Level.DEPLOYMENT, two_people=True, reviewers_only=True)

    assert judged(saved, at(Level.CONVERSATION, DENY)).verdict is Verdict.DENY
    strict = at(Level.CONVERSATION, ASK, options={"strict": True})
    assert judged(saved, strict).verdict is Verdict.ASK
    assert judged(saved, used=tool(always_asks=True)).verdict is Verdict.ASK


@pytest.mark.parametrize("option", ["two_people", "reviewers_only", "requester_may_not_decide"])
def test_a_saved_permission_settles_only_conditions_that_were_met_when_it_was_given(
    option: str,
) -> None:
    asks = at(Level.ORGANISATION, ASK, options={option: True})

    assert judged(asks, grant(Level.DEPLOYMENT)).verdict is Verdict.ASK
    assert (
        judged(asks, grant(Level.DEPLOYMENT, **dict[str, Any]({option: True}))).verdict
        is Verdict.ALLOW
    )


def test_a_rule_that_allows_without_an_approval_settles_nothing() -> None:
    assert judged(at(Level.DEPLOYMENT, ALLOW), at(Level.CONVERSATION, ASK)).verdict is Verdict.ASK


def test_a_permission_for_a_run_ends_with_it() -> None:
    saved = grant(Level.DEPLOYMENT, turn="turn_1")
    asks = at(Level.CONVERSATION, ASK)

    assert judged(asks, saved, state=Situation(Features(), "turn_1")).verdict is Verdict.ALLOW
    assert judged(asks, saved, state=Situation(Features(), "turn_2")).verdict is Verdict.ASK


def test_a_permission_for_a_run_ends_with_it_where_no_rule_covers_the_call() -> None:
    own = (rule(ALLOW, when={"argument": "command", "prefix": "git"}),)
    saved = grant(Level.AGENT, turn="turn_1")

    during = judged(saved, own=own, state=Situation(Features(), "turn_1"))
    afterwards = judged(saved, own=own, state=Situation(Features(), "turn_2"))

    assert during.verdict is Verdict.ALLOW
    assert during.rule == "rule_saved"
    assert afterwards.verdict is Verdict.ASK


def test_a_permission_does_not_reach_past_its_level_where_no_rule_covers_the_call() -> None:
    own = (rule(ALLOW, when={"argument": "command", "prefix": "git"}),)

    assert judged(grant(Level.CONVERSATION), own=own).verdict is Verdict.ASK


def test_a_permission_for_a_general_tool_is_no_way_round_a_broader_rule_on_another_one() -> None:
    gate = at(Level.ORGANISATION, ASK, "write_file", options={"reviewers_only": True})
    shell, write = tool("bash", general=True), tool("write_file")

    narrow = judged(gate, grant(Level.AGENT), used=shell, tools=(write,))
    met = grant(Level.ORGANISATION, reviewers_only=True)

    assert narrow.verdict is Verdict.ASK
    assert judged(gate, met, used=shell, tools=(write,)).verdict is Verdict.ALLOW


def test_a_permission_for_one_input_is_none_for_another() -> None:
    asks = at(Level.CONVERSATION, ASK)

    verdict = judged(asks, grant(Level.DEPLOYMENT), given={"command": "ls -a"}).verdict

    assert verdict is Verdict.ASK


# --- several questions at once --------------------------------------------------------------------


def test_questions_of_several_rules_become_one_with_all_their_conditions() -> None:
    judgement = judged(
        at(Level.ORGANISATION, ASK, options={"two_people": True, "expires_seconds": 600}),
        at(Level.CONVERSATION, ASK, options={"reviewers_only": True, "expires_seconds": 60}),
    )

    terms = judgement.terms
    assert terms is not None
    assert (terms.two_people, terms.reviewers_only) == (True, True)
    assert terms.expires_seconds == 60
    assert terms.level == "organisation"
    assert "this organisation" in judgement.reason
    assert "this conversation" in judgement.reason


# --- untrusted content ----------------------------------------------------------------------------


def test_after_untrusted_content_calls_that_reach_outside_ask_and_say_why() -> None:
    state = Situation(Features(), tainted_by="web_fetch")
    outside = tool("send", Effect.OUTSIDE)

    judgement = judged(used=outside, state=state)

    assert judgement.verdict is Verdict.ASK
    assert "web_fetch" in judgement.reason
    assert judgement.terms is not None
    assert judgement.terms.tainted
    assert judged(used=tool(), state=state).verdict is Verdict.ALLOW


def test_what_takes_away_for_good_asks_wherever_untrusted_content_ever_came_in() -> None:
    """A later word of a person does not make it hers."""
    keeper = tool("memory", asks_once_tainted=lambda given: given["command"] == "delete")
    clean, later = Situation(Features()), Situation(Features(), ever_tainted_by="a page")
    given = {"command": "delete"}
    assert judged(used=keeper, given=given, state=clean).verdict is Verdict.ALLOW
    found = judged(used=keeper, given=given, state=later)
    assert (found.verdict, "a page" in found.reason) == (Verdict.ASK, True)
    assert judged(used=keeper, given={"command": "view"}, state=later).verdict is Verdict.ALLOW
    before = grant(Level.TOOL)
    assert judged(before, used=keeper, given=given, state=later).verdict is Verdict.ASK


def test_a_permission_from_before_does_not_hold_once_untrusted_content_came_in() -> None:
    outside = tool(effect=Effect.OUTSIDE)
    state = Situation(Features(), "turn_1", "web_fetch")

    assert judged(grant(Level.TOOL), used=outside, state=state).verdict is Verdict.ASK
    since = grant(Level.TOOL, tainted=True, turn="turn_1")
    assert judged(since, used=outside, state=state).verdict is Verdict.ALLOW


# --- untrusted content and general tools ----------------------------------------------------------


def test_a_document_taints_the_run_whatever_else_was_taken_with_it() -> None:
    document = Document(source=PlainTextSource(data="Evil."))
    brings = Entry.of(UserMessage(content=(document,)))
    plain = Entry.of(UserMessage(content=(Text(text="Read it."),)))
    for order in ((brings, plain), (plain, brings)):
        history = History(order)
        history.add(Entry.of(InputTaken(event_ids=tuple(entry.uid for entry in order))))

        assert history.tainted_by == "an uploaded document"


@pytest.mark.parametrize("permission", [ASK, DENY])
def test_a_general_tool_is_no_way_round_a_rule_on_another_one(permission: str) -> None:
    write = tool("write_file")
    shell = tool("bash", general=True)
    gate = at(Level.ORGANISATION, permission, "write_file")

    judgement = judged(gate, used=shell, tools=(write,))

    assert judgement.verdict is Verdict.ASK
    assert "write_file" in judgement.reason
    assert judged(gate, used=tool("other"), tools=(write,)).verdict is Verdict.ALLOW


def test_a_general_tool_need_not_ask_for_what_it_cannot_reach_or_was_allowed_by_pattern() -> None:
    shell = tool("bash", general=True)
    send, write = tool("send", Effect.OUTSIDE), tool("write_file")
    own = (rule(ALLOW), rule(ALLOW, "bash", when={"argument": "command", "prefix": "ls"}))

    outside = judged(at(Level.ORGANISATION, ASK, "send"), used=shell, tools=(send,))
    by_pattern = judged(
        at(Level.ORGANISATION, ASK, "write_file"), used=shell, tools=(write,), own=own
    )

    assert outside.verdict is Verdict.ALLOW
    assert by_pattern.verdict is Verdict.ALLOW


# --- a person's answer ----------------------------------------------------------------------------


def answer(given: dict[str, Any]) -> UserToolConfirmation:
    return UserToolConfirmation(tool_use_id="call", result="allow", input_sha256=input_hash(given))


def test_an_answer_holds_for_the_exact_input_it_was_given_for() -> None:
    asks = at(Level.AGENT, ASK)

    assert judged(asks, decision=answer({"command": "ls"})).verdict is Verdict.ALLOW
    other = judged(asks, decision=answer({"command": "rm"}))
    assert other.verdict is Verdict.DENY
    assert "another input" in other.reason


CONDITIONS: list[Condition] = ["two_people", "reviewers_only", "requester_may_not_decide"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_answer_does_where_its_question_had_what_is_demanded_now_or_its_people_meet_it(
    condition: Condition,
) -> None:
    strict = at(Level.ORGANISATION, ASK, options={condition: True})
    given = answer({"command": "ls"})
    had = AskTerms.model_validate({condition: True})

    again = judged(strict, decision=given, asked=AskTerms())

    assert again.verdict is Verdict.ASK
    assert again.terms is not None
    assert getattr(again.terms, condition)
    assert again.reason.startswith("It was allowed before, but now this takes ")
    assert judged(strict, decision=given, asked=None).verdict is Verdict.ASK
    assert judged(strict, decision=given, asked=had).verdict is Verdict.ALLOW
    met = given.model_copy(update={"met": (condition,)})
    assert judged(strict, decision=met, asked=AskTerms()).verdict is Verdict.ALLOW


@pytest.mark.parametrize("condition", CONDITIONS)
def test_of_several_conditions_one_that_is_met_is_not_enough(condition: Condition) -> None:
    strict = at(Level.ORGANISATION, ASK, options=dict.fromkeys(CONDITIONS, True))
    met = answer({"command": "ls"}).model_copy(update={"met": (condition,)})

    assert judged(strict, decision=met, asked=AskTerms()).verdict is Verdict.ASK


def test_a_question_stands_though_nothing_asks_any_more_and_its_answer_still_decides() -> None:
    asked = AskTerms(level="organisation", two_people=True)
    refused = UserToolConfirmation(tool_use_id="call", result="deny")

    waits = judged(asked=asked)

    assert waits.verdict is Verdict.ASK
    assert waits.terms == asked
    assert judged(asked=asked, decision=answer({"command": "ls"})).verdict is Verdict.ALLOW
    assert judged(asked=asked, decision=refused).verdict is Verdict.DENY


def test_a_permission_in_advance_ends_a_question_only_where_it_covers_it_as_it_was_put() -> None:
    asked = AskTerms(level="organisation", two_people=True)

    assert judged(grant(Level.ORGANISATION), asked=asked).verdict is Verdict.ASK
    assert judged(grant(Level.AGENT, two_people=True), asked=asked).verdict is Verdict.ASK
    covers = judged(grant(Level.ORGANISATION, two_people=True), asked=asked)
    assert (covers.verdict, covers.rule) == (Verdict.ALLOW, "rule_saved")
    every_time = asked.model_copy(update={"may_be_settled": False})
    met = grant(Level.ORGANISATION, two_people=True)
    assert judged(met, asked=every_time).verdict is Verdict.ASK


HERE, THERE = "here.example", "there.example"


def test_a_yes_to_a_call_at_one_machine_is_none_to_the_same_call_at_another() -> None:
    """Whether rules ask about it still or not: the server of that name was pointed elsewhere meanwhile."""
    moved = tool("send", Effect.OUTSIDE, host=THERE)
    asked = AskTerms(level="organisation", host=HERE, two_people=True)
    for asking in ((), (at(Level.ORGANISATION, ASK),)):
        again = judged(*asking, used=moved, asked=asked, decision=answer({"command": "ls"}))

        assert again.verdict is Verdict.ASK
        assert again.terms is not None
        assert (again.terms.host, again.terms.two_people) == (THERE, True)
        assert again.reason.startswith("It was allowed before, but it would go elsewhere now.")
        assert HERE in again.reason
        settled = judged(*asking, used=moved, asked=again.terms, decision=answer({"command": "ls"}))
        assert settled.verdict is Verdict.ALLOW


def test_a_question_about_one_machine_is_put_anew_about_the_one_that_the_call_goes_to_now() -> None:
    moved, asked = tool("send", Effect.OUTSIDE, host=THERE), AskTerms(host=HERE)

    waits = judged(used=moved, asked=asked)

    assert (waits.verdict, waits.terms and waits.terms.host) == (Verdict.ASK, THERE)
    covered = LevelledRule(rule(ALLOW), Level.ORGANISATION, "", Grant(Level.DEPLOYMENT, host=THERE))
    assert judged(covered, used=moved, asked=asked).verdict is Verdict.ALLOW
    refused = UserToolConfirmation(tool_use_id="call", result="deny")
    assert judged(used=moved, asked=asked, decision=refused).verdict is Verdict.DENY


def test_that_nobody_answered_in_time_is_told_as_that() -> None:
    late = UserToolConfirmation(tool_use_id="call", result="deny", expired=True)

    refused = judged(at(Level.AGENT, ASK), decision=late)

    assert refused.verdict is Verdict.DENY
    assert "Nobody answered in time" in refused.reason


def test_a_rule_that_denies_by_now_wins_over_a_person_who_allowed() -> None:
    judgement = judged(at(Level.ORGANISATION, DENY), decision=answer({"command": "ls"}))

    assert judgement.verdict is Verdict.DENY


def test_in_plan_mode_only_reading_runs_even_when_a_person_allowed() -> None:
    state = Situation(Features(plan_mode=True))

    refused = judged(state=state, decision=answer({"command": "ls"}))

    assert refused.verdict is Verdict.DENY
    assert "plan mode" in refused.reason
    assert judged(used=tool("read", Effect.READ), state=state).verdict is Verdict.ALLOW


def test_a_denied_tool_is_not_on_offer_and_one_denied_for_some_calls_is() -> None:
    features = Features()
    always = Policy((rule(ALLOW),), (at(Level.DEPLOYMENT, DENY, "bash"),))
    some = Policy(
        (rule(ALLOW),),
        (at(Level.DEPLOYMENT, DENY, "bash", when={"argument": "command", "prefix": "rm"}),),
    )

    assert not always.offers(tool(), features)
    assert some.offers(tool(), features)


def test_options_know_no_unknown_key() -> None:
    with pytest.raises(ValueError, match="surprise"):
        AskOptions.model_validate({"surprise": True})


def test_a_tool_that_does_the_work_of_others_is_held_back_where_they_are_and_allowed_by_its_own_name() -> (
    None
):
    both = tool("memory", Effect.WORKSPACE, granted=True, stands_for=("write_memory",))
    allowed = (rule(ALLOW, "*"),)
    assert judged(own=allowed, used=both).verdict is Verdict.ALLOW
    for permission, verdict in ((ASK, Verdict.ASK), (DENY, Verdict.DENY)):
        assert judged(
            at(Level.ORGANISATION, permission, "write_memory"), own=allowed, used=both
        ).verdict is (verdict)
        some = rule(permission, "write_memory", when={"argument": "path", "path": "/secret/**"})
        given = {"path": "/memories/x/open.md"}
        assert judged(own=(*allowed, some), used=both, given=given).verdict is Verdict.ASK
