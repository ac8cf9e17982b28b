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


ENDS = """(element) => {
  const place = (from) => {
    const range = document.createRange();
    const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
    range.setStart(text, from);
    range.setEnd(text, from + 1);
    return range.getBoundingClientRect().left;
  };
  return [place(0), place(element.textContent.trim().length - 1)];
}"""
"""How far from the left the first and the last sign of an element's words stand."""


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
    # What somebody wrote in another script reads as in that script: its question mark does not come first.
    service.expect("Which quay?", reply("The northern one."))
    page.goto("/new/")
    page.locator("#id_message").fill("Which quay?")
    page.locator("form:has(#id_message) button.primary[type=submit]").click()
    page.wait_for_url("**/c/sesn_*/")
    person.wait_for_status("idle")
    # In one go: the list beside the page is drawn anew when the answer has ended.
    titles = page.locator("[data-conversation-title]").evaluate_all(
        f"(titles) => titles.map({ENDS})"
    )
    assert titles
    for first, last in titles:
        assert first < last
    page.goto("/schedules/")
    # It stands where the words of the page begin, all the same.
    beside = page.locator(".recent .truncate", has_text="Which quay?").first
    expect(beside).to_have_css("text-align", "right")
    page.goto("/")
    first, last = page.locator(".row-link").first.evaluate(ENDS)
    assert first < last
    assert not found, "\n".join(found)
