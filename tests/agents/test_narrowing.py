"""Whatever a member adds to the rules of a base, no call becomes easier than with the base alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.narrowing import Wishes, narrowed, require_within, wishes_in
from harness.agentconfig import AgentConfig, CustomTool, Features, Limits, RoleOverride, ToolRule
from harness.errors import Invalid
from harness.patterns import When
from harness.policy import Policy, Situation, Verdict
from harness.roster import Callee, Roster
from net.addresses import meant_by
from tools_app.catalogue import all_tools

STRICTNESS = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bash", {"command": "git push origin main"}),
    ("bash", {"command": "ls"}),
    ("write_file", {"path": "live/a.txt", "content": "x"}),
    ("read_file", {"path": "a.txt"}),
    ("web_fetch", {"url": "https://example.org/"}),
    ("todo_write", {"todos": []}),
)

names = st.sampled_from(
    ["*", "bash", "write_file", "read_file", "web_*", "r*", "todo_write", "nothing"]
)
whens = st.sampled_from(
    [
        None,
        When(argument="command", prefix="git push"),
        When(argument="path", path="live/**"),
        When(argument="url", host="*.example.org"),
    ]
)
rules = st.builds(
    ToolRule,
    tool=names,
    permission=st.sampled_from(["always_allow", "always_ask", "always_deny"]),
    when=whens,
)
features = st.builds(Features, approval=st.booleans(), plan_mode=st.booleans())


def verdicts(config: AgentConfig) -> list[int]:
    policy = Policy(config.tools, (), all_tools(), meant_by)
    tools = all_tools()
    return [
        STRICTNESS[
            policy.judge(tools[name], name, Situation(config.features), arguments=arguments).verdict
        ]
        for name, arguments in CALLS
    ]


@given(
    base=st.builds(AgentConfig, tools=st.lists(rules, max_size=4).map(tuple), features=features),
    added=st.lists(rules, max_size=4).map(tuple),
    switches=features,
)
def test_what_is_not_refused_allows_no_more(base, added, switches):
    try:
        config = narrowed(base, Wishes(tools=added, features=switches))
    except Invalid:
        return
    assert all(own >= bound for own, bound in zip(verdicts(config), verdicts(base), strict=True))
    assert wishes_in(config, base).tools == added


ASK = ToolRule(tool="bash", permission="always_ask")
DENIES_SOME_WRITING = ToolRule(
    tool="write_file", permission="always_deny", when=When(argument="path", path="live/**")
)
BASE = AgentConfig(
    tools=(ToolRule(tool="read_file"), ASK),
    limits=Limits(steps=7),
    sandbox="version: 1",
    features=Features(plan_mode=True),
    roles={"subagent": RoleOverride(output_tokens=100)},
)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("tools", {"tools": (ToolRule(tool="read_file"),)}),
        ("tools", {"tools": (*BASE.tools, ToolRule(tool="write_file"))}),
        ("tools", {"tools": (*BASE.tools, ToolRule(tool="write_file", permission="always_ask"))}),
        ("tools", {"tools": (*BASE.tools, ToolRule(tool="bash"))}),
        ("tools", {"tools": (*BASE.tools, DENIES_SOME_WRITING)}),
        ("limits.steps", {"limits": Limits(steps=8)}),
        ("sandbox", {"sandbox": ""}),
        ("features.plan_mode", {"features": Features()}),
        ("roles.subagent.output_tokens", {"roles": {"subagent": RoleOverride(output_tokens=101)}}),
        ("roster", {"roster": Roster(inline=True)}),
        ("roster", {"roster": Roster(advisor="demo")}),
        ("roster", {"roster": Roster(agents=(Callee(agent="self"),))}),
        ("custom_tools", {"custom_tools": (CustomTool(name="deploy", description="Deploys."),)}),
    ],
)
def test_widening_is_refused_beside_its_field(field, changes):
    require_within(BASE, BASE)
    with pytest.raises(Invalid) as refusal:
        require_within(BASE.model_copy(update=changes), BASE)
    assert refusal.value.field == field


def test_less_is_taken():
    require_within(
        BASE.model_copy(
            update={
                "tools": (*BASE.tools, ToolRule(tool="read_file", permission="always_ask")),
                "limits": Limits(steps=3),
                "features": Features(plan_mode=True, approval=True),
                "roles": {},
            }
        ),
        BASE,
    )
