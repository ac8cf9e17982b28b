"""The server dies in mid-answer, or while a team rests, and comes back: nothing that was said, asked or done
is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from harness.providers.scripted import Hold, call, reply, say
from tests.journeys.conftest import Visit, set_up
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.journeys.test_every_page import overflows
from tests.patience import until

FILES = ("one", "two", "three")


@pytest.fixture(scope="module")
def mortal(service: ModelService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of this file's own, which it may kill."""
    settings = {
        "ANTHROPIC_API_KEY": "key-of-the-journeys",
        "ANTHROPIC_BASE_URL": service.base_url,
        "AGENTSITE_SWEEP_SECONDS": "1",
        "AGENTSITE_TEAM_SECONDS": "1",
        "AGENTSITE_LEASE_SECONDS": "10",
    }
    with Site(tmp_path_factory.mktemp("mortal"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def cookies(chromium: Browser, mortal: Site) -> list[dict[str, object]]:
    """Of alice, who set the site up."""
    person = Person(chromium, mortal)
    set_up(person)
    kept = person.context.cookies()
    assert person.leave() == []
    return kept


def enter(visit: Visit, site: Site, cookies: list[dict[str, object]], **kind: bool) -> Person:
    person = visit(at=site, **kind)
    person.context.add_cookies(cookies)
    person.expected += ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "WebSocket", "htmx"]
    return person


def test_a_killed_server_loses_neither_the_text_so_far_nor_a_message_nor_the_page(
    visit: Visit, service: ModelService, mortal: Site, cookies: list[dict[str, object]]
):
    hold = Hold()
    service.expect(
        "Survive this",
        reply(say("Said before the end. ", hold, "never")),
        reply("Said after it."),
    )
    service.expect("And this", reply("Heard you as well."))
    person = enter(visit, mortal, cookies)
    uid = person.begin("Survive this")
    expect(person.answering).to_have_text("Said before the end. ")
    until(lambda: "Said before the end." in mortal.partial_text(uid))
    mortal.kill()
    expect(person.page.locator("#connection")).to_be_visible()
    person.send("And this")
    expect(person.page.locator("#pending")).to_contain_text("And this")
    mortal.start()
    expect(person.page.locator("#connection")).to_be_hidden(timeout=60_000)
    expect(person.log).to_contain_text("Said before the end.")
    expect(person.log).to_contain_text("Heard you as well.")
    expect(person.page.locator("#pending")).to_be_hidden()
    person.wait_for_status("idle")
    types = [event.type for event in mortal.events(uid)]
    assert types.count("user.message") == 2
    live = person.screen()
    person.page.reload()
    expect(person.log).to_contain_text("Heard you as well.")
    person.looks_like(live)
    person.page.close()
    hold.release.set()


def test_a_team_that_wrote_by_the_board_is_where_it_was_after_the_server_was_killed(
    visit: Visit, service: ModelService, mortal: Site, cookies: list[dict[str, object]]
):
    service.expect(
        "Have three files written",
        reply(
            "I bring two in and put the files on the board.",
            *(
                call("spawn_teammate", name=name, role=f"writes as {name}", prompt="Wait.")
                for name in ("anna", "ben")
            ),
            *(call("task_create", subject=f"Write {name}") for name in FILES),
        ),
        reply("They are at it."),
    )
    for name in ("anna", "ben"):
        opening = f"[Team] You are {name}. writes as {name}\nWait."
        service.expect(opening, reply("I take what is free."))
    for number, name in enumerate(FILES, 1):
        given = (
            f"[Team] You were idle, and task #{number} is yours now: Write {name}\n\nSay with task_update "
            "that it is completed (or give it back to nobody)."
        )
        service.expect(
            given,
            reply(call("write_file", path=f"{name}.txt", content=f"The words of {name}\n")),
            reply(call("task_update", id=number, status="completed")),
            reply(f"{name}.txt is written."),
        )
    alice = enter(visit, mortal, cookies)
    page = alice.page
    uid = alice.begin("Have three files written", switches=("approval", "teams"))
    queue = alice.new_tab()
    queue.goto("/approvals/")
    for asked in ("writes as anna", "writes as ben", *(f"The words of {name}" for name in FILES)):
        card = queue.locator(".approval-card", has_text=asked)
        if asked == "The words of one":
            expect(card).to_be_visible()
            shown(queue, "team-queue")
        card.get_by_role("button", name="Allow once").click()
    expect(page.locator(".team-strip")).to_contain_text("3 of 3 done")
    page.goto(f"/c/{uid}/team/")
    ben = page.locator(".team-list li", has_text="ben")
    ben.get_by_role("button", name="Stop").click()
    expect(ben).to_contain_text("stopped")
    before = {name: looked(alice, uid, name) for name in ("", "team/", "tasks/")}

    mortal.kill()
    mortal.start()
    phone = enter(visit, mortal, cookies, phone=True)
    for person in (alice, phone):
        for name, text in before.items():
            assert looked(person, uid, name) == text
            shown(person.page, f"team-{name.strip('/') or 'lead'}{'-phone' * person.phone}")
            assert person.audit() == ""
            assert not overflows(person.page)
    written = {path.name: path.read_text() for path in mortal.directory.rglob("*.txt")}
    for name in FILES:
        assert written[f"{name}.txt"] == f"The words of {name}\n"
    told = [event for event in mortal.events(uid) if event.type == "x.task_updated"]
    assert sum(event.payload["task"]["status"] == "completed" for event in told) == len(FILES)


def looked(person: Person, uid: str, page: str) -> str:
    """What stands there of the team."""
    person.page.goto(f"/c/{uid}/{page}")
    match page:
        case "":
            strip = person.page.locator(".team-strip")
            expect(strip).to_contain_text("3 of 3 done")
            strip.locator("summary").click()
        case "team/":
            strip = person.page.locator(".team-list")
        case _:
            strip = person.page.locator("#board")
    return strip.inner_text()


def shown(page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
