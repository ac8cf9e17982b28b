"""The agent's form and its versions, as staff use them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth.models import Permission
from django.urls import reverse

from agents.actions.agents import change_agent, create_agent
from agents.administration.agent_form import AgentForm
from agents.agentforms import ConfigErrors, field_names, to_config, to_fields
from agents.models import Agent
from agents.seeds import AGENTS
from conversations.actions.conversations import create_conversation
from harness.agentconfig import (
    AgentConfig,
    CustomTool,
    Features,
    Limits,
    RoleOverride,
    ToolRule,
)
from harness.roster import Callee, Roster
from tests.cast import make_user

CONFIG = AgentConfig(
    provider="anthropic",
    model="claude-sonnet-5-5",
    instructions="First line.\nSecond line.\n",
    temperature=0.7,
    top_p=None,
    thinking=True,
    effort="high",
    tools=(
        ToolRule(tool="mcp__*", permission="always_ask"),
        ToolRule(tool="grep", permission="always_deny"),
        ToolRule(tool="*"),
    ),
    custom_tools=(
        CustomTool(
            name="look_up_stock",
            description="How many are left.\nAsk by “article”.",
            input_schema={"type": "object", "properties": {"article": {"type": "string"}}},
        ),
    ),
    limits=Limits(steps=7, compact_at=0.5),
    roles={
        "subagent": RoleOverride(model="claude-haiku-5-5", thinking=False, output_tokens=900),
        "compaction": RoleOverride(effort="", temperature=0.0),
    },
    roster=Roster(
        agents=(Callee(agent="self", name="Twin"),),
        inline=True,
        advisor="anthropic/claude-opus-5-5",
    ),
    features=Features(approval=True),
)


@pytest.fixture
def agent(staff) -> Agent:
    return create_agent(
        actor=staff, organisation=None, name="Coder", description="Codes.", config=CONFIG
    )


@pytest.fixture
def browser(staff, client_of):
    return client_of(staff)


def at(name: str, agent: Agent) -> str:
    return reverse(f"admin:agents_agent_{name}", args=[agent.pk])


def posted(page) -> dict[str, str]:
    """What a browser sends when nothing was touched: every control of the page's form."""
    return sent(page.context["adminform"].form)


def untouched(agent: Agent) -> dict[str, str]:
    """What `posted` finds on its page, which takes longer to draw than all else that a test does."""
    return sent(AgentForm(instance=Agent.objects.select_related("current").get(pk=agent.pk)))


def sent(form: AgentForm) -> dict[str, str]:
    values: dict[str, str] = {}
    for bound in form:
        if bound.name == "tools":
            values |= controls(str(bound))
            continue
        if bound.name == "custom_tools":
            html = str(bound)
            texts = re.findall(r'<textarea name="([^"]+)"[^>]*>(.*?)</textarea>', html, re.S)
            for name, value in [*re.findall(r'name="([^"]+-name)" value="([^"]*)"', html), *texts]:
                values[name] = unescape(value).replace("\n", "\r\n")
            continue
        value = bound.value()
        if value is True:
            values[bound.html_name] = "on" if "checked" in str(bound) else "True"
        elif value is not None and value is not False:
            values[bound.html_name] = str(value).replace("\n", "\r\n")
        elif value is False and "checkbox" not in str(bound):
            values[bound.html_name] = "False"
    return values


def controls(html: str) -> dict[str, str]:
    """What a browser sends of this piece of a form; what stands in a template is not there for it."""
    soup = BeautifulSoup(html, "html.parser")
    for template in soup("template"):
        template.decompose()
    found: dict[str, str] = {}
    for control in soup(["input", "select", "textarea"]):
        name = str(control.get("name", ""))
        if control.name == "select":
            chosen: Any = control.find("option", selected=True) or control.find("option")
            found[name] = str(chosen["value"])
        elif control.name == "textarea":
            found[name] = control.text.removeprefix("\n").replace("\n", "\r\n")
        elif control.get("type") != "checkbox" or control.has_attr("checked"):
            found[name] = str(control.get("value", ""))
    return found


def row_of(values: dict[str, str], tool: str) -> str:
    """The beginning of the names of a tool's row."""
    names = (name for name, value in values.items() if value == tool and name.endswith("-tool"))
    return next(names)[: -len("-tool")]


def current(agent: Agent):
    fresh = Agent.objects.select_related("current").get(pk=agent.pk)
    assert fresh.current is not None
    return fresh.current


