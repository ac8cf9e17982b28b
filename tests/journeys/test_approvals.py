"""Staff and reviewers decide from the queue while the owner watches; nothing runs before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form, turns
from tests.journeys.model_service import ModelService
from tests.journeys.people import PASSWORD, Person
from tests.journeys.site import Site


@pytest.fixture(scope="module")
def reviewer_state(
    chromium: Browser, site: Site, signed_in: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The cookies of rita, whom alice invited as a reviewer of her organisation."""
    alice = Person(chromium, site, state=signed_in)
    link = invite(alice, "rita@example.org")
    rita = Person(chromium, site)
    join(rita, link, "rita")
    state = tmp_path_factory.mktemp("rita") / "cookies.json"
    rita.context.storage_state(path=state)
    assert alice.leave() == rita.leave() == []
    return state


def invite(alice: Person, email: str) -> str:
    page = alice.page
    page.goto("/organisation/")
    page.locator("input[name=email]").fill(email)
    form = page.locator("form", has=page.locator("input[name=email]"))
    form.locator("select[name=role]").select_option("reviewer")
    page.get_by_role("button", name="Invite").click()
    return page.locator("#invitation-link").input_value()


def join(person: Person, link: str, name: str) -> None:
    page = person.page
    page.goto(link)
    if page.get_by_role("link", name=re.compile("account", re.I)).count():
        page.get_by_role("link", name=re.compile("account", re.I)).first.click()
    page.locator("input[name=username]").fill(name)
    for field in ("password1", "password2"):
        if page.locator(f"input[name={field}]").count():
            page.locator(f"input[name={field}]").fill(PASSWORD)
    page.locator("main button[type=submit]").last.click()
    page.wait_for_load_state("networkidle")
    if page.get_by_role("button", name=re.compile("accept|join", re.I)).count():
        page.get_by_role("button", name=re.compile("accept|join", re.I)).first.click()
        page.wait_for_load_state("networkidle")


@pytest.fixture
def rita(
    chromium: Browser, site: Site, reviewer_state: Path, request: pytest.FixtureRequest
) -> Iterator[Person]:
    person = Person(chromium, site, state=reviewer_state, turns=turns(request.node.nodeid))
    yield person
    assert person.leave() == []


def ask_for(alice: Person, service: ModelService, words: str, **arguments: str) -> str:
    service.expect(words, reply(call("write_file", **arguments)), reply("I have done it."))
    uid = alice.begin(words, switches=("approval",))
    expect(alice.page.locator("[data-approval]")).to_be_visible()
    return uid


def test_a_reviewer_allows_a_changed_call_from_the_queue_while_the_owner_watches(
    alice: Person, rita: Person, service: ModelService, site: Site
):
    uid = ask_for(alice, service, "Write it for review", path="note.txt", content="As asked\n")
    page = rita.page
    page.goto("/approvals/")
    card = page.locator(".approval-card", has_text="As asked")
    expect(card).to_be_visible()
    assert rita.audit() == ""
    card.get_by_role("link", name="Change it, or allow for longer").click()
    assert rita.audit() == ""
    page.get_by_text("Change the arguments first").click()
    page.locator("#argument-content").fill("As rita wants\n")
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page.get_by_text("The call is allowed.")).to_be_visible()
    expect(alice.log).to_contain_text("I have done it.")
    expect(alice.log).to_contain_text("Allowed by rita")
    expect(alice.log).to_contain_text("As rita wants")
    results = [event for event in site.events(uid) if event.type == "agent.tool_result"]
    assert len(results) == 1
    assert "changed" in str(results[0].payload).lower() or "edited" in str(results[0].payload)
    alice.page.goto(f"/c/{uid}/files/view/?path=note.txt")
    expect(alice.page.locator("body")).to_contain_text("As rita wants")
    # A page without a list beside it leads back all the same.
    page.get_by_role("link", name="All conversations").click()
    expect(page).to_have_url(f"{site.address}/")
    assert page.goto(f"/c/{uid}/").status == 404
    rita.expected.append("404")


