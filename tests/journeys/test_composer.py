"""Writing: a message from the first page with one action, files by name, and what Enter does."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Route, expect

from providers.scripted import Hold, call, reply, say
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.test_attachments import NOTES, chips, choose


@in_form("light", "phone")
def test_a_message_goes_out_from_the_first_page_and_later_ones_name_files(
    visit: Visit, service: Any, kind: dict[str, bool]
):
    first, second = f"How deep is it? {kind}", f"Read @uploads/notes.txt again {kind}"
    service.expect(first, reply("Seven metres."))
    service.expect(second, reply("Still seven."))
    alice = visit(**kind)
    page = alice.page
    page.goto("/")
    box = page.get_by_label("First message")
    expect(box).to_be_focused()
    fold = page.locator("details[data-fold=agent]")
    expect(fold.locator("[data-chosen]")).not_to_be_empty()
    expect(fold.locator("input").first).to_be_hidden()
    box.press_sequentially(first)
    models = page.locator("details[data-fold=model]")
    models.locator("summary").click()
    models.get_by_label("claude-opus-4-6").check()
    models.get_by_label("low", exact=True).check()
    expect(models.locator("[data-chosen]")).to_have_text("claude-opus-4-6, low")
    assert alice.audit() == ""
    models.locator("summary").click()
    choose(page, NOTES)
    expect(chips(page)).to_have_count(1)
    assert alice.audit() == ""
    if alice.phone:
        page.get_by_role("button", name="Start", exact=True).tap()
    else:
        box.press("Enter")
    page.wait_for_url(re.compile(r"/c/sesn_"))
    expect(alice.log).to_contain_text("Seven metres.")
    assert service.api.requests[-1].model == "claude-opus-4-6"

    chip = page.locator("[data-chip=model]")
    expect(chip.locator("summary")).to_have_text("Model: claude-opus-4-6 · low")
    chip.locator("summary").press("Enter")
    expect(chip.get_by_label("claude-opus-4-6")).to_be_checked()
    chip.get_by_label("claude-haiku-4-5").check()
    expect(chip.locator(".efforts")).to_be_hidden()
    assert alice.audit() == ""
    chip.get_by_role("button", name="Use from the next message").press("Enter")
    expect(chip.locator("summary")).to_have_text("Model: claude-haiku-4-5")
    expect(page.locator("#composer textarea")).to_be_focused()
    expect(alice.log).to_contain_text("From the next message on: claude-haiku-4-5.")

    composer = page.locator("#composer textarea")
    composer.press_sequentially("/sw")
    commands = page.locator("#mentions [role=option]")
    expect(commands).to_have_text(["/switches Turn a switch of this conversation"])
    assert alice.audit() == ""
    if alice.phone:
        commands.tap()
    else:
        composer.press("Enter")
    expect(composer).to_have_value("")
    expect(page.get_by_label("Plan first")).to_be_visible()
    page.keyboard.press("Escape")
    composer.press_sequentially("/")
    expect(commands.first).to_have_text("/model Pick the model and its effort")
    names = commands.all_inner_texts()
    assert any(text.startswith("/rewind") for text in names)
    assert not any(text.startswith("/stop") for text in names), "there is nothing to stop"
    # Quicker than the list, it is a command all the same.
    composer.fill("/skills")
    if alice.phone:
        page.get_by_role("button", name="Send", exact=True).tap()
    else:
        composer.press("Enter")
    expect(page.get_by_role("heading", name="Skills of this conversation")).to_be_visible()
    expect(composer).to_have_value("")
    page.keyboard.press("Escape")
    composer.press_sequentially("Read @NOT")
    offered = page.locator("#mentions [role=option]")
    expect(offered).to_have_text(["uploads/notes.txt"])
    expect(composer).to_have_attribute("aria-activedescendant", "mentions-0")
    assert alice.audit() == ""
    if alice.phone:
        offered.tap()
    else:
        composer.press("Enter")
    expect(composer).to_have_value("Read @uploads/notes.txt ")
    expect(offered).to_have_count(0)
    composer.press_sequentially(f"again {kind}")
    if alice.phone:
        page.get_by_role("button", name="Send", exact=True).tap()
    else:
        composer.press("Enter")
    expect(alice.log).to_contain_text("Still seven.")
    assert service.api.requests[-1].model == "claude-haiku-4-5"


def test_whoever_turned_enter_off_writes_lines_with_it_and_sends_with_ctrl(
    visit: Visit, service: Any
):
    service.expect("one\ntwo", reply("Two lines."))
    alice = visit()
    page = alice.page
    page.goto("/settings/")
    page.get_by_label("Enter sends a message; when off, Ctrl+Enter does").uncheck()
    page.goto("/")
    box = page.get_by_label("First message")
    box.press_sequentially("one")
    box.press("Enter")
    box.press_sequentially("two")
    expect(box).to_have_value("one\ntwo")
    box.press("Control+Enter")
    page.wait_for_url(re.compile(r"/c/sesn_"))
    expect(alice.log).to_contain_text("Two lines.")
    expect(page.locator("#composer-hint")).to_contain_text("Ctrl+Enter sends")


def test_keys_open_what_goes_somewhere_and_the_list_of_keys(visit: Visit, service: Any):
    alice = visit()
    page = alice.page
    page.goto("/settings/")
    page.keyboard.press("Control+k")
    box = page.get_by_label("Name of a page, or words of a conversation")
    expect(box).to_be_focused()
    box.press_sequentially("provider")
    expect(page.locator(".go-list a")).to_have_text(["Provider keys"])
    box.press("ArrowDown")
    expect(page.locator(".go-list a")).to_be_focused()
    assert alice.audit() == ""
    # The list is drawn again, and the place in it is kept.
    with page.expect_response("**/go/?q=provider"):
        page.evaluate("htmx.trigger('#go-text', 'search')")
    expect(page.locator(".go-list a")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/keys/")

    # Typed before the palette is there: it goes into it, and to nothing else.
    on_its_way: list[Route] = []
    page.route("**/go/", lambda route: on_its_way.append(route))
    page.goto("/")
    page.locator("#id_message").fill("Not yet")
    with page.expect_request("**/go/"):
        page.keyboard.press("Control+k")
    page.keyboard.type("providerr")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.locator("#id_message")).to_have_value("Not yet")
    on_its_way[0].continue_()
    page.wait_for_url("**/settings/keys/")
    page.unroute("**/go/")

    page.goto("/settings/")
    page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    box.evaluate("box => { box.value = 'provider' }")  # as what is typed before anything listens
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/keys/")

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert alice.audit() == ""
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto("/settings/")
    page.get_by_label("Keys act").uncheck()
    page.keyboard.press("?")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_on_a_phone_words_have_room_while_the_agent_works(visit: Visit, service: Any):
    hold = Hold()
    path = "harbour/north/quay/of/the/old/town/depths.txt"
    service.expect(
        "Sound the northern quay",
        reply(call("write_file", path=path, content="Seven\n" * 100), call("list_files")),
        reply(say("It is ", hold, "deep."), chunk=3),
    )
    service.expect("And the southern one?", reply("Shallow."))
    alice = visit(phone=True)
    page = alice.page
    alice.begin("Sound the northern quay")
    expect(alice.answering).to_have_text("It is ")
    alice.send("And the southern one?")
    expect(page.locator("#queue [data-order]")).to_have_count(1)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()

    def width(selector: str) -> float:
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        return box["width"]

    assert width("#composer-text") > 300
    assert width("h1[data-conversation-title]") > 60
    # The lines that were written stand in one line, and the file's name at the end of its path can be read.
    counts = page.locator("#log details.group > summary .diff-counts").bounding_box()
    assert counts is not None
    assert counts["height"] < 30
    page.locator("#log details.group > summary").click()
    name = page.locator("#log .tool-title .path > .name")
    expect(name).to_have_text("/depths.txt")
    assert name.evaluate("part => part.scrollWidth <= part.clientWidth")
    title = page.locator("#log .tool-title").first.bounding_box()
    place = name.bounding_box()
    assert title is not None
    assert place is not None
    assert place["x"] + place["width"] <= title["x"] + title["width"] + 1
    assert alice.audit() == ""
    hold.release.set()
    expect(alice.log).to_contain_text("Shallow.")
