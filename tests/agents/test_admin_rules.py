"""The rules for tools in the agent's form: rows that lose nothing, with faults beside their parts."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.administration.agent_form import AgentForm
from agents.models import Agent
from agents.rulerows import Row, empty_row, faults_of, row_of, rule_of
from harness.agentconfig import AskOptions, ToolRule
from harness.patterns import When
from tests.agents.test_admin_agents import (  # noqa: F401
    agent,
    at,
    browser,
    current,
    posted,
    untouched,
)
from tests.agents.test_admin_agents import (
    row_of as named,
)

TEXT = st.text(st.characters(exclude_characters="\0\r", codec="utf-8"), max_size=40)
NAMES = st.text("abcdefghij_*", min_size=1, max_size=20)
WAYS = st.one_of(
    st.builds(lambda words: {"prefix": words}, st.from_regex(r"[a-z]+( [a-z-]+)?", fullmatch=True)),
    st.builds(lambda path: {"path": path}, st.from_regex(r"[a-z*]+(/[a-z*]+)?", fullmatch=True)),
    st.just({"host": "*.example.org"}),
    st.builds(lambda value: {"equals": value}, st.one_of(TEXT, st.integers(), st.booleans())),
    st.builds(lambda value: {"equals": value}, st.floats(allow_nan=False, allow_infinity=False)),
)
WHENS = st.one_of(
    st.none(),
    st.builds(lambda name, way: When(argument=name, **way), NAMES, WAYS),
    st.just(When(sha256="0a" * 32)),
)
OPTIONS = st.builds(
    AskOptions,
    two_people=st.booleans(),
    requester_may_not_decide=st.booleans(),
    reviewers_only=st.booleans(),
    strict=st.booleans(),
    service_accounts=st.lists(st.from_regex(r"user_[a-z0-9]{4}", fullmatch=True), max_size=3).map(
        tuple
    ),
    ask_first=st.sampled_from(["", "role:reviewer", "person:user_1"]),
    expires_seconds=st.one_of(st.none(), st.integers(1, 31_536_000)),
)
RULES = st.builds(
    ToolRule,
    tool=NAMES,
    permission=st.sampled_from(["always_allow", "always_ask", "always_deny"]),
    when=WHENS,
    options=OPTIONS,
    apart=st.booleans(),
    note=TEXT,
)


@given(RULES)
def test_a_rule_survives_its_row(rule: ToolRule):
    row = row_of(
        rule.model_dump(mode="json", exclude_defaults=True) | {"permission": rule.permission}
    )
    assert faults_of(row) == {}
    again = ToolRule.model_validate(rule_of(row))
    assert again == rule
    if rule.when is not None:
        assert type(again.when.equals) is type(rule.when.equals)


@given(st.dictionaries(st.sampled_from(sorted(empty_row())), TEXT))
def test_whatever_is_typed_is_a_rule_or_has_a_fault_beside_a_part(typed: dict[str, str]):
    row = Row(empty_row() | typed)
    faults = faults_of(row)
    if faults:
        assert faults.keys() <= row.keys() | {"options"}
        assert all(faults.values())
    else:
        try:
            ToolRule.model_validate(rule_of(row))
        except ValidationError as problem:
            raise AssertionError(row) from problem


# --- in the form ----------------------------------------------------------------------------------

pytestmark = pytest.mark.django_db

NEW = {
    "tools-3-tool": "bash",
    "tools-3-permission": "always_deny",
    "tools-3-argument": "command",
    "tools-3-way": "prefix",
    "tools-3-value": "git push",
    "tools-3-note": "Releases are people's.",
}


def save(browser, agent: Agent, **changes: str):  # noqa: F811
    return browser.post(at("change", agent), untouched(agent) | changes)


def test_a_rule_is_added_changed_and_removed(browser, agent: Agent):  # noqa: F811
    assert save(browser, agent, **NEW).status_code == 302
    added = current(agent).config.tools
    assert added[:3] == (
        ToolRule(tool="mcp__*", permission="always_ask"),
        ToolRule(tool="grep", permission="always_deny"),
        ToolRule(tool="*"),
    )
    assert added[3] == ToolRule(
        tool="bash",
        permission="always_deny",
        when=When(argument="command", prefix="git push"),
        note="Releases are people's.",
    )
    values = posted(browser.get(at("change", agent)))
    row = named(values, "bash")
    changed = {
        f"{row}-permission": "always_ask",
        f"{row}-two_people": "on",
        f"{row}-expires_seconds": "60",
        f"{row}-ask_first": "role:reviewer",
        f"{row}-service_accounts": "user_1, user_2",
    }
    gone = named(values, "grep")
    kept = {name: value for name, value in values.items() if not name.startswith(f"{gone}-")}
    assert browser.post(at("change", agent), kept | changed).status_code == 302
    rules = current(agent).config.tools
    assert [rule.tool for rule in rules] == ["mcp__*", "*", "bash"]
    assert rules[2].options == AskOptions(
        two_people=True,
        expires_seconds=60,
        ask_first="role:reviewer",
        service_accounts=("user_1", "user_2"),
    )


def test_rows_that_were_not_touched_come_back_as_they_were(browser, agent: Agent):  # noqa: F811
    """A value of several lines, a number and a text that looks like one among them."""
    for number, (way, value) in enumerate(
        [("equals", "one\r\ntwo\r\n"), ("is", "5"), ("equals", "5"), ("is", "true")], start=3
    ):
        row = f"tools-{number}"
        part = {"tool": "calculator", "argument": "x", "way": way, "value": value}
        part |= {"permission": "always_ask"}
        save(browser, agent, **{f"{row}-{name}": text for name, text in part.items()})
    before = current(agent)
    values = [rule.when.equals for rule in before.config.tools[3:]]
    assert values == ["one\ntwo\n", 5, "5", True]
    assert save(browser, agent).status_code == 302
    assert current(agent) == before
    save(browser, agent, instructions="Others.")
    assert current(agent).config.tools == before.config.tools


@pytest.mark.parametrize(
    ("change", "part", "words"),
    [
        ({"tools-3-tool": ""}, "tool", "Name a tool"),
        ({"tools-3-tool": "x" * 129}, "tool", "128 characters"),
        ({"tools-3-argument": ""}, "argument", "Name the argument"),
        ({"tools-3-way": ""}, "way", "Say how"),
        ({"tools-3-way": "nonsense"}, "way", "Choose one"),
        ({"tools-3-way": "is"}, "value", "a number, true or false"),
        ({"tools-3-way": "sha256"}, "argument", "speaks of all"),
        ({"tools-3-way": "sha256", "tools-3-argument": ""}, "value", "not the form"),
        ({"tools-3-value": ""}, "value", "compared with"),
        ({"tools-3-value": "a; b"}, "value", "one simple command"),
        ({"tools-3-permission": "maybe"}, "permission", "Choose one of"),
        ({"tools-3-expires_seconds": "soon"}, "expires_seconds", "whole number"),
        ({"tools-3-expires_seconds": "0"}, "expires_seconds", "1 or more"),
        ({"tools-3-ask_first": "bob"}, "ask_first", "Who is asked first is"),
        ({"tools-3-note": "x" * 501}, "note", "500 characters"),
    ],
)
def test_a_fault_stands_beside_its_part_and_what_was_typed_stays(
    agent: Agent,  # noqa: F811
    change: dict[str, str],
    part: str,
    words: str,
):
    form = AgentForm(untouched(agent) | NEW | change, instance=current(agent).agent)
    assert list(form.errors) == ["tools"]
    assert "Rule 4" in str(form.errors["tools"].data[0].messages)
    page: Any = BeautifulSoup(str(form["tools"]), "html.parser")
    fault = page.find(id=f"tools-3-{part}-fault")
    assert words in fault.text
    if part != "permission":
        assert page.find(attrs={"name": f"tools-3-{part}"})["aria-describedby"] == fault["id"]
    assert page.find(attrs={"name": "tools-3-note"})["value"] == (NEW | change)["tools-3-note"]


def test_the_page_shows_the_table_with_its_faults_and_nothing_is_saved(browser, agent: Agent):  # noqa: F811
    answer = save(browser, agent, **(NEW | {"tools-3-way": "is"}))
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == ["tools"]
    page: Any = BeautifulSoup(answer.content, "html.parser")
    assert "a number, true or false" in page.find(id="tools-3-value-fault").text
    assert page.find(attrs={"name": "tools-3-note"})["value"] == NEW["tools-3-note"]
    assert current(agent).number == 1


def test_no_rule_is_written_as_json(browser, agent: Agent):  # noqa: F811
    save(browser, agent, **NEW)
    page: Any = BeautifulSoup(browser.get(at("change", agent)).content, "html.parser")
    rules = page.find(attrs={"data-rules": True})
    assert "{" not in "".join(
        str(control.get("value", "")) + str(control.get("placeholder", ""))
        for control in rules("input")
    )
    assert not rules(["script", "style"])


def test_the_comparison_of_versions_shows_why_a_rule_is_there(browser, agent: Agent):  # noqa: F811
    save(browser, agent, **NEW)
    html = browser.get(at("compare", agent), {"from": 1, "to": 2}).content.decode()
    assert "Releases are people" in html
