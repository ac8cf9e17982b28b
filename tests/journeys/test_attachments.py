"""Files that a person sends along: chosen, pasted and dropped, on a desktop and on a phone."""

from __future__ import annotations

import base64
import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.papers import letter
from tests.pictures import picture

NOTES = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Seven metres."}
LETTER = {"name": "quay.docx", "mimeType": "", "buffer": letter("Seven metres.")}
LARGE = {"name": "large.bin", "mimeType": "", "buffer": b"\0" * (10 * 1024**2 + 1)}
GIVE = """(element, [kind, name, type, body]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(body), (each) => each.charCodeAt(0))], name, { type }));
  const more = kind === "paste" ? { clipboardData: data } : { dataTransfer: data };
  const made = kind === "paste" ? ClipboardEvent : DragEvent;
  element.dispatchEvent(new made(kind, { bubbles: true, cancelable: true, ...more }));
}"""


def give(element: Locator, kind: str, name: str, form: str, body: bytes) -> None:
    """As a person pastes or drops a file."""
    element.evaluate(GIVE, [kind, name, form, base64.b64encode(body).decode()])


def choose(page: Page, *files: Any) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").press("Enter")
    chooser.value.set_files(list(files))


def chips(page: Page, state: str = "done") -> Locator:
    return page.locator(f'.chip[data-state="{state}"]')


def test_files_go_with_the_first_message_and_with_later_ones(
    alice: Person, service: Any, site: Site
):
    page = alice.page
    service.expect("What is this?", reply("A square and a letter."))
    service.expect("And this?", reply("Notes."))
    page.goto("/new/")
    box = page.get_by_label("First message")
    box.fill("What is this?")
    choose(page, LETTER)
    give(box, "paste", "square.png", "image/png", picture())
    expect(chips(page)).to_have_count(2)
    assert alice.audit() == ""
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/sesn_"))
    expect(alice.log).to_contain_text("A square and a letter.")
    expect(alice.log.get_by_role("link", name="quay.docx")).to_be_visible()
    expect(alice.log.get_by_role("img", name="Image")).to_be_visible()
    uid = page.url.rstrip("/").rpartition("/")[2]
    (sent,) = (event for event in site.events(uid) if event.type == "user.message")
    assert [block["type"] for block in sent.payload["content"]] == ["text", "image"]
    paths = [file["path"] for file in sent.payload["files"]]
    assert paths == ["uploads/quay.docx", "uploads/square.png"]

    # Too large: said beside the file; the text and the other file stay.
    composer = page.locator("#composer")
    composer.locator("textarea").fill("And this?")
    choose(page, LARGE)
    give(page.locator("#log"), "drop", "notes.txt", "text/plain", b"Seven metres.")
    expect(chips(page, "failed")).to_contain_text("It is larger than 10 MB")
    expect(chips(page)).to_contain_text("notes.txt")
    composer.locator("textarea").press("Enter")
    expect(composer).to_contain_text("Not sent: a file could not be attached.")
    expect(composer.locator("textarea")).to_have_value("And this?")
    assert alice.audit() == ""
    page.get_by_role("button", name="Remove large.bin").press("Enter")
    expect(page.get_by_role("button", name="Remove notes.txt")).to_be_focused()
    # A draft is kept with its files.
    page.reload()
    expect(chips(page)).to_contain_text("notes.txt")
    composer.locator("textarea").press("Enter")
    expect(alice.log).to_contain_text("Notes.")
    expect(chips(page)).to_have_count(0)
    expect(page.get_by_role("link", name="uploads/notes.txt", exact=True)).to_be_visible()
    page.reload()
    expect(alice.log).to_contain_text("Notes.")
    expect(chips(page)).to_have_count(0)


def test_on_a_phone_a_failed_upload_is_tried_again_and_sending_waits_for_it(
    visit: Visit, service: Any
):
    person = visit(phone=True)
    page = person.page
    person.expected.append("Failed to load resource")
    service.expect("Look at this", reply("Seven metres."))
    person.begin()
    composer = page.locator("#composer")
    composer.locator("textarea").fill("Look at this")
    page.route("**/attachments/*", lambda route: route.abort())
    choose(page, NOTES)
    expect(chips(page, "failed")).to_contain_text("It could not be uploaded.")
    for control in page.locator("#composer button:visible").all():
        size = control.bounding_box()
        assert size is not None
        assert min(size["width"], size["height"]) >= 44
    assert person.audit() == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.unroute("**/attachments/*")
    held: list[Any] = []
    page.route("**/attachments/*", lambda route: held.append(route))
    page.get_by_role("button", name="Try notes.txt again").tap()
    expect(chips(page, "uploading")).to_be_visible()
    page.get_by_role("button", name="Send", exact=True).tap()
    expect(composer).to_contain_text("The message is sent as soon as its files are uploaded.")
    expect(composer.locator("textarea")).to_have_value("Look at this")
    held[0].continue_()
    expect(person.log).to_contain_text("Seven metres.")
    expect(person.log.get_by_role("link", name="notes.txt")).to_be_visible()
    expect(composer.locator("textarea")).to_have_value("")
