"""What was drawn while it happened is what a reload draws, for every type of event."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from harness.errors import Overloaded
from harness.events import TYPES
from providers.scripted import Fail, Hold, call, garbled_call, reply, say, think
from tests.journeys.conftest import Visit
from tests.journeys.every_event import steps
from tests.journeys.people import Person
from tests.journeys.site import Site


def settled(page: Page, seq: int) -> None:
    """The page has taken all events up to `seq`."""
    page.wait_for_function(
        "seq => Number(document.getElementById('conversation').dataset.seq) >= seq", arg=seq
    )


def test_the_example_holds_every_type_of_event():
    told = {payload["type"] for step in steps() for _uid, payload in step}
    assert told ^ set(TYPES) == set(), "give it a step in tests/journeys/every_event.py"


def test_every_type_of_event_looks_the_same_live_and_after_a_reload(alice: Person, site: Site):
    uid = alice.begin()
    # Somebody who watches from the start, and somebody who comes in somewhere in the middle.
    late = alice.new_tab()
    for number, step in enumerate(steps(uid[-8:])):
        seq = site.append(uid, *step)
        settled(alice.page, seq)
        if number % 5 == 0:
            late.goto(alice.page.url)
    settled(late, seq)
    live = alice.screen()
    alice.looks_like(live, late)
    alice.page.reload()
    expect(alice.page.locator('#panel-status [data-status="terminated"]')).to_be_visible()
    alice.looks_like(live)


def test_a_real_run_looks_the_same_live_and_after_a_reload(alice: Person, service, site: Site):
    service.expect(
        "Everything at once",
        reply(
            think("Let me think. ", "Longer."),
            say("I **begin**, with $5 and `code`.\n\n- one\n- two\n"),
            call("write_file", path="a.py", content="a = 1\n"),
            call("read_file", path="missing.py"),
            garbled_call("write_file", "{not json"),
            chunk=7,
        ),
        reply(call("edit_file", path="a.py", old_text="1", new_text="2"), call("list_files")),
        reply(say("A long sentence that is cut "), end="max_tokens", chunk=9),
        reply(say("off and goes on 🎉."), chunk=3),
    )
    uid = alice.begin("Everything at once")
    expect(alice.log).to_contain_text("A long sentence that is cut off and goes on 🎉.")
    alice.wait_for_status("idle")
    settled(alice.page, site.events(uid)[-1].seq)
    live = alice.screen()
    alice.page.reload()
    expect(alice.log).to_contain_text("goes on")
    alice.looks_like(live)


def test_a_failure_and_its_retry_look_the_same(visit: Visit, service, site: Site):
    alice = visit()
    broken = Overloaded("busy")
    hold = Hold()
    service.expect("Break off", reply(say("Half a sen", hold, Fail(broken))))
    uid = alice.begin("Break off")
    expect(alice.answering).to_have_text("Half a sen")
    hold.release.set()
    alice.wait_for_status("failed")
    expect(alice.page.locator("#announcer")).to_contain_text(
        "The agent could not finish. ✕ Failed:"
    )
    expect(alice.page.locator("#recent .dot.failed")).to_have_count(1)
    expect(alice.page.locator('#log [data-action="retry"]:visible')).to_have_count(1)
    service.expect("Break off", reply("A whole sentence."))
    alice.page.locator('#log [data-action="retry"]:visible').click()
    expect(alice.log).to_contain_text("A whole sentence.")
    alice.wait_for_status("idle")
    settled(alice.page, site.events(uid)[-1].seq)
    expect(alice.page.locator('#log [data-action="retry"]:visible')).to_have_count(0)
    live = alice.screen()
    alice.page.reload()
    expect(alice.log).to_contain_text("A whole sentence.")
    alice.looks_like(live)
