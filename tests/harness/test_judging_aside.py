"""However much one reply asks for, judging it keeps nobody else waiting."""

from __future__ import annotations

from typing import Any

import pytest

from harness.agentconfig import ToolRule
from harness.events import AgentToolResult, AgentToolUse
from harness.patterns import MOST_TEXTS, When
from providers.scripted import Scripted, call, reply
from reading.commandmatching import Match, occurs
from reading.commandwords import prefix_words
from tests.harness.bench import Bench, make_tool, said
from tests.heartbeat import MOST_SECONDS, longest_stall, seconds_of_work

DEAR = ("git -C " * 710)[:4_980]
"""A command of which every word may be the one that is denied."""


def rule(permission: str, **when: Any) -> ToolRule:
    whole = {"tool": "bash", "permission": permission}
    return ToolRule.model_validate(whole | ({"when": when} if when else {}))


DENIED = rule("always_deny", argument="text", prefix="git push")
MANY = [rule("always_deny", argument="text", prefix=f"git push {number}") for number in range(60)]


@pytest.mark.parametrize(
    ("rules", "texts"),
    [
        ([DENIED], [DEAR + str(number) for number in range(150)]),
        (MANY, [DEAR + str(number) for number in range(5)]),
        ([DENIED], ["git status " * 20 + str(number) for number in range(400)]),
    ],
    ids=["many dear calls", "many rules", "very many calls"],
)
async def test_the_loop_goes_on_while_the_calls_of_a_reply_are_judged(rules, texts):
    benches: list[Bench] = []

    async def run() -> None:
        asked = reply(*(call("bash", text=text) for text in texts))
        provider = Scripted([asked, reply("Done.")])
        tools = [make_tool("bash")]
        benches.append(Bench(provider, tools, rules=(rule("always_ask"), *rules)))
        await benches[-1].run(said("Go."))

    assert await longest_stall(run) <= 2 * MOST_SECONDS


async def test_calls_long_and_short_are_judged_alike():
    texts = ["git push", "git push " + "x" * 4_000, "ls", "ls " + "x" * 4_000]
    provider = Scripted([reply(*(call("bash", text=text) for text in texts)), reply("Done.")])
    bench = Bench(provider, [make_tool("bash")], rules=(rule("always_allow"), DENIED))

    await bench.run(said("Go."))

    outcomes = {each.tool_use_id: each.outcome for each in bench.events(AgentToolResult)}
    asked = [use for use in bench.events(AgentToolUse) if use.input["text"] in texts]
    assert len(asked) == len(texts)
    assert sorted(outcomes.values()) == ["denied", "denied", "ok", "ok"]


def test_many_places_that_a_program_may_begin_at_cost_what_one_does():
    denied = prefix_words("git push")
    assert denied

    assert occurs(DEAR, denied) is Match.NO
    assert seconds_of_work(lambda: [occurs(DEAR, denied) for _ in range(100)]) < 0.25


def test_a_subcommand_is_found_behind_options_however_many():
    assert occurs("git " + "-C x " * 500 + "push", ("git", "push")) is Match.YES
    assert occurs("sh -c 'git'", ("git",)) is Match.YES
    assert occurs("git -C -C push", ("git", "push")) is Match.YES


def test_of_a_list_of_texts_no_more_is_read_than_is_soon_over():
    commands = {"commands": [DEAR + str(number) for number in range(100)]}
    denied = When(argument="commands", prefix="git push")

    assert seconds_of_work(lambda: denied.at_all(commands)) < 0.1
    assert denied.at_all(commands) is Match.MAYBE


def test_what_stands_too_far_down_a_list_may_be_anything():
    allowed = When(argument="paths", path="src/**")
    few = {"paths": ["src/a"] * MOST_TEXTS}
    many = {"paths": ["src/a"] * (MOST_TEXTS + 1)}

    assert allowed.surely(few)
    assert allowed.at_all({"paths": ["lib/a"] * MOST_TEXTS}) is Match.NO
    assert not allowed.surely(many)
    assert allowed.at_all({"paths": ["lib/a"] * (MOST_TEXTS + 1)}) is Match.MAYBE
    assert allowed.at_all({"paths": ["src/a", *["lib/a"] * MOST_TEXTS]}) is Match.YES
    assert not allowed.surely({"paths": []})
    assert not When(argument="urls", host="a.example").surely({"urls": ["x" * 30_000]})
