"""Each tool's card in the admin: owner, effects, marks, schema."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from tools_app.catalogue import all_tools, describe

pytestmark = pytest.mark.django_db


def address() -> str:
    return reverse("admin:agents_agent_tools")


def test_staff_see_a_card_of_every_tool(staff, client_of):
    answer = client_of(staff).get(address())
    assert answer.status_code == 200
    html = answer.content.decode()
    for tool in all_tools().values():
        assert f'id="tool-{tool.name}"' in html
    assert "untrusted answers" in html
    assert "agentsite" in html


def test_the_list_of_agents_leads_there(staff, client_of):
    html = client_of(staff).get(reverse("admin:agents_agent_changelist")).content.decode()
    assert address() in html


def test_nobody_but_staff_with_the_right_sees_it(alice, mallory, client, client_of):
    for browser in (client, client_of(alice), client_of(mallory)):
        answer = browser.get(address())
        assert answer.status_code == 302
        assert "/admin/login/" in answer["Location"]
    alice.is_staff = True
    alice.save(update_fields=["is_staff"])
    assert client_of(alice).get(address()).status_code == 403


@pytest.mark.parametrize("name", sorted(all_tools()))
def test_a_description_says_owner_effects_and_what_a_tool_does_to_the_world(name: str):
    tool = all_tools()[name]
    told = describe(tool)
    assert json.loads(json.dumps(told)) == told
    assert told["owner"]
    assert told["read_only"] == (told["effect"] == "read")
    assert not (told["read_only"] and told["destructive"])
    assert told["input_schema"]["type"] == "object"
    assert len(told["description"]) > 20


def test_the_marks_of_some_tools():
    by_name = {name: describe(tool) for name, tool in all_tools().items()}
    assert by_name["bash"]["destructive"]
    assert by_name["web_fetch"]["untrusted"]
    assert by_name["ask_user"]["external"]
    assert by_name["calculator"]["direct"]
    assert by_name["present_plan"]["always_asks"]
    assert by_name["read_file"]["idempotent"]
