"""A person finds a conversation by what was said in it, and keeps order among many."""

from __future__ import annotations

import re

from playwright.sync_api import FilePayload, Locator, expect

from providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.people import Person
from tests.journeys.test_every_page import overflows


def row(person: Person, title: str) -> Locator:
    return person.page.locator(".row").filter(has_text=title)


def unread(person: Person) -> int:
    """What the title of the open list says; other journeys may have left some."""
    said = re.match(r"\((\d+)\) ", person.page.title())
    return int(said[1]) if said else 0


def tick(person: Person, title: str) -> None:
    box = row(person, title).locator("input[name=chosen]")
    if person.phone:
        box.tap()
    else:
        # By keyboard alone: the row's link has the focus, X chooses it.
        row(person, title).locator(".row-link").focus()
        person.page.keyboard.press("x")
    expect(box).to_be_checked()


def is_fine(person: Person) -> None:
    assert person.audit() == ""
    assert not overflows(person.page)


@in_form("light", "phone")
def test_a_conversation_is_found_at_its_place_and_many_are_kept_in_order(
    visit: Visit, service, kind
):
    name = "-".join(kind) or "desktop"
    first, second, third = (f"{word} {name}" for word in ("Berths", "Cranes", "Ferries"))
    for title in (first, second, third):
        service.expect(f"Tell of {title}", reply(f"All about {title}: the old quay of it."))
    alice = visit(**kind)
    page = alice.page
    for title in (first, second, third):
        alice.begin(f"Tell of {title}")
        alice.wait_for_status("idle")

    # Words in quotes lead to the place; a filter that cannot be says so and is not lost.
    page.goto("/")
    page.locator("#q").fill(f'"about {first}" after:2020-01-01')
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row mark").first).to_have_text(f"about {first}")
    is_fine(alice)
    page.locator(".row-link").click()
    page.wait_for_url(re.compile(r"\?at=.*#u-"))
    expect(alice.log).to_contain_text(f"All about {first}")
    page.goto("/")
    alice.expected.append("422")
    page.locator("#q").fill("quay before:someday")
    expect(page.locator("#results [role=alert]")).to_contain_text("is not a day")
    expect(page.locator("#q")).to_have_value("quay before:someday")
    is_fine(alice)

    # An answer that comes while nobody looks is unread until somebody does.
    page.goto("/")
    expect(row(alice, second).locator("[data-unread]")).to_have_count(0)
    before = unread(alice)
    service.expect(f"More of {second}", reply("They are tall."))
    away = alice.new_tab()
    away.add_init_script("Object.defineProperty(document, 'hidden', { get: () => true })")
    away.goto(row(alice, second).locator(".row-link").evaluate("link => link.href"))
    alice.send(f"More of {second}", away)
    expect(away.locator("#log")).to_contain_text("They are tall.")
    alice.wait_for_status("idle", away)
    away.close()
    page.goto("/")
    expect(row(alice, second).locator("[data-unread]")).to_have_text("Unread:")
    assert unread(alice) == before + 1
    is_fine(alice)
    page.goto(row(alice, second).locator(".row-link").evaluate("link => link.href"))
    alice.wait_for_status("idle")
    page.goto("/")
    expect(row(alice, second).locator("[data-unread]")).to_have_count(0)
    assert unread(alice) == before

    # Pinned and tagged from the row's menu.
    page.goto("/")
    row(alice, third).locator("summary").click()
    row(alice, third).get_by_role("button", name="Pin").click()
    expect(row(alice, third).locator(".pinned")).to_have_count(1)  # the list was drawn anew
    expect(page.locator(".row").first).to_contain_text(third)
    row(alice, first).locator("summary").click()
    row(alice, first).get_by_role("link", name="Tags").click()
    page.locator("#dialog #id_tags").fill(f"harbour {name}, spring")
    is_fine(alice)
    page.locator("#dialog").get_by_role("button", name="Save").click()
    expect(row(alice, first).locator(".tag").first).to_have_text(f"harbour {name}")

    # Several at once: tagged, then put away, then gone.
    tick(alice, first)
    tick(alice, second)
    bar = page.locator("#selected")
    expect(bar).to_contain_text("2 chosen")
    is_fine(alice)
    bar.get_by_role("textbox", name="Tag").fill(f"both {name}")
    bar.get_by_role("button", name="Tag", exact=True).click()
    expect(page.locator(".messages")).to_contain_text("2 tagged.")
    page.locator("nav.tags").get_by_role("link", name=f"both {name}").click()
    expect(page.locator(".row")).to_have_count(2)
    tick(alice, second)
    page.locator("#selected").get_by_role("button", name="Archive").click()
    expect(page.locator(".row")).to_have_count(1)
    page.goto(f'/?q=is:archived tag:"both {name}"')
    tick(alice, second)
    page.locator("#selected").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete 1 conversation?")
    is_fine(alice)
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".messages")).to_contain_text("1 deleted.")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()


@in_form("phone", "light")
def test_a_folder_tells_what_begins_in_it(visit: Visit, service, kind):
    name = "-".join(kind) or "desktop"
    service.expect(f"What is due, {name}?", reply("Nothing this month."))
    alice = visit(**kind)
    page = alice.page
    page.goto("/folders/")
    page.locator("#id_name").fill(f"Tax {name}")
    page.locator("#id_instructions").fill("Round to whole euros.")
    is_fine(alice)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Tax {name}")
    rates: FilePayload = {"name": "rates.txt", "mimeType": "text/plain", "buffer": b"19%"}
    page.locator("#folder-file").set_input_files(rates)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".messages")).to_contain_text("get a copy")
    is_fine(alice)

    # It begins there, is told what the folder says, and lies in it.
    page.locator("#id_message").fill(f"What is due, {name}?")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/sesn_"))
    alice.wait_for_status("idle")
    expect(alice.log).to_contain_text(f"Begun in the folder “Tax {name}”")
    expect(alice.log).to_contain_text("Nothing this month.")
    expect(alice.log).to_contain_text("Round to whole euros.")
    is_fine(alice)
    page.goto(f'/?q=in:"tax {name}"')
    expect(page.locator(".row")).to_have_count(1)

    # Out of it by the row's menu, and back with several; what it was told stays.
    page.locator(".row summary").click()
    page.locator(".row").get_by_role("link", name="Move").click()
    page.locator("#dialog select").select_option("")
    is_fine(alice)
    page.locator("#dialog").get_by_role("button", name="Move").click()
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    page.goto("/")
    tick(alice, f"What is due, {name}?")
    page.locator("#selected select").select_option(label=f"Tax {name}")
    page.locator("#selected").get_by_role("button", name="Move").click()
    expect(page.locator(".messages")).to_contain_text("1 moved.")

    page.goto("/folders/")
    page.locator(".rows").get_by_role("link", name=f"Tax {name}").click()
    page.get_by_role("link", name="Change").click()
    page.locator("#id_instructions").fill("Round to cents.")
    is_fine(alice)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".folder-text")).to_have_text("Round to cents.")
    page.get_by_role("link", name="Delete").click()
    is_fine(alice)
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".messages")).to_contain_text("Its conversations are in your list.")
    page.goto("/")
    expect(row(alice, f"What is due, {name}?")).to_have_count(1)
