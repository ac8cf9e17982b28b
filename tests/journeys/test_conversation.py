"""A conversation as people live it: streaming, stopping, queueing, deciding, coming back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from providers.scripted import Hold, call, reply, say, think
from tests.journeys.conftest import Visit
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.patience import until

FIRST_HALF = "Once upon a time there was a log 🪵, and nothing of it was ever lost. "
SECOND_HALF = "That is the whole story."


@pytest.fixture
def story(service):
    """An answer that stands still in its middle until it is released."""
    hold = Hold()
    service.expect("Tell me a story", reply(say(FIRST_HALF, hold, SECOND_HALF), chunk=5))
    yield hold
    hold.release.set()


def test_a_reload_in_mid_answer_shows_the_text_from_its_first_character(alice: Person, story):
    alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    alice.page.reload()
    expect(alice.answering).to_have_text(FIRST_HALF)
    story.release.set()
    expect(alice.log).to_contain_text(FIRST_HALF + SECOND_HALF)
    expect(alice.page.locator("#log .live")).to_have_count(0)


def test_two_tabs_agree_character_for_character(alice: Person, story):
    alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    second = alice.new_tab()
    second.goto(alice.page.url)
    expect(second.locator("#log .live-text .live-body")).to_have_text(FIRST_HALF)
    story.release.set()
    for tab in (alice.page, second):
        alice.wait_for_status("idle", tab)
        expect(tab.locator("#log")).to_contain_text(SECOND_HALF)
    alice.looks_like(alice.screen(), second)


MARKDOWN = (
    "## Plan\n\n- first\n- second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    "```python\nx = 1\n\ny = 2\n```\n\nIt is $E = mc^2$.\n\n"
)
SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: false });
}"""


def test_markdown_is_drawn_while_it_arrives_for_who_watches_and_who_comes_late(
    alice: Person, service
):
    hold = Hold()
    service.expect("Draw it", reply(say(MARKDOWN, "And the **open", hold, " end**."), chunk=3))
    alice.begin("Draw it")
    late = alice.new_tab()
    late.goto(alice.page.url)
    for tab in (alice.page, late):
        done = tab.locator("#log .live-done")
        for drawn in ("h5", "li", "table", "pre", "math"):
            expect(done.locator(drawn).first).to_be_visible()
        expect(tab.locator("#log .live-body")).to_have_text("And the **open")
    alice.page.evaluate(SHIFTS)
    hold.release.set()
    for tab in (alice.page, late):
        expect(tab.locator('#log [data-kind="text"] strong')).to_have_text("open end")
        expect(tab.locator("#log .live")).to_have_count(0)
        alice.wait_for_status("idle", tab)
    alice.looks_like(alice.screen(), late)
    assert alice.page.evaluate("window.shifted") < 0.02


def test_a_stop_in_mid_answer_ends_in_exactly_one_terminal_state(alice: Person, story, site: Site):
    uid = alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    alice.page.get_by_role("button", name="Stop").click()
    alice.wait_for_status("stopped")
    expect(alice.page.locator("#log .live")).to_have_count(0)
    expect(alice.page.locator('#log [data-kind="text"]')).to_contain_text(FIRST_HALF.strip())
    expect(alice.page.locator('#log [data-kind="rest"]')).to_have_count(1)
    expect(alice.page.get_by_role("button", name="Stop")).to_be_hidden()
    types = [event.type for event in site.events(uid)]
    assert types.count("session.status_idle") == 1
    assert types[-1] == "session.status_idle"
    assert not any(event.type == "session.error" for event in site.events(uid))


def test_escape_stops_and_says_so_unless_it_was_switched_off(alice: Person, story):
    alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    switch = alice.page.locator("input[data-setting=shortcuts]")
    switch.uncheck()
    alice.page.locator("#composer textarea").press("Escape")
    switch.check()
    expect(alice.page.locator("#panel-status [data-status]")).to_have_attribute(
        "data-status", "running"
    )
    alice.page.locator("#composer textarea").press("Escape")
    alice.wait_for_status("stopped")
    expect(alice.page.locator("#announcer")).not_to_be_empty()


