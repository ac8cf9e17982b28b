"""Custom tools in the agent's form: added, changed, refused in words."""

from __future__ import annotations

import pytest
from django.urls import reverse

from agents.administration.agent_form import AgentForm
from agents.models import Agent
from harness.agentconfig import CustomTool
from tests.agents.test_admin_agents import agent, at, browser, current, untouched  # noqa: F401

pytestmark = pytest.mark.django_db

NEW = {
    "custom_tools-1-name": "send_fax",
    "custom_tools-1-description": "Sends a fax.",
    "custom_tools-1-schema": '{"type": "object", "required": ["to"]}',
}


def save(browser, agent: Agent, **changes: str):  # noqa: F811
    return browser.post(at("change", agent), {**untouched(agent), **changes})


def test_staff_add_a_custom_tool_and_take_it_away(browser, agent: Agent):  # noqa: F811
    assert save(browser, agent, **NEW).status_code == 302
    names = [tool.name for tool in current(agent).config.custom_tools]
    assert names == ["look_up_stock", "send_fax"]
    assert current(agent).config.custom_tools[1] == CustomTool(
        name="send_fax",
        description="Sends a fax.",
        input_schema={"type": "object", "required": ["to"]},
    )
    gone = {f"custom_tools-1-{part}": "" for part in ("name", "description", "schema")}
    assert save(browser, agent, **gone).status_code == 302
    assert [tool.name for tool in current(agent).config.custom_tools] == ["look_up_stock"]
    assert current(agent).number == 3


def test_an_empty_schema_takes_anything(browser, agent: Agent):  # noqa: F811
    save(browser, agent, **{**NEW, "custom_tools-1-schema": ""})
    assert current(agent).config.custom_tools[1].input_schema == {
        "type": "object",
        "properties": {},
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"custom_tools-1-schema": "{"}, "not valid JSON"),
        ({"custom_tools-1-schema": "[]"}, "a JSON object"),
        ({"custom_tools-1-schema": '{"type": "string"}'}, "at its top"),
        ({"custom_tools-1-name": "look_up_stock"}, "Two tools are called"),
        ({"custom_tools-1-name": "bash fast"}, "letters, digits"),
        ({"custom_tools-1-name": ""}, "1 to 64"),
        ({"custom_tools-1-name": "ask_user"}, "built-in tool"),
        ({"custom_tools-1-description": ""}, "at least 1"),
    ],
)
def test_what_is_wrong_is_said_beside_the_table_and_what_was_typed_stays(
    agent: Agent,  # noqa: F811
    change: dict[str, str],
    words: str,
):
    form = AgentForm({**untouched(agent), **NEW, **change}, instance=current(agent).agent)
    assert list(form.errors) == ["custom_tools"]
    assert words in str(form.errors["custom_tools"])
    assert 'value="send_fax"' in str(form["custom_tools"]) or "name" in "".join(change)


def test_the_page_shows_what_is_wrong_with_what_was_typed_and_nothing_is_saved(
    browser,  # noqa: F811
    agent: Agent,  # noqa: F811
):
    answer = save(browser, agent, **{**NEW, "custom_tools-1-schema": "{"})
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == ["custom_tools"]
    html = answer.content.decode()
    assert "not valid JSON" in html
    assert 'value="send_fax"' in html
    assert current(agent).number == 1


def test_the_comparison_of_versions_shows_custom_tools(browser, agent: Agent):  # noqa: F811
    save(browser, agent, **NEW)
    address = reverse("admin:agents_agent_compare", args=[agent.pk])
    html = browser.get(address, {"from": 1, "to": 2}).content.decode()
    assert "Custom tools" in html
    assert "send_fax: Sends a fax." in html
