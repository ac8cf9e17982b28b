"""A member has an agent begin by itself: words for a time, the dry run, a first run, a pause, and the end."""

from __future__ import annotations

import json
import os
from pathlib import Path

from playwright.sync_api import Page, expect

from harness.errors import BadRequest
from providers.scripted import call, reply
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

    page.goto("/")
    if phone:
        page.get_by_role("button", name="Conversations", exact=True).tap()
    page.get_by_role("link", name="Schedules", exact=True).click()
    page.get_by_role("link", name="New schedule", exact=True).click()
    page.get_by_label("Name", exact=True).fill(name)
    # What a conversation would begin with is chosen already.
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


@on_screen(phone=True)
def test_the_work_of_a_run_is_judged_and_checked_and_stays_with_what_was_saved(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    which = "phone" if phone else "desk"
    name, task = f"Prices, {which}", f"Write the report of prices, {which}."
    rubric = "- it has a title\n- it names a source"
    both = [{"number": number, "met": True, "reason": "Seen."} for number in (1, 2)]
    service.expect_outcome(
        task,
        rubric,
        [reply("Here it is."), reply("There is none.")],
        [reply(json.dumps({"criteria": both}))],
    )
    page.goto("/schedules/new/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Agent", exact=True).select_option(index=1)
    page.get_by_label("Environment", exact=True).select_option(index=1)
    page.get_by_label("What it is to do").fill(task)
    page.get_by_text("More: how its work is judged").click()
    page.get_by_label("Criteria that its work is judged by").fill(rubric)
    page.get_by_label("Judged so many times at most").fill("1")
    page.get_by_label("Commands that check it").fill("2: grep -q https:// report.md")
    page.get_by_role("button", name="Check", exact=True).click()
    # This agent asks before each command, and nobody is asked about a check.
    expect(page.locator("#check")).to_contain_text("Checks that would fail")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("60 seconds at most")
    order = page.url
    page.get_by_role("button", name="Run now").click()
    expect(alice.log).to_contain_text("There is none.")
    alice.wait_for_status("idle")

    page.goto(order)
    page.get_by_text("Judged for the last time: 1 of 2 criteria met.").click()
    expect(page.get_by_text("Check failed:")).to_be_visible()
    looks_right(alice, "judged")

    instruct(page, f"Be brief, {which}.")
    page.goto(order)
    page.get_by_role("button", name="Run now").click()
    told = "The organisation’s standing instructions are not those that it was saved with."
    expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()
    looks_right(alice, "departed")
    go_on = page.get_by_role("button", name="Go on with what is there now")
    go_on.click()
    expect(go_on).to_have_count(0)
    expect(page.locator("main")).to_contain_text("Acme")
    instruct(page, "")


def instruct(page: Page, text: str) -> None:
    """What all agents of the organisation are told."""
    page.goto("/settings/steering/")
    page.locator("main textarea").fill(text)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The next runs are told of it.")).to_be_visible()


def make(page: Page, name: str, task: str, *, failures: int = 3) -> None:
    """A schedule for no time at all, begun by hand."""
    page.goto("/schedules/new/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Agent", exact=True).select_option(index=1)
    page.get_by_label("Environment", exact=True).select_option(index=1)
    page.get_by_label("What it is to do").fill(task)
    page.get_by_text("More: how its work is judged").click()
    page.get_by_label("Pause after so many failed runs in a row").fill(str(failures))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


@on_screen(phone=False)
def test_a_run_that_asks_is_answered_from_the_brief_and_runs_that_fail_pause_their_schedule(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    which = "phone" if phone else "desk"
    asking, failing = f"Water the plants, {which}", f"Feed the cat, {which}"
    options = [{"label": "The fern"}, {"label": "The cactus"}]
    asked = call("ask_user", questions=[{"question": "Which one first?", "options": options}])
    service.expect(asking, reply(asked), reply("The fern has water."))
    service.expect(failing, BadRequest("Nobody can read this."))
    make(page, f"Plants, {which}", asking)
    page.get_by_role("button", name="Run now").click()
    expect(alice.log.get_by_label("The fern")).to_be_visible()
    make(page, f"Cat, {which}", failing, failures=1)
    order = page.url
    page.get_by_role("button", name="Run now").click()
    alice.wait_for_status("failed")
    page.goto(order)
    paused = page.get_by_role("status").filter(has_text="Paused:")
    expect(paused).to_contain_text("too many runs failed one after the other")
    looks_right(alice, "failed")

    page.goto("/brief/")
    waits = page.get_by_role("region", name="Waits for you")
    expect(page.get_by_role("region", name="Failed")).to_contain_text(f"Cat, {which}")
    expect(page.get_by_role("region", name="Left out or paused")).to_contain_text(f"Cat, {which}")
    looks_right(alice, "brief")
    waits.get_by_role("link", name=f"Plants, {which}").click()
    alice.log.get_by_label("The fern").check()
    alice.log.get_by_role("button", name="Answer").click()
    expect(alice.log).to_contain_text("The fern has water.")
    alice.wait_for_status("idle")
    page.goto("/brief/")
    expect(page.get_by_role("region", name="Ran")).to_contain_text("The fern has water.")
    expect(waits.get_by_role("link", name=f"Plants, {which}")).to_have_count(0)
    looks_right(alice, "brief-after")
