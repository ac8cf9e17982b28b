"""A hook is set up on its page and asked in a conversation, whose card tells of it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.looks import looks_right


@pytest.mark.parametrize("kind", [{}, {"phone": True}], ids=["desk", "phone"])
def test_a_hook_is_set_up_and_the_card_of_a_call_names_it(visit, service, kind):
    name = f"Lint {len(kind)}"
    service.expect(
        "Write a note", reply(call("write_file", path="note.md", content="x\n")), reply("Written.")
    )
    alice = visit(**kind)
    page = alice.page
    page.goto("/settings/hooks/")
    page.locator("input[name=name]").fill(name)
    page.locator("select[name=kind]").select_option("command")
    page.locator("input[name=target]").fill("""echo '{"context": "No line is too long."}'""")
    for point in ("tool.after", "turn.after"):
        page.locator(f"input[name=points][value='{point}']").check()
    page.locator("input[name=points][value='tool.before']").uncheck()
    looks_right(alice, "hooks-form")
    page.get_by_role("button", name="Create").click()
    alice.begin("Write a note")
    alice.wait_for_status("idle")
    card = page.locator(".unit.tool").first
    card.evaluate("each => { each.open = true }")
    expect(card).to_contain_text(f"“{name}” added words for the agent")
    expect(card).to_contain_text("No line is too long.")
    looks_right(alice, "hooks-card")
    page.goto("/settings/hooks/")
    row = page.get_by_role("row", name="tool.after").first
    expect(row).to_contain_text("1")
    looks_right(alice, "hooks-page")
    page.get_by_role("link", name=name).click()
    page.get_by_role("button", name="Delete this hook").click()
