"""What somebody typed stays hers: it is not lost to a rule, and not left to the next person."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.people import PASSWORD, Person

KEPT = "Object.keys({...localStorage, ...sessionStorage}).filter(n => n.startsWith('agentsite:'))"


def test_a_text_that_is_too_long_stays_in_its_box_and_says_why(alice: Person):
    alice.begin()
    box = alice.page.locator("#composer textarea")
    long = "x" * 600_000
    box.fill(long)
    box.press("Enter")
    expect(alice.page.locator("#alert")).to_contain_text("600000 characters; at most 100000")
    expect(box).to_have_value(long)
    expect(alice.page.locator("#pending li")).to_have_count(0)


def test_a_text_whose_frame_is_too_large_to_read_comes_back(alice: Person):
    """Few characters, many bytes: only the server can tell, and not whose key it was."""
    alice.begin()
    box = alice.page.locator("#composer textarea")
    heavy = "a" + "\x01" * 99_000
    box.evaluate("(box, text) => { box.value = text; }", heavy)
    box.press("Enter")
    expect(alice.page.locator("#alert")).to_contain_text("bytes")
    expect(box).to_have_value(heavy)
    expect(alice.page.locator("#pending li")).to_have_count(0)


def test_a_question_of_the_agent_can_be_stopped(alice: Person, service):
    service.expect("Ask me first", reply(call("write_file", path="a.txt", content="a")))
    alice.begin("Ask me first", switches=("approval",))
    alice.wait_for_status("waiting")
    expect(alice.page.locator('#composer [data-action="stop"]')).to_be_visible()
    alice.page.locator("#composer textarea").focus()
    alice.page.keyboard.press("Escape")
    alice.wait_for_status("stopped")
    expect(alice.page.locator('#composer [data-action="stop"]')).to_be_hidden()


def test_drafts_end_with_the_session_and_are_nobody_elses(visit: Visit):
    alice = visit(anonymous=True)
    sign_in(alice)
    alice.begin()
    page = alice.page
    page.evaluate("localStorage.setItem('agentsite:usr_other:sesn_1:draft', '\"theirs\"')")
    page.evaluate("localStorage.setItem('agentsite:shortcuts', 'false')")
    page.locator("#composer textarea").fill("Half a thought")
    page.reload()
    expect(page.locator("#composer textarea")).to_have_value("Half a thought")
    kept = page.evaluate(KEPT)
    assert "agentsite:usr_other:sesn_1:draft" not in kept
    assert any(name.endswith(":draft") for name in kept)

    page.locator("summary", has_text="Menu of").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(re.compile("/accounts/login/"))
    assert page.evaluate(KEPT) == ["agentsite:shortcuts"]


def test_who_signed_out_in_another_tab_is_told_to_sign_in_again(visit: Visit):
    alice = visit(anonymous=True)
    sign_in(alice)
    alice.begin()
    other = alice.new_tab()
    other.goto("/accounts/logout/")
    other.locator("#main").get_by_role("button", name="Sign Out").click()
    other.wait_for_url(re.compile("/accounts/login/"))
    alice.send("Still here?")
    expect(alice.page.locator("#connection")).to_contain_text("Sign in again")
    expect(alice.page.locator("#composer textarea")).to_have_value("Still here?")


def sign_in(person: Person) -> None:
    page = person.page
    page.goto("/accounts/login/")
    page.locator("input[name=login]").fill("alice")
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("#main button[type=submit]").first.click()
    page.wait_for_url(f"{person.site.address}/")
