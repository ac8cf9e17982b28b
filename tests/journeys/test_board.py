"""The task board under a pointer, under the keys and on a phone; what one window changes the other shows."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.journeys.conftest import Visit
from tests.journeys.people import Person
from tests.journeys.test_every_page import overflows

SUBJECT = "Write the chapter about how the harbour was built"


def make(page: Page, subject: str, *, waits_for: str = "") -> None:
    page.get_by_text("New task").click()
    page.locator("#id_subject").fill(subject)
    page.locator("#id_blocked_by").fill(waits_for)
    page.get_by_role("button", name="Make").click()
    expect(page.locator("#board")).to_contain_text(subject)


def column(page: Page, status: str):
    return page.locator(f'#board [data-status="{status}"]')


def look(person: Person, name: str) -> None:
    assert person.audit() == ""
    assert person.audit_by_night() == ""
    assert not overflows(person.page)
    if folder := os.environ.get("SCREENSHOTS"):
        person.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_tasks_are_made_moved_by_keys_and_pointer_and_followed_elsewhere(visit: Visit) -> None:
    alice, other = visit(), visit(phone=True)
    page = alice.page
    page.goto("/tasks/")
    make(page, SUBJECT)
    make(page, "Print it", waits_for="#1")
    other.page.goto("/tasks/")
    look(alice, "board")
    look(other, "board-phone")

    card = page.locator("[data-task]", has_text=SUBJECT)
    card.focus()
    page.keyboard.press("ArrowRight")
    expect(column(page, "in_progress")).to_contain_text(SUBJECT)
    expect(card).to_be_focused()
    expect(column(other.page, "in_progress")).to_contain_text(SUBJECT)

    # A browser complains by itself of an answer that is a refusal.
    alice.expected += ["409", "htmx"]
    # What waits is not moved, and why stands there.
    page.locator("[data-task]", has_text="Print it").drag_to(column(page, "completed"))
    expect(page.locator("#notices")).to_contain_text("waits for #1")
    expect(column(page, "pending")).to_contain_text("Print it")

    card.drag_to(column(page, "completed"))
    expect(column(page, "completed")).to_contain_text(SUBJECT)
    expect(column(page, "pending")).not_to_contain_text("waits for")

    # Without pointer and keys: the list in the card, as on a phone.
    waiting = other.page.locator("[data-task]", has_text="Print it")
    expect(waiting).not_to_contain_text("waits for")
    waiting.get_by_label("Column of #2").select_option("cancelled")
    waiting.get_by_role("button", name="Move").tap()
    expect(column(other.page, "cancelled")).to_contain_text("Print it")

    page.get_by_role("link", name=SUBJECT).click()
    look(alice, "task")
    page.get_by_role("link", name="Delete").click()
    look(alice, "task-delete")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#board")).not_to_contain_text(SUBJECT)