def test_a_message_sent_while_running_is_queued_visible_and_answered(
    alice: Person, story, service, site: Site
):
    service.expect("And then?", reply("They lived on."))
    uid = alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    alice.send("And then?")
    queue = alice.page.locator("#queue")
    expect(queue).to_contain_text("And then?")
    expect(queue.get_by_role("button", name="Withdraw")).to_be_visible()
    story.release.set()
    expect(alice.log).to_contain_text("They lived on.")
    expect(queue.locator("[data-order]")).to_have_count(0)
    text = alice.log.inner_text()
    assert text.index(SECOND_HALF) < text.index("And then?") < text.index("They lived on.")
    assert [event.type for event in site.events(uid)].count("user.message") == 2


def test_a_queued_message_can_be_withdrawn(alice: Person, story):
    alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    alice.send("Never mind this")
    queue = alice.page.locator("#queue")
    queue.get_by_role("button", name="Withdraw").click()
    expect(queue.locator("[data-order]")).to_have_count(0)
    story.release.set()
    alice.wait_for_status("idle")
    expect(alice.log).not_to_contain_text("Never mind this")


def test_interrupt_now_is_offered_while_it_runs_and_goes_first(alice: Person, story, service):
    service.expect("Something else", reply("Gladly."))
    alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    button = alice.page.locator('[data-action="interrupt"]')
    expect(button).to_be_hidden()
    alice.page.locator("#composer textarea").fill("Something else")
    expect(button).to_be_visible()
    button.click()
    expect(alice.log).to_contain_text("Gladly.")
    expect(alice.log).not_to_contain_text(SECOND_HALF)
    expect(button).to_be_hidden()


def test_control_and_enter_interrupts_too(alice: Person, story, service):
    service.expect("Now this", reply("At once."))
    alice.begin("Tell me a story")
    expect(alice.answering).to_have_text(FIRST_HALF)
    alice.page.locator("#composer textarea").fill("Now this")
    alice.page.locator("#composer textarea").press("Control+Enter")
    expect(alice.log).to_contain_text("At once.")
    expect(alice.log).not_to_contain_text(SECOND_HALF)


# --- the composer ---------------------------------------------------------------------------------


def test_a_draft_survives_a_reload_and_is_gone_once_it_was_sent(alice: Person, service):
    service.expect("Half a thought", reply("A whole answer."))
    alice.begin()
    box = alice.page.locator("#composer textarea")
    box.fill("Half a thought")
    alice.page.reload()
    expect(box).to_have_value("Half a thought")
    box.press("Enter")
    expect(alice.log).to_contain_text("A whole answer.")
    expect(box).to_have_value("")
    alice.page.reload()
    expect(box).to_have_value("")


def test_shift_and_enter_makes_a_line_and_composing_sends_nothing(alice: Person):
    alice.begin()
    box = alice.page.locator("#composer textarea")
    box.fill("one")
    box.press("Shift+Enter")
    box.press_sequentially("two")
    expect(box).to_have_value("one\ntwo")
    box.evaluate(
        "box => box.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
    )
    expect(box).to_have_value("one\ntwo")
    expect(alice.page.locator("#pending")).to_be_hidden()


def test_a_message_typed_without_a_line_arrives_once_when_the_line_is_back(
    alice: Person, service, site: Site
):
    service.expect("Sent into the void", reply("Received."))
    uid = alice.begin()
    alice.expected += ["ERR_INTERNET_DISCONNECTED", "htmx"]
    alice.context.set_offline(True)
    expect(alice.page.locator("#connection")).to_be_visible()
    alice.send("Sent into the void")
    expect(alice.page.locator("#pending")).to_contain_text("Sent into the void")
    alice.context.set_offline(False)
    expect(alice.log).to_contain_text("Received.")
    expect(alice.page.locator("#pending")).to_be_hidden()
    expect(alice.page.locator("#connection")).to_be_hidden()
    assert [event.type for event in site.events(uid)].count("user.message") == 1


