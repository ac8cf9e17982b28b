"""A member has an agent begin by itself: words for a time, the dry run, a first run, a pause, and the end."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import expect

from harness.providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person


def looks_right(person: Person, name: str) -> None:
    size = "phone" if person.phone else "desktop"
    if folder := os.environ.get("JOURNEY_PICTURES"):
        person.page.screenshot(path=Path(folder) / f"schedules-{name}-{size}.png", full_page=True)
    assert person.audit() == ""
    width = person.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0, f"{name} is wider than the window by {width}"


@on_screen(phone=True)
def test_a_schedule_is_made_tried_dry_run_and_paused(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    alice.expected.append("422")  # words that are not understood
    name = f"Morning look {'phone' if phone else 'desk'}"
    service.expect(f"Look at the news, {name}", reply("All is quiet today."))

    page.goto("/schedules/")
    page.get_by_role("link", name="New schedule", exact=True).click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Agent", exact=True).select_option(index=1)
    page.get_by_label("Environment", exact=True).select_option(index=1)
    page.get_by_label("What it is to do").fill(f"Look at the news, {name}")
    page.get_by_label("When, in words").fill("every blue moon at 9")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("“blue” is not understood")
    page.get_by_label("When, in words").fill("every weekday at 8:30")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("As a cron expression")).to_have_value("30 8 * * 1-5")
    expect(page.locator("#check")).to_contain_text("Nothing is saved yet")
    expect(page.locator("#check")).to_contain_text("Would stop and wait")
    looks_right(alice, "check")

    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("main")).to_contain_text("All is quiet today.")
    page.goto("/schedules/")
    looks_right(alice, "list")
    page.locator("main").get_by_role("link", name=name).first.click()
    expect(page.locator("main")).to_contain_text("All is quiet today.")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("main")).to_contain_text("somebody paused it")
    looks_right(alice, "one")

    page.get_by_role("link", name="Delete").click()
    looks_right(alice, "delete")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("main")).to_contain_text("The schedule is deleted")
