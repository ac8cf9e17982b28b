"""The server dies in mid-answer and comes back: nothing that was said or asked is lost."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from providers.scripted import Hold, reply, say
from tests.journeys.conftest import Visit, set_up
from tests.journeys.model_service import ModelService
from tests.journeys.site import Site
from tests.patience import until


def test_a_killed_server_loses_neither_the_text_so_far_nor_a_message_nor_the_page(
    visit: Visit, service: ModelService, tmp_path: Path
):
    settings = {
        "ANTHROPIC_API_KEY": "key-of-the-journeys",
        "ANTHROPIC_BASE_URL": service.base_url,
        "AGENTSITE_SWEEP_SECONDS": "3",  # each costs as much as a page
        "AGENTSITE_LEASE_SECONDS": "10",
    }
    hold = Hold()
    service.expect(
        "Survive this",
        reply(say("Said before the end. ", hold, "never")),
        reply("Said after it."),
    )
    service.expect("And this", reply("Heard you as well."))
    with Site(tmp_path, settings) as fresh:
        person = visit(at=fresh)
        person.expected += ["ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "WebSocket", "htmx"]
        set_up(person)
        uid = person.begin("Survive this")
        expect(person.answering).to_have_text("Said before the end. ")
        until(lambda: "Said before the end." in fresh.partial_text(uid))
        fresh.kill()
        expect(person.page.locator("#connection")).to_be_visible()
        person.send("And this")
        expect(person.page.locator("#pending")).to_contain_text("And this")
        fresh.start()
        expect(person.page.locator("#connection")).to_be_hidden(timeout=60_000)
        expect(person.log).to_contain_text("Said before the end.")
        expect(person.log).to_contain_text("Heard you as well.")
        expect(person.page.locator("#pending")).to_be_hidden()
        person.wait_for_status("idle")
        types = [event.type for event in fresh.events(uid)]
        assert types.count("user.message") == 2
        live = person.screen()
        person.page.reload()
        expect(person.log).to_contain_text("Heard you as well.")
        person.looks_like(live)
        person.page.close()
    hold.release.set()