def test_a_refused_message_returns_to_the_box(alice: Person):
    alice.begin()
    long = "x" * 100_001
    alice.page.locator("#composer textarea").fill(long)
    alice.page.locator("#composer textarea").press("Enter")
    expect(alice.page.locator("#alert")).to_contain_text("100001")
    expect(alice.page.locator("#composer textarea")).to_have_value(long)
    expect(alice.page.locator("#pending")).to_be_hidden()


# --- approvals ------------------------------------------------------------------------------------


def test_a_call_waits_for_a_decision_and_runs_once_it_is_allowed(
    alice: Person, service, site: Site
):
    hold = Hold()
    service.expect(
        "Write with care",
        reply(
            say("I ask first.", hold, " Now."),
            call("write_file", path="careful.txt", content="asked first\n"),
        ),
        reply("It is written."),
    )
    uid = alice.begin("Write with care", switches=("approval",))
    expect(alice.answering).to_contain_text("I ask first.")
    hold.release.set()
    alice.wait_for_status("waiting")
    card = alice.page.locator('#log [data-kind="tool"]')
    expect(card).to_have_attribute("data-state", "waiting")
    expect(card).to_contain_text("asked first")
    expect(alice.page.locator("#announcer")).to_contain_text("waiting")
    card.get_by_role("button", name="Allow").click()
    expect(alice.log).to_contain_text("It is written.")
    expect(card).to_have_attribute("data-state", "ok")
    expect(card).to_contain_text("Allowed by alice")
    types = [event.type for event in site.events(uid)]
    assert types.count("user.tool_confirmation") == 1
    assert types.count("span.tool_start") == 1


def test_a_denied_call_never_runs_and_the_reason_reaches_the_agent(
    alice: Person, service, site: Site
):
    service.expect(
        "Write without care",
        reply(call("write_file", path="careless.txt", content="no")),
        reply("Then I leave it."),
    )
    uid = alice.begin("Write without care", switches=("approval",))
    alice.wait_for_status("waiting")
    card = alice.page.locator('#log [data-kind="tool"]')
    card.locator("[name=reason]").fill("not in this folder")
    card.get_by_role("button", name="Deny").click()
    expect(alice.log).to_contain_text("Then I leave it.")
    expect(card).to_have_attribute("data-state", "denied")
    assert "span.tool_start" not in [event.type for event in site.events(uid)]
    assert "not in this folder" in str(service.api.bodies[-1]["messages"])


def test_a_waiting_card_leaves_the_focus_with_whoever_types(alice: Person, service):
    hold = Hold()
    service.expect(
        "Ask me later",
        reply(say("Wait", hold), call("write_file", path="later.txt", content="x")),
        reply("Done."),
    )
    alice.begin("Ask me later", switches=("approval",))
    expect(alice.answering).to_have_text("Wait")
    alice.page.locator("#composer textarea").press_sequentially("typing")
    hold.release.set()
    alice.wait_for_status("waiting")
    expect(alice.page.locator("#composer textarea")).to_be_focused()
    alice.page.locator("#composer textarea").fill("")
    alice.page.locator('#log [data-action="allow"]').click()
    expect(alice.log).to_contain_text("Done.")


# --- reading --------------------------------------------------------------------------------------


