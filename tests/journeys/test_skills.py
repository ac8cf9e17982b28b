"""A member writes a skill in the browser, it is reviewed, an agent reads it, and it is stopped."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person

TEXT = """---
name: {name}
description: How we write letters.
---

# Letters

Begin with the date. {more}
"""


def looks_right(person: Person, name: str) -> None:
    size = "phone" if person.phone else "desktop"
    if folder := os.environ.get("JOURNEY_PICTURES"):
        person.page.screenshot(path=Path(folder) / f"skills-{name}-{size}.png", full_page=True)
    assert person.audit() == ""
    width = person.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0, f"{name} is wider than the window by {width}"


@on_screen(phone=False)
def test_a_skill_is_written_reviewed_read_and_stopped(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    alice.expected.append("422")  # what cannot be read, and a refusal without a reason
    name = f"letters-{'phone' if phone else 'desk'}"
    service.expect(
        f"Hello, {name}",
        reply("Good day."),
        reply(call("read_skill", name=name)),
        reply("Dear Ann,"),
    )

    page.goto("/skills/")
    page.get_by_role("link", name="New skill", exact=True).click()
    page.get_by_label("Who it is for").select_option("organisation")
    page.get_by_label("SKILL.md").fill("no head")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("main")).to_contain_text("SKILL.md has no head.")
    page.get_by_label("SKILL.md").fill(TEXT.format(name=name, more="") + "\n")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("It can be released as it is")
    looks_right(alice, "new")
    page.get_by_role("button", name="Store as a draft").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("draft")
    page.get_by_role("button", name="Ask for its release").click()
    page.goto("/skills/reviews/")
    page.locator("main").get_by_role("link", name=f"{name} 1").click()
    looks_right(alice, "review")
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_text("A refusal needs a reason.")).to_be_visible()
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.get_by_text("is released.")).to_be_visible()

    page.goto(f"/skills/?q={name}")
    looks_right(alice, "library")
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("SKILL.md").fill(TEXT.format(name=name, more="End with a name."))
    page.get_by_role("button", name="Store as a new version").click()
    expect(page.locator("main")).to_contain_text("End with a name.")
    looks_right(alice, "changes")

    uid = alice.begin(f"Hello, {name}")
    expect(alice.log).to_contain_text("Good day.")
    page.goto(f"/c/{uid}/skills/{name}/add/")
    looks_right(alice, "add")
    page.get_by_role("button", name="Add", exact=True).click()
    alice.send("Write to Ann")
    expect(alice.log).to_contain_text("Dear Ann,")
    expect(alice.log).to_contain_text(f"may use the skill “{name}” 1")

    page.goto(f"/skills/?q={name}")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("main")).to_contain_text("conversation · 1")
    page.get_by_label("Why").fill("It is wrong.")
    page.get_by_role("button", name="Stop it everywhere").click()
    expect(page.locator("main")).to_contain_text("It is wrong.")
    looks_right(alice, "stopped")
