"""A member makes an agent from the form, tries it out beside it, shares it, and it answers everybody."""

from __future__ import annotations

import os
import re
from pathlib import Path

from playwright.sync_api import expect

from providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person


def looks_right(person: Person, name: str) -> None:
    size = "phone" if person.phone else "desktop"
    if folder := os.environ.get("JOURNEY_PICTURES"):
        person.page.screenshot(path=Path(folder) / f"own-agents-{name}-{size}.png")
    assert person.audit() == ""
    width = person.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0, f"{name} is wider than the window by {width}"


@on_screen(phone=False)
def test_an_agent_is_made_tried_changed_shared_and_used(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    alice.expected.append("422")  # a refusal without a reason
    name = f"Reviewer on a {'phone' if phone else 'desk'}"
    service.expect("Look at this", reply("I have looked at it."))

    page.goto("/agents/")
    looks_right(alice, "list")
    page.get_by_role("link", name="New agent").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Prompt").fill("You review texts, kindly.")
    page.get_by_label("Effort").select_option("high")
    page.get_by_role("group", name="Tools").get_by_label("Run commands", exact=True).uncheck()
    looks_right(alice, "new")

    page.get_by_role("button", name="Try it out").click()
    page.wait_for_url(re.compile(r"/agents/agent_\w+/try/sesn_"))
    alice.send("Look at this")
    expect(alice.log).to_contain_text("I have looked at it.")
    looks_right(alice, "tryout")
    if phone:
        page.get_by_role("link", name="Back to the form").click()
        page.get_by_label("Prompt").fill("You review texts, strictly.")
        page.get_by_role("button", name="Save").click()
    else:
        page.get_by_label("Prompt").fill("You review texts, strictly.")
        page.get_by_role("button", name="Try it again").click()
        expect(page.locator(".tryout-form")).to_contain_text("version 2")
        expect(alice.log).not_to_contain_text("I have looked at it.")
        page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    looks_right(alice, "form")

    page.get_by_role("link", name="Versions").click()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".agent-diff").first).to_contain_text("strictly")
    looks_right(alice, "versions")
    page.get_by_role("link", name="Back to the agent").click()
    page.get_by_label("What it is for").fill("For everybody who writes")
    page.get_by_role("button", name="Ask for a review of version 2").click()
    page.goto("/agents/reviews/")
    looks_right(alice, "reviews")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("main")).to_contain_text("For everybody who writes")
    looks_right(alice, "review")
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_text("A refusal needs a reason.")).to_be_visible()
    page.get_by_role("button", name="Share it").click()
    expect(page.get_by_text("is offered to the organisation")).to_be_visible()

    page.goto("/agents/?q=reviewer")
    rows = page.locator("main").get_by_role("listitem")
    row = rows.filter(has=page.get_by_role("link", name=name, exact=True))
    expect(row).to_contain_text("shared")
    row.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{name} (copy)")
    page.goto("/agents/?q=reviewer")
    row.get_by_role("link", name="Start").click()
    expect(page.locator("input[name=agent]:checked + .choice-name")).to_have_text(name)


def test_a_key_that_fails_is_kept_on_a_word(visit: Visit):
    alice = visit()
    page = alice.page
    alice.expected.append("422")
    page.goto("/settings/keys/")
    page.get_by_label("Base URL").fill("https://nowhere.invalid")
    page.get_by_label("Key", exact=True).fill("a-key-that-opens-nothing")
    page.get_by_role("button", name="Test and store").click()
    failure = page.locator("#key-fails")
    expect(failure).to_contain_text("could not be reached")
    # However far down the page it stands.
    expect(failure).to_be_focused()
    looks_right(alice, "key")
    failure.get_by_role("button", name="Keep it anyway").click()
    expect(page.get_by_text("The key was stored.")).to_be_visible()
    page.get_by_role("button", name=re.compile("Remove the key for Anthropic.*Only me")).click()
    expect(page.get_by_text("The key was removed.")).to_be_visible()