def test_who_reads_further_up_is_left_alone_and_shown_the_way_back(alice: Person, service):
    hold = Hold()
    paragraphs = "\n\n".join(f"Paragraph {number} of a long text." for number in range(80))
    service.expect("Something long", reply(say(paragraphs)), reply("unused"))
    service.expect("And more", reply(say("Short. ", hold, "End.")))
    alice.begin("Something long")
    alice.wait_for_status("idle")
    scroller = alice.page.locator("[data-scroller]")
    at_end = "s => s.scrollHeight - s.scrollTop - s.clientHeight <= 2"
    alice.page.wait_for_function(
        "() => { const s = document.querySelector('[data-scroller]');"
        " return s.scrollHeight > s.clientHeight && s.scrollHeight - s.scrollTop"
        " - s.clientHeight <= 2; }"
    )
    alice.send("And more")
    expect(alice.answering).to_have_text("Short. ")
    scroller.evaluate("s => { s.scrollTop = 0; }")
    jump = alice.page.locator("#jump")
    expect(jump).to_be_visible()
    hold.release.set()
    expect(alice.log).to_contain_text("Short. End.")
    assert scroller.evaluate("s => s.scrollTop") < 50
    expect(jump).to_contain_text("(")
    jump.click()
    expect(jump).to_be_hidden()
    until(lambda: scroller.evaluate(at_end))


def test_old_messages_load_while_scrolling_up_and_the_place_is_kept(
    alice: Person, service, site: Site
):
    uid = alice.begin()
    site.append(uid, *history_of(uid, turns=150))
    alice.page.reload()
    expect(alice.log).to_contain_text("Answer 149")
    expect(alice.log).not_to_contain_text("Answer 20.")
    scroller = alice.page.locator("[data-scroller]")
    for _ in range(20):
        if "Answer 0." in alice.log.inner_text():
            break
        first = alice.page.locator("#log > *").first
        name = first.get_attribute("id")
        scroller.evaluate("s => { s.scrollTop = 0; }")
        alice.page.wait_for_function(
            "name => document.querySelector('#log > *').id !== name", arg=name
        )
        moved = alice.page.evaluate(
            "name => document.getElementById(name).getBoundingClientRect().top"
            " - document.querySelector('[data-scroller]').getBoundingClientRect().top",
            name,
        )
        assert abs(moved) < 200
    orders = alice.page.evaluate(
        "() => [...document.querySelectorAll('#log [data-order]')].map(u => +u.dataset.order)"
    )
    assert orders == sorted(orders)
    assert len(orders) == 300
    assert len(set(orders)) == 300


def history_of(conversation: str, *, turns: int) -> list[tuple[str, dict[str, object]]]:
    """Messages and answers, each turn taken and ended."""
    own = conversation[-12:]
    events: list[tuple[str, dict[str, object]]] = []
    for turn in range(turns):
        asked = f"sevt_asked{own}{turn:08d}"
        events += [
            (asked, {"type": "user.message", "content": [{"type": "text", "text": f"Q {turn}"}]}),
            (f"sevt_taken{own}{turn:08d}", {"type": "x.input_taken", "event_ids": [asked]}),
            (
                f"sevt_answer{own}{turn:07d}",
                {
                    "type": "agent.message",
                    "content": [{"type": "text", "text": f"Answer {turn}."}],
                },
            ),
            (
                f"sevt_rest{own}{turn:09d}",
                {"type": "session.status_idle", "stop_reason": {"type": "end_turn"}},
            ),
        ]
    return events


def test_code_and_whole_answers_can_be_copied(alice: Person, service):
    source = "Try **this**:\n\n```python\nprint('hello')\n```\n"
    service.expect("Show me code", reply(source))
    alice.begin("Show me code")
    alice.wait_for_status("idle")
    read = "() => navigator.clipboard.readText()"
    alice.page.locator('#log [data-action="copy-code"]').click()
    expect(alice.page.locator("#announcer")).to_have_text("Copied.")
    assert alice.page.evaluate(read).strip() == "print('hello')"
    alice.page.locator('#log [data-kind="text"] [data-action="copy"]').click()
    alice.page.wait_for_function(
        "async text => (await navigator.clipboard.readText()) === text", arg=source
    )


