"""Alice shares a conversation: bob reads along, writes, is shown out; a link shows what was said."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.journeys.test_approvals import invite, join
from tests.journeys.test_every_page import overflows


def is_fine(person: Person) -> None:
    assert person.audit() == ""
    assert not overflows(person.page)


def share(alice: Person, role: str) -> None:
    alice.page.locator(".conversation-head").get_by_role("link", name=re.compile("^Share")).click()
    dialog = alice.page.locator("#dialog")
    dialog.get_by_label("With whom").select_option(label="bob")
    dialog.get_by_label("What they may do").select_option(role)
    is_fine(alice)
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(alice.page.locator(".conversation-head")).to_contain_text("Shared")


def unshare(alice: Person) -> None:
    alice.page.locator(".conversation-head").get_by_role("link", name=re.compile("Shared")).click()
    alice.page.locator("#dialog").get_by_role("button", name="Stop sharing with bob").click()
    expect(alice.page.locator(".conversation-head")).not_to_contain_text("Shared")


@on_screen(phone=False)
def test_bob_reads_along_writes_and_is_shown_out_at_once(
    chromium: Browser, site: Site, visit: Visit, service, phone: bool
):
    name = "phone" if phone else "desktop"
    alice = visit()
    bob = Person(chromium, site, phone=phone, turns=alice.turns)
    if phone:
        bob.page.goto("/accounts/login/")
        bob.page.locator("input[name=login]").fill("bob")
        bob.page.locator("input[name=password]").fill("correct horse battery staple")
        bob.page.get_by_role("button", name=re.compile("Sign in")).click()
        bob.page.wait_for_url(f"{site.address}/")
    else:
        join(bob, invite(alice, "bob@example.org"), "bob")
    for words in ("Berths", "Quays", "Bob asks"):
        service.expect(f"{words} {name}", reply(f"All about {words} {name}."))
    uid = alice.begin(f"Berths {name}")
    alice.wait_for_status("idle")

    share(alice, "viewer")
    bob.page.goto("/?shared=1")
    found = bob.page.locator(".row").filter(has_text=f"Berths {name}")
    expect(found).to_contain_text("of alice")
    is_fine(bob)
    found.locator(".row-link").click()
    bob.page.wait_for_url(re.compile(r"/c/sesn_"))
    expect(bob.page.locator(".conversation-head")).to_contain_text("alice shares this")
    expect(bob.page.locator("#composer")).to_be_hidden()
    status = bob.page.locator(".conversation-head .status")
    assert status.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    # As the strips of a team, of timers and of subagents have them.
    for person, shown in ((alice, True), (bob, False)):
        for panel in ("team", "timers", "subagents"):
            button = '<button class="button" hx-post="/stop/">Stop</button>'
            place = person.page.locator(f"#panel-{panel}")
            place.evaluate("(place, button) => { place.innerHTML = button; }", button)
            expect(place.get_by_text("Stop")).to_be_visible(visible=shown)
            place.evaluate("(place) => { place.innerHTML = ''; }")
    alice.send(f"Quays {name}")
    expect(bob.log).to_contain_text(f"All about Quays {name}.")
    is_fine(bob)
    bob.page.get_by_role("button", name="Continue in a copy of your own").click()
    bob.page.wait_for_url(lambda address: uid not in address)
    expect(bob.log).to_contain_text(f"All about Quays {name}.")
    expect(bob.page.locator("#composer")).to_be_visible()
    bob.page.goto(f"/c/{uid}/")
    expect(bob.log).to_contain_text(f"All about Quays {name}.")

    unshare(alice)
    expect(bob.page.locator("#connection")).to_contain_text("no longer shared with you")
    bob.expected.append("404")
    bob.page.reload()
    expect(bob.page.locator("main")).not_to_contain_text("Berths")

    share(alice, "writer")
    bob.page.goto(f"/c/{uid}/")
    bob.send(f"Bob asks {name}")
    expect(alice.log).to_contain_text(f"All about Bob asks {name}.")
    expect(alice.log).to_contain_text("bob wrote")

    alice.page.goto(f"/c/{uid}/link/")
    alice.page.get_by_label("Everybody who has it").check()
    alice.page.get_by_role("button", name="Make the link").click()
    address = alice.page.locator("#link-address").input_value()
    is_fine(alice)
    stranger = visit(anonymous=True, phone=phone)
    stranger.page.goto(address)
    expect(stranger.page.locator("main")).to_contain_text(f"All about Berths {name}.")
    is_fine(stranger)
    alice.page.goto("/settings/links/")
    is_fine(alice)
    alice.page.get_by_role("button", name="Revoke").first.click()
    expect(alice.page.locator("main")).to_contain_text("opens for nobody any more")
    stranger.expected.append("404")
    stranger.page.reload()
    expect(stranger.page.locator("main")).to_contain_text("nothing any more")
    alice.page.goto(f"/c/{uid}/")
    unshare(alice)
    assert bob.leave() == []
