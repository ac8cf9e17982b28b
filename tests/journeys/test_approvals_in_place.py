"""Several calls of one step are decided where they stand, by keys, by one act, or by a message."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from providers.scripted import call, reply
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person
from tests.journeys.site import Site


def ask_for(alice: Person, service: ModelService, words: str, number: int) -> str:
    calls = [
        call("write_file", path=f"{place}.txt", content="A line\n" * 12) for place in range(number)
    ]
    service.expect(words, reply(*calls), reply("I have done it."))
    uid = alice.begin(words, switches=("approval",))
    expect(cards(alice)).to_have_count(number)
    return uid


def cards(alice: Person) -> Locator:
    return alice.log.locator("[data-approval]")


def outcomes(site: Site, uid: str) -> list[str]:
    events = site.events(uid)
    return [one.payload["outcome"] for one in events if one.type == "agent.tool_result"]


def test_keys_decide_in_the_card_that_has_the_focus_and_the_place_is_kept(
    alice: Person, service: ModelService, site: Site
):
    uid = ask_for(alice, service, "Write three files", 3)
    page = alice.page
    bar = page.locator("#panel-waiting")
    expect(bar).to_contain_text("1 of 3 waits for you")
    assert alice.audit() == ""
    page.locator("#composer textarea").fill("a r")
    page.locator("#composer textarea").press("a")
    bar.get_by_role("button", name="1 of 3").click()
    expect(cards(alice).nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#composer textarea")).to_be_focused()
    assert alice.page.locator("#panel-status [data-status=waiting]").count() == 1
    bar.get_by_role("button", name="1 of 3").click()
    page.keyboard.press("a")
    expect(bar).to_contain_text("1 of 2 waits for you")
    # The bar may come a frame before the card that it no longer counts.
    expect(cards(alice)).to_have_count(2)
    expect(cards(alice).first).to_be_focused()
    expect(cards(alice).first).to_be_in_viewport(timeout=8_000)
    page.keyboard.press("r")
    page.keyboard.type("Not this one")
    page.keyboard.press("Enter")
    expect(bar).to_contain_text("1 call waits for you")
    expect(cards(alice)).to_have_count(1)
    expect(cards(alice).first).to_be_focused()
    page.keyboard.press("a")
    expect(alice.log).to_contain_text("I have done it.")
    expect(bar).to_be_hidden()
    assert outcomes(site, uid) == ["ok", "denied", "ok"]
    # Folded up, the steps still tell that one was not allowed.
    expect(alice.log.locator("details.group > summary")).to_contain_text("1 not allowed")


def test_a_pattern_granted_on_the_card_answers_the_next_call_of_its_kind(
    alice: Person, service: ModelService, site: Site
):
    service.expect(
        "Read twice",
        reply(call("bash", command="ls src")),
        reply(call("bash", command="ls docs")),
        reply("I have done it."),
    )
    uid = alice.begin("Read twice", switches=("approval",))
    expect(cards(alice)).to_have_count(1)
    page = alice.page
    page.locator("#panel-waiting").get_by_role("button", name="waits for you").click()
    page.keyboard.press("e")
    card = cards(alice).first
    expect(card.get_by_label("Commands that begin with").last).to_have_value("ls")
    expect(card.locator("textarea").first).to_be_focused()
    assert alice.audit() == ""
    card.get_by_label("This conversation").check()
    card.get_by_role("button", name="Allow like this").click()
    expect(alice.log).to_contain_text("I have done it.")
    events = site.events(uid)
    assert [one.type for one in events].count("user.tool_confirmation") == 1
    assert [one.type for one in events].count("agent.tool_result") == 2
    page.goto("/approvals/rules/")
    expect(page.locator("tbody")).to_contain_text("commands that begin with “ls”")


def test_all_are_allowed_by_one_act_once_all_were_seen(
    alice: Person, service: ModelService, site: Site
):
    uid = ask_for(alice, service, "Write five files", 5)
    page = alice.page
    alice.log.locator("details.group > summary").click()
    expect(cards(alice).first).to_be_hidden()
    page.get_by_role("button", name="Allow all 5").click()
    expect(page.locator("#alert")).to_contain_text("Look at them")
    expect(cards(alice).first).to_be_visible()
    assert outcomes(site, uid) == []
    page.get_by_role("button", name="Allow all 5").click()
    expect(alice.log).to_contain_text("I have done it.")
    assert outcomes(site, uid) == ["ok"] * 5


def test_a_message_denies_what_waits_before_it_is_sent_and_after(
    alice: Person, service: ModelService, site: Site
):
    uid = ask_for(alice, service, "Write what is not wanted", 2)
    page = alice.page
    deny = page.get_by_role("button", name="Deny all 2 with this message")
    expect(deny).to_be_hidden()
    page.locator("#composer textarea").fill("Into docs, please")
    deny.click()
    expect(alice.log).to_contain_text("I have done it.")
    expect(page.locator("#composer textarea")).to_have_value("")
    assert outcomes(site, uid) == ["denied"] * 2
    expect(alice.log).to_contain_text("Into docs, please")

    service.expect("Once more", reply(call("write_file", path="x", content="x")), reply("Well."))
    alice.send("Once more")
    expect(cards(alice)).to_have_count(1)
    alice.send("Rather not")
    page.locator("#queue").get_by_role("button", name="Deny with this message").click()
    expect(alice.log).to_contain_text("Well.")
    expect(page.locator("#queue")).to_be_hidden()
    assert outcomes(site, uid) == ["denied"] * 3


WITHOUT_ASKING_AGAIN = """() => {
    const badge = document.getElementById("approvals-badge");
    badge.outerHTML = badge.outerHTML.replace("every 10s, ", "");
    htmx.process(document.getElementById("approvals-badge"));
}"""


def test_an_answer_is_counted_at_once_in_the_header_the_title_and_every_open_tab(
    alice: Person, service: ModelService
):
    ask_for(alice, service, "Write three more files", 3)
    page, other = alice.page, alice.new_tab()
    other.goto("/settings/")
    counted = other.locator("#approvals-badge .count")
    waiting = int(counted.inner_text())
    for tab in (page, other):
        expect(tab.locator("#approvals-badge .count")).to_have_text(str(waiting))
        tab.evaluate(WITHOUT_ASKING_AGAIN)
    expect(page).to_have_title(re.compile(r"^\(3\) waits for you"))
    cards(alice).first.get_by_role("button", name="Allow", exact=True).click()
    for tab in (page, other):
        expect(tab.locator("#approvals-badge .count")).to_have_text(str(waiting - 1))
    expect(page).to_have_title(re.compile(r"^\(2\) waits for you"))

    # Answered in the queue, where a whole page is the answer, it is counted in the conversation as well.
    for tab in (page, other):
        tab.evaluate(WITHOUT_ASKING_AGAIN)
    other.goto("/approvals/mine/")
    card = other.locator(".approval-card", has_text="2.txt")
    card.get_by_role("button", name="Deny").click()
    expect(page.locator("#approvals-badge .count")).to_have_text(str(waiting - 2))
    expect(page).to_have_title(re.compile(r"^\(1\) waits for you"))
    cards(alice).first.get_by_role("button", name="Allow", exact=True).click()
    expect(alice.log).to_contain_text("I have done it.")
    expect(page).not_to_have_title(re.compile("waits for you"))