# --- the form and the configuration say the same --------------------------------------------------


@pytest.mark.parametrize(
    "config", [CONFIG, AgentConfig(), *(seed.config for seed in AGENTS.values())]
)
def test_a_configuration_survives_its_form(config):
    assert to_config(to_fields(config)) == config


def test_every_part_of_a_configuration_has_a_field():
    assert set(field_names()) <= set(AgentForm.base_fields)
    assert len(field_names()) == len(set(field_names()))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("temperature", 3, "2 or less"),
        ("top_p", 0, "more than 0"),
        ("limits_steps", 0, "1 or more"),
        ("limits_compact_at", 1.5, "1 or less"),
        ("instructions", "x" * 100_001, "100000 characters"),
        ("subagent_temperature", -1, "0 or more"),
        ("compaction_output_tokens", 3, "16 or more"),
        ("effort", "extreme", "Choose one of"),
        ("roster_agents", "explore: self", "another name"),
        ("roster_agents", "self\nself", "named twice"),
        ("roster_advisor", "x" * 161, "160 characters"),
        ("tools", [{"tool": "x" * 129, "permission": "always_ask"}], "128 characters"),
    ],
)
def test_an_error_finds_its_field_and_says_what_to_do(field, value, words):
    with pytest.raises(ConfigErrors) as problem:
        to_config(to_fields(CONFIG) | {field: value})

    assert set(problem.value.by_field) == {field}
    assert words in problem.value.by_field[field][0]


def test_whom_it_calls_on_is_typed_by_name_and_kept_by_version(agent, staff, browser):
    other = create_agent(
        actor=staff, organisation=None, name="Code: reviewer", description="", config=AgentConfig()
    )
    plain = create_agent(
        actor=staff, organisation=None, name="Scout", description="", config=AgentConfig()
    )
    values = untouched(agent)
    assert values["roster_agents"] == "Twin: self"

    typed = f"Scout\r\ncritic: {other.uid} @ 1"
    browser.post(at("change", agent), values | {"roster_agents": typed})
    assert [
        (each.agent, each.version, each.name) for each in current(agent).config.roster.agents
    ] == [
        (plain.uid, 1, "Scout"),
        (other.uid, 1, "critic"),
    ]
    again = untouched(agent)
    assert again["roster_agents"] == f"Scout: {plain.uid} @ 1\r\ncritic: {other.uid} @ 1"
    page = browser.post(at("change", agent), again | {"roster_agents": "Nobody"})
    assert "not on offer" in str(page.context["adminform"].form.errors["roster_agents"])


# --- saving ---------------------------------------------------------------------------------------


def test_saving_an_untouched_form_makes_no_version(agent, browser):
    values = posted(browser.get(at("change", agent)))
    answer = browser.post(at("change", agent), values)

    assert answer.status_code == 302
    assert (current(agent).number, current(agent).config) == (1, CONFIG)


@pytest.mark.parametrize("seed", AGENTS)
def test_saving_an_untouched_seeded_agent_makes_no_version(seed, staff, browser):
    made = create_agent(
        actor=staff, organisation=None, name="S", description="", config=AGENTS[seed].config
    )
    answer = browser.post(at("change", made), untouched(made))

    assert answer.status_code == 302
    assert current(made).number == 1


def test_switching_the_provider_is_a_form(agent, browser):
    values = untouched(agent)
    values |= {"provider": "openai_compatible", "model": "qwen3:8b"}
    assert browser.post(at("change", agent), values).status_code == 302

    config = current(agent).config
    assert (current(agent).number, config.provider, config.model) == (
        2,
        "openai_compatible",
        "qwen3:8b",
    )
    assert config.instructions == CONFIG.instructions


def test_every_group_of_the_form_reaches_the_new_version(agent, browser):
    values = untouched(agent)
    del values["feature_approval"]
    values |= {
        "instructions": "One.\r\nTwo.",
        "temperature": "",
        "top_p": "0.9",
        "limits_steps": "9",
        "subagent_model": "",
        "subagent_thinking": "inherit",
        "teammate_effort": "low",
        "compaction_effort": "inherit",
        "feature_plan_mode": "on",
    }
    assert browser.post(at("change", agent), values).status_code == 302

    config = current(agent).config
    assert (config.instructions, config.temperature, config.top_p) == ("One.\nTwo.", None, 0.9)
    assert config.limits == Limits(steps=9, compact_at=0.5)
    assert config.roles == {
        "subagent": RoleOverride(output_tokens=900),
        "teammate": RoleOverride(effort="low"),
        "compaction": RoleOverride(temperature=0.0),
    }
    assert config.features == Features(plan_mode=True)


