"""A person has her brief written by a model: she switches it on, it comes, and stands above its lines."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.model_service import BRIEF, ModelService
from tests.journeys.test_schedules import looks_right, make
from tests.patience import PATIENCE

SAID = """**One schedule** ran: the harbour is quiet, and two prices rose.
Nothing failed. See [the report](https://evil.example/) for more."""


@in_form("phone", "light", "dark")
def test_a_brief_is_written_by_a_model_above_its_lines(
    visit: Visit, service: ModelService, kind: dict[str, bool]
):
    alice = visit(**kind)
    page = alice.page
    look = "-".join(kind) or "light"
    task = f"Look at the harbour, {look}"
    service.expect(task, reply("The harbour is quiet."))
    service.expect(BRIEF, reply(SAID))
    make(page, f"Harbour, {look}", task)
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("main")).to_contain_text("The harbour is quiet.")

    page.goto("/settings/brief/")
    page.get_by_label("Send me a brief").check()
    page.get_by_label("With a short text that a model writes").check()
    page.get_by_text("Which model writes it").click()
    expect(page.get_by_role("radio", name="The server's choice")).to_be_checked()
    looks_right(alice, f"brief-settings-{look}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("With a short text that a model writes")).to_be_checked()

    page.goto("/brief/")
    before = page.get_by_role("region", name="Earlier ones").get_by_role("link").count()
    alice.site.let_briefs_be_due()
    earlier = page.get_by_role("region", name="Earlier ones").get_by_role("link")
    end = time.monotonic() + PATIENCE
    while earlier.count() == before:
        assert time.monotonic() < end
        page.wait_for_timeout(500)
        page.reload()
    earlier.first.click()
    text = page.get_by_role("region", name="In short")
    while not text.count():
        assert time.monotonic() < end
        page.wait_for_timeout(500)
        page.reload()
    expect(text).to_contain_text("One schedule ran: the harbour is quiet, and two prices rose.")
    expect(text).to_contain_text("claude-haiku-5-5 wrote this from the lines below.")
    expect(text.get_by_role("link")).to_have_count(0)
    expect(page.locator("main")).not_to_contain_text("evil.example")
    expect(page.get_by_role("region", name="Ran", exact=True)).to_contain_text("The harbour is")
    looks_right(alice, f"brief-written-{look}")
    page.goto("/settings/brief/")
    page.get_by_label("Send me a brief").uncheck()
    page.get_by_label("With a short text that a model writes").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
