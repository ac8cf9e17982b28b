"""The server dies in mid-answer and comes back: nothing that was said or asked is lost, alone or in a team.

The team, in a browser: three files by the task board, one question, one stop. Both have one site.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from providers.scripted import Hold, call, reply, say
from tests.journeys.conftest import Visit, set_up
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.journeys.test_every_page import overflows
from tests.patience import until

OPENING = "Have the three chapters written by a team"
CHAPTERS = ("Harbour", "Bridge", "Lighthouse")
GO_ON = "Go on with the bridge"


CUT_OFF = ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "WebSocket", "htmx"]
"""What a window says whose server is gone."""


@pytest.fixture(scope="module")
def mortal(service: ModelService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site to be killed and started again."""
    settings = {
        "ANTHROPIC_API_KEY": "key-of-the-journeys",
        "ANTHROPIC_BASE_URL": service.base_url,
        "AGENTSITE_SWEEP_SECONDS": "3",  # each costs as much as a page
        "AGENTSITE_LEASE_SECONDS": "12",
    }
    with Site(tmp_path_factory.mktemp("mortal"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def state(chromium: Browser, mortal: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cookies of alice, its administrator."""
    person = Person(chromium, mortal)
    set_up(person)
    kept = tmp_path_factory.mktemp("state") / "cookies.json"
    person.context.storage_state(path=kept)
    assert person.leave() == []
    return kept


def test_a_killed_server_loses_neither_the_text_so_far_nor_a_message_nor_the_page(
    visit: Visit, service: ModelService, mortal: Site, state: Path
):
    hold = Hold()
    service.expect(
        "Survive this",
        reply(say("Said before the end. ", hold, "never")),
        reply("Said after it."),
    )
    service.expect("And this", reply("Heard you as well."))
    person = visit(at=mortal, state=state)
    person.expected += CUT_OFF
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
    hold.release.set()


def look(person: Person, name: str) -> None:
    assert person.audit() == ""
    assert not overflows(person.page)
    if folder := os.environ.get("SCREENSHOTS"):
        person.page.screenshot(path=Path(folder) / f"team-{name}.png", full_page=True)
        person.page.emulate_media(color_scheme="dark")
        person.page.screenshot(path=Path(folder) / f"team-{name}-dark.png", full_page=True)
        person.page.emulate_media(color_scheme="light")


def written(number: int) -> dict[str, object]:
    path = f"{CHAPTERS[number - 1].lower()}.txt"
    return {"id": number, "status": "completed", "files": [path]}


def plan(service: ModelService, **holds: Hold) -> None:
    """What the lead and its two teammates do; one of them stands still in its words until it is let go."""
    harbour, bridge, lighthouse = (f"{name.lower()}.txt" for name in CHAPTERS)
    service.expect(
        OPENING,
        reply(
            call("task_create", subject=f"Write about the {CHAPTERS[0].lower()}", owner="me"),
            *(
                call("task_create", subject=f"Write about the {name.lower()}")
                for name in CHAPTERS[1:]
            ),
        ),
        reply(
            call("spawn_teammate", name="anna", role="writes", prompt="Take the bridge, #2."),
            call(
                "spawn_teammate", name="ben", role="writes too", prompt="Take the lighthouse, #3."
            ),
        ),
        reply(call("write_file", path=harbour, content="Of the harbour.\n")),
        reply(call("task_update", **written(1))),
        reply("The harbour is written, the others are at it."),
    )
    service.expect(
        "[Team] You are anna. writes\nTake the bridge, #2.",
        reply(call("task_claim", id=2)),
        *(reply(say(f"It has {name}. ", hold, "never")) for name, hold in holds.items()),
    )
    service.expect(
        GO_ON,
        reply(call("write_file", path=bridge, content="Of the bridge.\n")),
        reply(call("task_update", **written(2))),
        reply("The bridge is written."),
    )
    service.expect(
        "[Team] You are ben. writes too\nTake the lighthouse, #3.",
        reply(call("task_claim", id=3)),
        reply(call("bash", command=f"echo Of the lighthouse. > {lighthouse}")),
        reply(call("task_update", **written(3))),
        reply("The lighthouse is written."),
    )


def column(page: Page, status: str):
    return page.locator(f'#board [data-status="{status}"]')


def member(page: Page, name: str):
    return page.locator(".team-list .card", has=page.get_by_role("heading", name=name))


def test_a_team_writes_three_files_and_is_where_it_was_after_the_server_was_killed(
    visit: Visit, service: ModelService, mortal: Site, state: Path
) -> None:
    piers, arches = Hold(), Hold()
    plan(service, piers=piers, arches=arches)
    alice = visit(at=mortal, state=state)
    alice.expected += CUT_OFF
    page = alice.page
    uid = alice.begin(OPENING, switches=("teams",))
    strip = page.locator(".team-strip")
    expect(strip).to_contain_text("1 of 3 done")
    alice.wait_for_status("idle")
    strip.locator("summary").click()
    expect(strip.locator(".team-members li", has_text="ben")).to_contain_text("waits")
    expect(strip.locator(".team-members li", has_text="anna")).to_contain_text("works")
    look(alice, "strip")
    ben = (strip.get_by_role("link", name="ben").get_attribute("href") or "").split("/")[2]
    strip.get_by_role("link", name="anna").click()
    expect(alice.answering).to_have_text("It has piers. ")
    anna = page.url.rstrip("/").rpartition("/")[2]
    until(lambda: "piers" in mortal.partial_text(anna))

    # Both teammates are in the middle of something: one of an answer, one of a question.
    mortal.kill()
    expect(page.locator("#connection")).to_be_visible()
    mortal.start()
    expect(page.locator("#connection")).to_be_hidden(timeout=60_000)
    expect(alice.log).to_contain_text("It has piers.")
    expect(alice.answering).to_have_text("It has arches. ")
    page.goto(f"/c/{uid}/tasks/")
    expect(column(page, "completed")).to_contain_text("harbour")
    for name in ("bridge", "lighthouse"):
        expect(column(page, "in_progress")).to_contain_text(name)
    look(alice, "board")

    page.goto("/approvals/")
    card = page.locator(".approval-card", has_text="lighthouse.txt")
    expect(card).to_contain_text("ben")
    look(alice, "queue")
    card.get_by_role("button", name="Allow once").click()
    expect(card).to_have_attribute("data-state", "approved")
    page.goto(f"/c/{uid}/")
    expect(alice.log).to_contain_text("The lighthouse is written.")
    # Asked before the server died and answered after that, it ran once.
    begun = [event.payload for event in mortal.events(ben) if event.type == "span.tool_start"]
    assert len({one["tool_use_id"] for one in begun}) == len(begun) == 3

    page.goto(f"/c/{uid}/team/")
    expect(member(page, "anna")).to_contain_text("works")
    member(page, "anna").get_by_role("button", name="Stop").click()
    expect(member(page, "anna")).to_contain_text("stopped")
    expect(member(page, "ben")).to_contain_text("idle")
    look(alice, "stopped")

    # What is left she does on her phone.
    phone = visit(at=mortal, state=state, phone=True)
    page = phone.page
    page.goto(f"/c/{uid}/")
    expect(phone.log).to_contain_text("Nobody of the team works")
    expect(page.locator(".team-strip")).to_contain_text("2 of 3 done")
    page.locator(".team-strip summary").tap()
    look(phone, "strip-phone")
    page.get_by_role("link", name="Stop, resume, dismiss").tap()
    page.wait_for_url("**/team/")
    look(phone, "team-phone")
    member(page, "anna").get_by_role("button", name="Let it go on").tap()
    expect(member(page, "anna")).to_contain_text("idle")
    member(page, "anna").get_by_role("link", name="anna").tap()
    phone.send(GO_ON)
    expect(phone.log).to_contain_text("The bridge is written.")
    look(phone, "anna-phone")
    page.goto(f"/c/{uid}/tasks/")
    for name in CHAPTERS:
        expect(column(page, "completed")).to_contain_text(name.lower())
    look(phone, "board-phone")
    for name in CHAPTERS:
        page.get_by_role("link", name=f"Write about the {name.lower()}").tap()
        page.get_by_role("link", name=f"{name.lower()}.txt").tap()
        expect(page.locator("body")).to_contain_text(f"Of the {name.lower()}.")
        page.goto(f"/c/{uid}/tasks/")
    page.close()
    piers.release.set()
    arches.release.set()