def test_an_agent_may_have_no_tools_at_all(agent, browser):
    values = untouched(agent)
    values |= {name: "" for name in values if name.endswith("-tool")}
    assert browser.post(at("change", agent), values).status_code == 302

    assert current(agent).config.tools == ()


def test_a_new_agent_is_made_with_the_form(browser, acme, staff):
    page = browser.get(reverse("admin:agents_agent_add"))
    values = posted(page) | {
        "name": "House agent",
        "organisation": str(acme.pk),
        "provider": "demo",
        "instructions": "Help.",
    }
    answer = browser.post(reverse("admin:agents_agent_add"), values)

    assert answer.status_code == 302
    made = Agent.objects.get(name="House agent")
    assert (made.organisation, made.created_by) == (acme, staff)
    assert current(made).config == AgentConfig(provider="demo", instructions="Help.")


@pytest.mark.parametrize(
    "faults",
    [
        {
            "temperature": ("3", "Give 2"),
            "limits_steps": ("0", "Give 1 or more"),
            "subagent_output_tokens": ("3", "Give 16 or more"),
        },
        {
            "temperature": ("warm", "not a number"),
            "limits_steps": ("", "Type something"),
            "provider": ("nonsense", "not among the choices"),
            "name": ("", "Type something"),
        },
    ],
)
def test_refusals_stand_beside_their_fields_and_nothing_is_lost(
    agent, browser, faults: dict[str, tuple[str, str]]
):
    typed = {field: value for field, (value, _words) in faults.items()}
    values = untouched(agent) | {"instructions": "Typed with care."} | typed
    answer = browser.post(at("change", agent), values)

    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert set(errors) == set(faults)
    for field, (_value, words) in faults.items():
        assert words in errors[field][0]
    assert "Typed with care." in answer.content.decode()
    assert current(agent).number == 1


def test_a_provider_without_a_default_model_asks_for_one(agent, browser):
    values = untouched(agent)
    values |= {"provider": "openai_compatible", "model": ""}
    answer = browser.post(at("change", agent), values)

    assert "no default model" in answer.context["adminform"].form.errors["model"][0]


def test_a_bad_pattern_is_explained_beside_the_table(agent, browser):
    values = untouched(agent)
    values[f"{row_of(values, 'mcp__*')}-tool"] = "x" * 129
    answer = browser.post(at("change", agent), values)

    assert set(answer.context["adminform"].form.errors) == {"tools"}
    assert "x" * 129 in answer.content.decode()


def test_two_people_who_edit_at_once_do_not_overwrite_each_other(agent, browser, staff):
    values = posted(browser.get(at("change", agent)))
    change_agent(
        actor=staff,
        agent=agent,
        name="Coder",
        description="Codes.",
        config=CONFIG.model_copy(update={"instructions": "The other's."}),
    )
    values["instructions"] = "Mine."
    answer = browser.post(at("change", agent), values)

    assert answer.status_code == 200
    text = answer.content.decode()
    assert "Somebody saved version 2" in text
    assert "Mine." in text
    assert current(agent).config.instructions == "The other's."


def test_staff_who_may_only_look_see_the_configuration_and_save_nothing(agent, client_of):
    viewer = make_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_agent"))
    client = client_of(viewer)
    page = client.get(at("change", agent))

    assert page.status_code == 200
    text = page.content.decode()
    assert "Second line." in text
    assert "claude-haiku-5-5" in text
    assert client.post(at("change", agent), {"name": "x"}).status_code == 403
    assert client.get(at("versions", agent)).status_code == 200
    for address in ("restore", "put_away"):
        answer = client.post(at(address, agent), {"number": "1"})
        assert answer.status_code == 403, address
    assert Agent.objects.get(pk=agent.pk).archived_at is None


def test_staff_without_permission_see_no_version(agent, client_of):
    client = client_of(make_user("clerk", is_staff=True))
    for address in (
        at("versions", agent),
        at("compare", agent) + "?from=1&to=1",
        at("restore", agent) + "?number=1",
        at("put_away", agent),
    ):
        assert client.get(address).status_code == 403, address