def test_code_of_a_file_is_copied_on_a_page_without_a_conversation(alice: Person, service):
    content = "# Notes\n\n```python\nprint('hello')\n```\n"
    service.expect(
        "Write it down", reply(call("write_file", path="notes.md", content=content)), reply("Done.")
    )
    uid = alice.begin("Write it down")
    alice.wait_for_status("idle")
    alice.page.goto(f"/c/{uid}/files/view/?path=notes.md")
    alice.page.evaluate("() => navigator.clipboard.writeText('before')")
    button = alice.page.locator('main [data-action="copy-code"]')
    button.click()
    expect(button).to_have_attribute("data-copied", "")
    read = "() => navigator.clipboard.readText()"
    assert alice.page.evaluate(read).strip() == "print('hello')"


def test_the_finished_answer_is_announced_once_and_tokens_never(alice: Person, service):
    service.expect("Speak up", reply(say("Hear the ", "whole answer."), chunk=3))
    alice.begin()
    alice.page.evaluate(
        "() => { window.said = []; new MutationObserver(() => window.said.push("
        "document.getElementById('announcer').textContent)).observe("
        "document.getElementById('announcer'), {childList: true, characterData: true,"
        " subtree: true}); }"
    )
    alice.send("Speak up")
    alice.wait_for_status("idle")
    expect(alice.page.locator("#announcer")).to_have_text(
        "The agent has finished: Hear the whole answer."
    )
    said = alice.page.evaluate("() => window.said")
    assert len([text for text in said if "Hear the" in text]) == 1
    assert alice.log.get_attribute("aria-live") == "off"


def test_an_answer_whose_whole_turn_came_at_once_is_announced(alice: Person, site: Site):
    uid = alice.begin()
    alice.expected += ["ERR_INTERNET_DISCONNECTED", "htmx"]
    alice.context.set_offline(True)
    expect(alice.page.locator("#connection")).to_be_visible()
    site.append(uid, *history_of(uid, turns=1))
    alice.context.set_offline(False)
    expect(alice.log.locator('[data-kind="text"]')).to_have_count(1)
    expect(alice.page.locator("#announcer")).to_have_text("The agent has finished: Answer 0.")


def test_what_came_while_nobody_looked_is_counted_in_the_title(alice: Person, service):
    hold = Hold()
    service.expect("Take your time", reply(say("Slowly", hold, " done.")))
    alice.begin("Take your time")
    expect(alice.answering).to_have_text("Slowly")
    alice.page.evaluate(
        "() => { window.told = []; window.Notification = class extends EventTarget {"
        " static permission = 'granted';"
        " constructor(title, {body}) { super(); window.told.push(`${title}: ${body}`); } }; }"
    )
    alice.page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    hold.release.set()
    expect(alice.page).to_have_title(re.compile(r"^done · Take your time"))
    assert alice.page.evaluate("window.told") == ["done: Take your time · Agentsite"]
    alice.page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    expect(alice.page).to_have_title(re.compile(r"^Take your time"))


def test_folds_a_person_opened_stay_open_while_the_answer_goes_on(alice: Person, service):
    hold = Hold()
    service.expect(
        "Think and do",
        reply(think("Hm."), call("list_files"), call("list_files")),
        reply(say("Nearly", hold), call("list_files")),
        reply("There."),
    )
    alice.begin("Think and do")
    expect(alice.answering).to_have_text("Nearly")
    group = alice.page.locator("#log details.group").first
    group.locator("> summary").click()
    expect(group).to_have_attribute("open", "")
    hold.release.set()
    expect(alice.log).to_contain_text("There.")
    expect(alice.page.locator("#log details.group").first).to_have_attribute("open", "")


def test_a_phone_shows_and_does_it_all(visit: Visit, story):
    phone = visit(phone=True)
    phone.begin("Tell me a story")
    expect(phone.answering).to_have_text(FIRST_HALF)
    page = phone.page
    assert page.evaluate(
        "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    for name in ("Stop", "Send"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert box["height"] >= 36
        assert 0 <= box["x"] <= 390 - box["width"]
    composer = page.locator("#composer textarea")
    composer.fill("line")
    composer.press("Enter")
    expect(composer).to_have_value("line\n")
    page.get_by_role("button", name="Stop").tap()
    phone.wait_for_status("stopped")
