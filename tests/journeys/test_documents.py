"""Make a collection, upload a handbook, ask about it, and open what the answer cites."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.looks import looks_right
from tests.journeys.model_service import ModelService
from tests.patience import until

PAGES = (
    "# Travel\n\nTrains are booked in second class.\n\n# Meals\n\n{word} costs 14 euros at most.\n"
)


@on_screen(phone=True)
def test_an_answer_cites_a_passage_of_what_was_uploaded(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page, word = alice.page, "Dinner" if phone else "Lunch"
    page.goto("/settings/documents/")
    page.get_by_label("Name").fill(f"Handbooks of {word}")
    looks_right(alice, "collections")
    page.get_by_role("button", name="Create", exact=True).click()
    page.locator("input[type=file]").set_input_files(
        {
            "name": f"handbook-of-{word}.md",
            "mimeType": "text/markdown",
            "buffer": PAGES.format(word=word).encode(),
        }
    )
    page.get_by_role("button", name="Upload").click()
    document = page.get_by_role("listitem").filter(has_text=f"handbook-of-{word}.md")

    def is_read() -> bool:
        page.reload()
        return "2 passages" in document.inner_text()

    until(is_read)
    page.get_by_label("Words").fill(f"What does {word} cost?")
    page.get_by_role("button", name="Search").click()
    found = page.locator("a[href^='/passages/']").first
    expect(page.locator("main")).to_contain_text(f"{word} costs 14 euros at most.")
    looks_right(alice, "collection")
    passage = found.get_attribute("href")
    assert passage

    service.expect(
        f"What may {word} cost?",
        reply(call("search_documents", query=f"{word} costs")),
        reply(f"{word} costs 14 euros at most [1]({passage})."),
    )
    alice.begin(f"What may {word} cost?")
    cited = alice.log.locator(f"article a[href='{passage}']")
    expect(cited).to_be_visible()
    looks_right(alice, "cited")
    with page.expect_popup() as opened:
        cited.click()
    expect(opened.value).to_have_url(re.compile(re.escape(passage)))
    expect(opened.value.locator("main")).to_contain_text(f"{word} costs 14 euros at most.")
    page.goto(passage)
    looks_right(alice, "passage")