# --- versions -------------------------------------------------------------------------------------


@pytest.fixture
def changed(agent, staff) -> Agent:
    config = CONFIG.model_copy(
        update={
            "instructions": "First line.\nAnother line.\n",
            "tools": (ToolRule(tool="*"),),
            "effort": "low",
        }
    )
    return change_agent(actor=staff, agent=agent, name="Coder", description="Codes.", config=config)


def test_versions_are_listed_with_who_and_when(changed, browser):
    text = browser.get(at("versions", changed)).content.decode()

    assert "staff" in text
    assert text.index('name="to" value="2"') < text.index('name="to" value="1"')
    assert "?number=1" in text
    assert "?number=2" not in text  # the current one is not restored


def test_the_difference_of_two_versions_is_shown_field_by_field(changed, browser):
    page = browser.get(at("compare", changed), {"from": "1", "to": "2"})
    text = page.content.decode()

    assert {change.field for change in page.context["changes"]} == {
        "instructions",
        "tools",
        "effort",
    }
    assert "<del>Second line.</del>" in text
    assert "<ins>Another line.</ins>" in text
    assert "<span>First line.</span>" in text
    assert "<del>high</del>" in text
    assert "<ins>low</ins>" in text


def test_what_a_version_holds_is_escaped_in_the_difference(agent, browser, staff):
    bad = "<script>alert(1)</script>"
    change_agent(
        actor=staff,
        agent=agent,
        name="Coder",
        description="",
        config=CONFIG.model_copy(update={"instructions": bad}),
    )
    assert bad not in browser.get(at("compare", agent), {"from": "1", "to": "2"}).content.decode()


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"from": "1"},
        {"from": "1", "to": "99"},
        {"from": "x", "to": "1" * 30},
        {"from": "1", "to": "²"},
    ],
)
def test_a_version_that_is_not_there_is_not_found(agent, browser, query):
    assert browser.get(at("compare", agent), query).status_code == 404


def test_a_version_is_restored_only_when_confirmed(changed, browser):
    page = browser.get(at("restore", changed), {"number": "1"})
    assert "<ins>Second line.</ins>" in page.content.decode()
    assert current(changed).number == 2

    answer = browser.post(at("restore", changed), {"number": "1", "expected_version": "2"})
    assert answer.status_code == 302
    assert (current(changed).number, current(changed).config) == (3, CONFIG)


def test_a_restore_confirmed_too_late_changes_nothing(changed, browser):
    answer = browser.post(
        at("restore", changed), {"number": "1", "expected_version": "1"}, follow=True
    )

    assert "Somebody saved version 2" in answer.content.decode()
    assert current(changed).number == 2


@pytest.mark.parametrize("expected", ["", "x", "²", "٢", "-2", "2.0", "9" * 5_000])
def test_a_restore_that_names_no_version_it_saw_changes_nothing(changed, browser, expected):
    answer = browser.post(
        at("restore", changed), {"number": "1", "expected_version": expected}, follow=True
    )

    assert answer.status_code == 200
    assert current(changed).number == 2


# --- away and gone --------------------------------------------------------------------------------


def test_an_agent_is_archived_and_offered_again_by_its_buttons(agent, browser):
    assert browser.get(at("put_away", agent)).status_code == 200
    assert Agent.objects.get(pk=agent.pk).archived_at is None
    assert browser.post(at("put_away", agent)).status_code == 302
    assert Agent.objects.get(pk=agent.pk).archived_at is not None
    assert browser.post(at("put_away", agent)).status_code == 403  # it is away already

    page = browser.get(at("change", agent)).content.decode()
    assert at("offer_again", agent) in page
    assert at("put_away", agent) not in page
    assert browser.post(at("offer_again", agent)).status_code == 302
    assert Agent.objects.get(pk=agent.pk).archived_at is None


def test_only_an_unused_agent_is_deleted(agent, browser, staff, alice, acme, environment):
    unused = create_agent(
        actor=staff, organisation=None, name="Unused", description="", config=CONFIG
    )
    create_conversation(actor=alice, organisation=acme, agent=agent, environment=environment)

    assert browser.post(at("delete", agent), {"post": "yes"}).status_code == 403
    assert browser.get(at("delete", unused)).status_code == 200
    assert browser.post(at("delete", unused), {"post": "yes"}).status_code == 302
    assert list(Agent.objects.all()) == [agent]
