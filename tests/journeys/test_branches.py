"""A message said anew, an answer done anew, siblings by their arrows, back to a place, a link to it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from harness.providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.people import Person


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


@pytest.mark.parametrize(
    "kind", [{}, {"dark": True}, {"phone": True}], ids=["light", "dark", "phone"]
)
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