def test_a_denial_from_the_queue_tells_the_agent_why(
    alice: Person, rita: Person, service: ModelService, site: Site
):
    uid = ask_for(alice, service, "Write what is denied", path="no.txt", content="Never\n")
    page = rita.page
    page.goto("/approvals/")
    card = page.locator(".approval-card", has_text="Never")
    card.locator("input[name=reason]").fill("Not in this project")
    card.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("The call is denied.")).to_be_visible()
    expect(card).to_have_attribute("data-state", "denied")
    assert rita.audit() == ""
    expect(alice.log).to_contain_text("Not in this project")
    expect(alice.log).to_contain_text("I have done it.")
    results = [event for event in site.events(uid) if event.type == "agent.tool_result"]
    assert [event.payload["outcome"] for event in results] == ["denied"]


def test_the_queue_follows_what_others_do_and_keeps_what_is_typed(
    alice: Person, rita: Person, service: ModelService
):
    page = rita.page
    ask_for(alice, service, "First of two", path="1.txt", content="first of two\n")
    page.goto("/approvals/")
    first = page.locator(".approval-card", has_text="first of two")
    first.locator("input[name=reason]").fill("half a reason")
    other = alice.new_tab()
    service.expect(
        "Second of two",
        reply(call("write_file", path="2.txt", content="second of two\n")),
        reply("Done."),
    )
    other.goto("/new/")
    other.locator("#id_message").fill("Second of two")
    other.locator("input[name=approval]").check()
    other.get_by_role("button", name="Start").click()
    second = page.locator(".approval-card", has_text="second of two")
    expect(second).to_be_visible(timeout=15_000)
    expect(first.locator("input[name=reason]")).to_have_value("half a reason")
    other.get_by_role("button", name="Deny").click()
    expect(second).to_have_attribute("data-state", "denied")
    expect(first.locator("input[name=reason]")).to_have_value("half a reason")
    alice.page.get_by_role("button", name="Deny").click()
    expect(first).to_have_attribute("data-state", "denied")


def test_two_people_must_agree_where_a_rule_says_so(
    alice: Person, rita: Person, service: ModelService, site: Site
):
    page = alice.page
    page.goto("/approvals/rules/")
    page.locator("#level").select_option("organisation")
    page.locator("#rule-organisation").select_option(label="Acme")
    page.locator("#permission").select_option("always_ask")
    page.locator("#rule-tool").fill("write_file")
    page.get_by_label("Two different people must agree").check()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("tbody")).to_contain_text("write_file")
    assert alice.audit() == ""
    try:
        uid = ask_for(alice, service, "Write with four eyes", path="4.txt", content="four eyes\n")
        alice.page.get_by_role("button", name="Allow", exact=True).click()
        expect(alice.log).to_contain_text("1 of 2 people")
        assert "span.tool_start" not in [event.type for event in site.events(uid)]
        rita.page.goto("/approvals/")
        card = rita.page.locator(".approval-card", has_text="four eyes")
        card.get_by_role("button", name="Allow once").click()
        expect(alice.log).to_contain_text("I have done it.")
    finally:
        alice.page.goto("/approvals/rules/")
        alice.page.get_by_role("button", name=re.compile("Revoke")).first.click()


@in_form("phone", "light", "dark")
def test_the_queue_is_accessible_and_fits(visit: Visit, service: ModelService, kind):
    alice = visit(**kind)
    ask_for(alice, service, "Look at the queue", path="look.txt", content="A line\nand another\n")
    for address in ("/approvals/", "/approvals/audit/", "/approvals/rules/"):
        alice.page.goto(address)
        assert alice.audit() == ""
        assert not alice.page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        ), address
    alice.page.goto("/approvals/")
    card = alice.page.locator(".approval-card", has_text="and another").first
    card.get_by_role("link", name="Change it").click()
    alice.page.get_by_text("Change the arguments first").click()
    assert alice.audit() == ""
    assert not alice.page.evaluate(
        "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    alice.page.get_by_role("button", name="Deny").click()
