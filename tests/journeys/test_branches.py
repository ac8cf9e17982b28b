"""A message said anew, an answer done anew, siblings by their arrows, back to a place, a link to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from playwright.sync_api import Locator, expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.people import Person
from tests.patience import until

SHOTS = os.environ.get("BRANCHES_SHOTS", "")
"""A folder for pictures, for whoever wants to look at them."""


def look(person: Person, name: str) -> None:
    for width in (1280, 390) if SHOTS else ():
        person.page.set_viewport_size({"width": width, "height": 900})
        person.page.screenshot(path=Path(SHOTS) / f"{name}-{width}.png")
    if SHOTS:
        person.page.set_viewport_size({"width": 1280, "height": 900})


def texts(person: Person) -> Locator:
    return person.page.locator("#log [data-kind=text] .prose")


def messages(person: Person) -> Locator:
    return person.page.locator("#log [data-kind=message]")


def drawn(person: Person) -> str:
    """The transcript without what a tab alone knows."""
    return str(person.page.locator("#log").inner_html())


def is_as_reloaded(person: Person) -> None:
    live = drawn(person)
    person.page.reload()
    expect(person.page.locator("#composer-text")).to_be_visible()
    assert drawn(person) == live


@in_form("dark", "light", "phone")
def test_a_dialogue_goes_other_ways_and_comes_back(visit: Visit, service, kind):
    name = "-".join(kind) or "light"
    service.expect(f"Which port? {name}", reply("Rotterdam."), reply("Antwerp."))
    service.expect(f"Which harbour? {name}", reply("**Hamburg**."))
    service.expect(f"And its size? {name}", reply("Large."))
    alice = visit(**kind)
    alice.begin(f"Which port? {name}")
    expect(texts(alice)).to_have_text(["Rotterdam."])
    message = messages(alice).first

    # Once more, by keyboard.
    again = alice.page.get_by_role("button", name="Answer once more").first
    again.focus()
    alice.page.keyboard.press("Enter")
    expect(texts(alice)).to_have_text(["Antwerp."])
    answers = alice.page.get_by_role("group", name="Answers to this message")
    expect(answers).to_contain_text("2 / 2")
    is_as_reloaded(alice)
    assert alice.audit() == ""
    answers.get_by_role("button", name="Previous").focus()
    alice.page.keyboard.press("Enter")
    expect(texts(alice)).to_have_text(["Rotterdam."])
    expect(answers).to_contain_text("1 / 2")
    expect(answers.get_by_role("button", name="Next")).to_be_focused()
    is_as_reloaded(alice)

    # In other words.
    message.get_by_role("button", name="Edit and send again").click()
    box = message.locator("textarea")
    expect(box).to_be_focused()
    box.fill(f"Which harbour? {name}")
    message.get_by_role("button", name="Send").click()
    expect(texts(alice)).to_have_text(["Hamburg."])
    expect(messages(alice)).to_have_count(1)
    versions = alice.page.get_by_role("group", name="Versions of this message")
    expect(versions).to_contain_text("2 / 2")
    expect(alice.page.locator("#composer-text")).to_have_value("")
    is_as_reloaded(alice)

    # Quoted.
    alice.page.get_by_role("button", name="Quote").first.click()
    expect(alice.page.locator("#composer-text")).to_have_value("> **Hamburg**.\n\n")
    alice.page.locator("#composer-text").fill(f"And its size? {name}")
    alice.page.locator("#composer-text").press("Control+Enter")
    expect(texts(alice)).to_have_text(["Hamburg.", "Large."])

    # Back to the end of the first turn; the arrows lead to what was left.
    first = alice.page.locator("#log [data-kind=text]").first
    first.get_by_role("link", name="More").click()
    dialog = alice.page.locator("#dialog")
    expect(dialog.get_by_role("heading", name="This answer")).to_be_visible()
    assert alice.audit() == ""
    link = dialog.get_by_label("Link to it").input_value()
    dialog.get_by_role("button", name="Go back to here").click()
    expect(texts(alice)).to_have_text(["Hamburg."])
    parted = alice.page.get_by_role("group", name="Branches that go on from here")
    expect(parted).to_contain_text("2 / 2")
    parted.get_by_role("button", name="Previous").click()
    expect(texts(alice)).to_have_text(["Hamburg.", "Large."])
    is_as_reloaded(alice)

    # The link opens at the answer.
    alice.page.goto(link)
    unit = alice.page.locator(f"#{link.rpartition('#')[2]}")
    expect(unit).to_be_in_viewport()
    expect(unit).to_contain_text("Hamburg.")
    expect(alice.page).to_have_url(re.compile("at="))
    for button in alice.page.locator(".unit-foot .button").all():
        size = button.bounding_box()
        if kind.get("phone") and size is not None:
            assert min(size["width"], size["height"]) >= 44, button.inner_text()

    # The same choices without the dialog.
    alice.page.goto(f"/events/{link.rpartition('#u-')[2]}/")
    expect(alice.page.get_by_role("heading", name="This answer")).to_be_visible()
    assert alice.audit() == ""


def test_files_go_back_with_the_dialogue_and_along_with_a_fork(visit: Visit, service):
    service.expect(
        "Write a plan.",
        reply(call("write_file", path="plan.md", content="first\n")),
        reply("Written."),
    )
    service.expect(
        "Write it anew.",
        reply(call("write_file", path="plan.md", content="second\n")),
        reply("Anew."),
    )
    alice = visit()
    alice.begin("Write a plan.")
    expect(texts(alice)).to_have_text(["Written."])
    alice.send("Write it anew.")
    expect(texts(alice)).to_have_text(["Written.", "Anew."])
    place = alice.page.url
    dialog = alice.page.locator("#dialog")

    def holds(text: str) -> None:
        def shown() -> bool:
            alice.page.goto(f"{place}files/view/?path=plan.md")
            return text in alice.page.locator("main").inner_text()

        until(shown)  # files follow right after what tells of it
        alice.page.goto(place)

    # Back to the end of the first turn, and its file with it.
    alice.page.locator("#log [data-kind=text]").first.get_by_role("link", name="More").click()
    expect(dialog.get_by_label("Leave the files as they are now")).to_have_count(2)
    look(alice, "dialog")
    assert alice.audit() == ""
    dialog.get_by_role("button", name="Go back to here").click()
    expect(texts(alice)).to_have_text(["Written."])
    expect(alice.page.locator("#log")).to_contain_text("Files brought back")
    is_as_reloaded(alice)
    holds("first")

    # And on again; then one file is put back by itself.
    parted = alice.page.get_by_role("group", name="Branches that go on from here")
    parted.get_by_role("button", name="Previous").click()
    expect(texts(alice)).to_have_text(["Written.", "Anew."])
    expect(alice.page.locator("#log")).to_contain_text("Files brought back")
    holds("second")
    alice.page.goto(f"{place}changes/file/?path=plan.md")
    look(alice, "change")
    alice.page.get_by_role("link", name="Put back to before this").last.click()
    assert alice.audit() == ""
    alice.page.get_by_role("button", name="Put back").click()
    expect(alice.page.locator("#log")).to_contain_text("plan.md was put back")
    holds("first")

    # A fork begins with the dialogue and the files of its place.
    alice.page.locator("#log [data-kind=text]").last.get_by_role("link", name="More").click()
    dialog.get_by_role("button", name="Fork from here").click()
    expect(alice.page.locator("#log")).to_contain_text("1 file came along")
    assert alice.page.url != place
    look(alice, "fork")
    place = alice.page.url
    holds("second")
