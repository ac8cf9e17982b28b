"""Whoever chose another language reads it everywhere, live as after a reload, from right to left if so."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.test_every_page import overflows

PAGES = ("/", "/new/", "/agents/", "/schedules/", "/approvals/", "/usage/", "/settings/")
"""Of each kind one: what else there is has the same parts."""


@pytest.fixture
def speaking(visit: Visit):
    """Opens windows of alice's, who speaks English again afterwards."""
    people = []

    def open_window(language: str, **kind: bool):
        person = visit(**kind)
        people.append(person)
        choose(person, language)
        return person

    yield open_window
    choose(people[-1], "")


def choose(person, language: str) -> None:
    person.page.goto("/settings/")
    person.page.locator("#language").select_option(language)
    person.page.locator("form:has(#language) button").click()
    person.page.wait_for_load_state()


def test_a_conversation_is_drawn_in_german_live_as_after_a_reload(speaking, service):
    service.expect(
        "Schreib eine Datei",
        reply(call("write_file", path="datei.py", content="x = 1\n")),
        reply("Fertig."),
    )
    person = speaking("de")
    page = person.page
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.goto("/new/")
    page.locator("#id_message").fill("Schreib eine Datei")
    page.get_by_role("button", name="Starten").click()
    page.wait_for_url("**/c/sesn_*/")
    person.wait_for_status("idle")
    expect(person.log).to_contain_text("Fertig.")
    live = person.screen()
    page.reload()
    expect(person.log).to_contain_text("Fertig.")
    person.looks_like(live)


@pytest.mark.parametrize("kind", [{}, {"phone": True}], ids=["desk", "phone"])
def test_pages_are_drawn_from_right_to_left(speaking, service, kind):
    service.expect("اكتب جملة", reply("تم.\n\n```python\nx = 1\n```\n"))
    person = speaking("ar", **kind)
    page = person.page
    found = []
    for address in PAGES:
        page.goto(address)
        expect(page.locator("html")).to_have_attribute("dir", "rtl")
        if report := person.audit():
            found.append(f"{address}\n{report}")
        if overflows(page):
            found.append(f"{address}: wider than the window")
    page.goto("/new/")
    page.locator("#id_message").fill("اكتب جملة")
    page.locator("form:has(#id_message) button.primary[type=submit]").click()
    page.wait_for_url("**/c/sesn_*/")
    person.wait_for_status("idle")
    expect(person.log.locator("figure pre")).to_have_css("direction", "ltr")
    if report := person.audit():
        found.append(report)
    assert not overflows(page)
    assert not found, "\n".join(found)
