"""Messages that wait while the agent works: changed, sent into the answer, and never lost."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, expect

from providers.scripted import Hold, call, reply, say
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.people import Person
from tests.journeys.site import Site

COUNTING = "1, 2, "


@dataclass(frozen=True, slots=True)
class Count:
    """An agent that counts when asked with `words`, stands still until it is released, and then looks
    at its files."""

    words: str
    hold: Hold


@pytest.fixture
def counting(service, request):
    # Words of its own: what a test leaves in its queue is answered after it, by the same service.
    count = Count(f"Count, please: {request.node.name}", Hold())
    service.expect(
        count.words,
        reply(say(COUNTING, count.hold, "3."), call("list_files"), chunk=2),
        reply("That was all."),
    )
    yield count
    count.hold.release.set()


def wait_in_line(person: Person, counting: Count, *texts: str) -> list[Locator]:
    """Has the agent count and queues `texts` behind that; their units."""
    person.begin(counting.words)
    expect(person.answering).to_have_text(COUNTING)
    queue = person.page.locator("#queue")
    for place, text in enumerate(texts, 1):
        person.send(text)
        expect(queue.locator("[data-order]")).to_have_count(place)
    return [queue.locator("[data-order]").nth(place) for place in range(len(texts))]


def press(unit: Locator, name: str) -> None:
    unit.get_by_role("button", name=name).click()


@in_form("light", "dark", "phone")
def test_one_queued_message_is_edited_and_another_joins_the_answer_under_way(
    visit: Visit, counting: Count, service, site: Site, kind
):
    service.expect("And backwards", reply("3, 2, 1."))
    service.expect("What comes after?", reply("Four."))
    alice = visit(**kind)
    first, second = wait_in_line(alice, counting, "Waht comes aftre?", "And backwards")
    uid = alice.page.url.rstrip("/").rpartition("/")[2]

    press(first, "Edit")
    box = first.locator("textarea")
    expect(box).to_be_focused()
    expect(box).to_have_value("Waht comes aftre?")
    box.fill("What comes after?")
    assert alice.audit() == ""
    if kind.get("phone"):
        press(first, "Save")
    else:
        box.press("Enter")
    expect(first).to_contain_text("What comes after?")
    expect(first).to_contain_text("edited")
    expect(first.locator("textarea")).to_have_count(0)

    press(second, "Send into the current answer")
    expect(second).to_contain_text("Joins the current answer at its next step")
    expect(second.get_by_role("button", name="Send into")).to_have_count(0)
    assert alice.audit() == ""
    queued = alice.page.locator("#queue").evaluate("queue => queue.outerHTML")
    alice.page.reload()
    expect(alice.answering).to_have_text(COUNTING)
    assert alice.page.locator("#queue").evaluate("queue => queue.outerHTML") == queued

    counting.hold.release.set()
    expect(alice.log).to_contain_text("Four.")
    expect(alice.page.locator("#queue [data-order]")).to_have_count(0)
    expect(alice.log.locator("[data-action=edit], [data-action=steer]")).to_have_count(0)
    text = alice.log.inner_text()
    told = ["1, 2, 3.", "And backwards", "3, 2, 1.", "What comes after?", "Four."]
    assert [text.index(part) for part in told] == sorted(text.index(part) for part in told)
    assert "Waht" not in text
    alice.wait_for_status("idle")
    types = [event.type for event in site.events(uid)]
    assert types.count("session.status_idle") == 2, "steered: the same turn; edited: its own"


def test_escape_cancels_an_edit_and_gives_the_focus_back(alice: Person, counting: Count):
    (unit,) = wait_in_line(alice, counting, "Leave me as I am")
    press(unit, "Edit")
    box = unit.locator("textarea")
    box.fill("Changed")
    box.press("Shift+Enter")
    expect(box).to_have_value("Changed\n")
    box.press("Escape")
    expect(box).to_have_count(0)
    expect(unit.get_by_role("button", name="Edit")).to_be_focused()
    expect(unit).to_contain_text("Leave me as I am")
    alice.wait_for_status("running")


def test_what_is_typed_outlives_a_refusal_a_redrawing_and_a_reload(alice: Person, counting: Count):
    (unit,) = wait_in_line(alice, counting, "Short")
    press(unit, "Edit")
    box = unit.locator("textarea")
    long = "x" * 100_001
    box.fill(long)
    box.press("Enter")
    expect(alice.page.locator("#alert")).to_contain_text("100001")
    expect(box).to_have_value(long)
    expect(box).to_be_editable()
    expect(box).to_be_focused()

    box.fill("Half a ")
    other = alice.new_tab()
    other.goto(alice.page.url)
    press(other.locator("#queue [data-order]"), "Send into the current answer")
    expect(unit).to_contain_text("Joins the current answer")
    expect(box).to_have_value("Half a ")
    expect(box).to_be_focused()
    box.press_sequentially("thought")

    alice.page.reload()
    expect(box).to_have_value("Half a thought")
    expect(alice.answering).to_have_text(COUNTING)
    box.press("Enter")
    expect(unit.locator(".pieces")).to_have_text("Half a thought")
    expect(unit.get_by_role("button", name="Edit")).to_be_focused()


def test_an_edit_that_comes_too_late_hands_its_text_to_the_composer(
    alice: Person, counting: Count, service
):
    service.expect("Old words", reply("Answered the old words."))
    (unit,) = wait_in_line(alice, counting, "Old words")
    press(unit, "Edit")
    unit.locator("textarea").fill("New words")
    counting.hold.release.set()
    expect(alice.log).to_contain_text("Answered the old words.")
    composer = alice.page.locator("#composer textarea")
    expect(composer).to_have_value("New words")
    expect(composer).to_be_focused()
    expect(alice.page.locator("#alert")).to_contain_text("left the queue")
    expect(alice.page.locator(".message-editor, .editing")).to_have_count(0)


def test_a_switch_turned_in_one_tab_turns_in_the_other(alice: Person):
    alice.begin()
    other = alice.new_tab()
    other.goto(alice.page.url)
    there = other.locator("#feature-plan_mode")
    alice.page.locator("[data-chip=switches] summary").click()
    expect(there).not_to_be_checked()
    for stands in (True, False):
        alice.page.locator("#feature-plan_mode").set_checked(stands)
        expect(there).to_be_checked(checked=stands)
        expect(alice.page.locator("#feature-plan_mode")).to_be_enabled()
        expect(alice.page.locator("#feature-plan_mode")).to_be_checked(checked=stands)


def test_a_folded_group_says_how_many_lines_its_calls_changed(alice: Person, service):
    service.expect(
        "Change a few lines",
        reply(
            call("write_file", path="a.txt", content="one\ntwo\nthree\n"),
            call("edit_file", path="a.txt", old_text="two", new_text="2"),
            call("list_files"),
        ),
        reply("Changed."),
    )
    alice.begin("Change a few lines")
    alice.wait_for_status("idle")
    summary = alice.page.locator("#log details.group > summary")
    expect(summary.locator(".count-added")).to_contain_text("+4")
    expect(summary.locator(".count-removed")).to_contain_text("−1")
    expect(summary).to_contain_text("3 steps · Created a.txt, Edited a.txt, Listed the workspace")


def test_after_a_stop_what_waits_is_held_and_goes_out_in_the_order_it_was_given(
    alice: Person, counting: Count, service
):
    for text in ("First thing", "Second thing"):
        service.expect(text, reply(f"Done: {text}"))
    _first, second = wait_in_line(alice, counting, "First thing", "Second thing")
    second.get_by_role("button", name="Take this message earlier").press("Enter")
    queue = alice.page.locator("#queue [data-order]")
    expect(queue.first).to_contain_text("Second thing")
    expect(queue.first.get_by_role("button", name="Take this message later")).to_be_focused()
    alice.page.get_by_role("button", name="Stop").click()
    held = alice.page.get_by_role("group", name="Held messages")
    expect(held).to_contain_text("2 messages are held.")
    alice.wait_for_status("stopped")
    expect(alice.page.get_by_role("button", name="Stop")).to_be_hidden()
    assert alice.audit() == ""
    live = alice.screen()
    alice.page.reload()
    expect(held).to_be_visible()
    alice.looks_like(live)
    held.get_by_role("button", name="Send them, one after another").click()
    expect(alice.log).to_contain_text("Done: First thing")
    alice.wait_for_status("idle")
    answers = alice.log.locator('[data-kind="text"]').all_inner_texts()
    assert "Done: Second thing" in answers[-2]
    expect(held).to_have_count(0)


def test_what_comes_while_a_button_is_held_down_does_not_take_it_from_under_the_finger(
    alice: Person, service
):
    asked = call("write_file", path="a.txt", content="a")
    service.expect("May I?", reply(say("So much.\n\n" * 60), asked), reply("Done."))
    page = alice.page
    with page.expect_websocket() as line:
        alice.begin("May I?", switches=("approval",))
    alice.wait_for_status("waiting")
    uid = page.url.rstrip("/").rpartition("/")[2]
    scroller = page.locator("[data-scroller]")
    scroller.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    allow = page.locator('#log [data-action="allow"]')
    before = allow.bounding_box()
    assert before is not None
    page.mouse.move(before["x"] + 20, before["y"] + 20)
    page.mouse.down()
    with line.value.expect_event("framereceived", lambda frame: "Renamed" in str(frame)):
        alice.site.append(uid, ("sevt_renamed", {"type": "session.updated", "title": "Renamed"}))
    # As a line above the composer does that comes or goes.
    page.locator("#composer").evaluate("box => { box.style.marginTop = '60px'; }")
    page.evaluate(
        "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
    )
    assert allow.bounding_box() == before
    assert "Renamed" not in page.locator("[data-conversation-title]").first.inner_text()
    page.mouse.up()
    expect(page.locator("[data-conversation-title]").first).to_contain_text("Renamed")
    expect(alice.log).to_contain_text("Done.")
