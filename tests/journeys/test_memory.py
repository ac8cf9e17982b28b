"""Tell an agent something, see in a new conversation why it was recalled, put it right, and forget it."""

from __future__ import annotations

from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.looks import looks_right
from tests.journeys.model_service import ModelService


@on_screen(phone=True)
def test_something_told_is_recalled_explained_put_right_and_forgotten(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    kettle = "phone" if phone else "desk"
    service.expect(
        f"The {kettle} kettle is red",
        reply(call("remember", text=f"The {kettle} kettle is red.", key=f"{kettle}-kettle")),
        reply("Noted."),
    )
    service.expect(f"Which colour has the {kettle} kettle?", reply("It is red."))

    alice.begin(f"The {kettle} kettle is red")
    expect(alice.log).to_contain_text("Noted.")
    page.goto("/settings/memory/")
    expect(page.locator("main")).to_contain_text(f"The {kettle} kettle is red.")
    looks_right(alice, "memory-list")
    page.get_by_role("link", name="About me", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How memories fade")
    page.get_by_label("Days until it is gone").fill("700" if phone else "701")
    page.get_by_role("button", name="Save as a dry run").click()
    expect(page.locator("main")).to_contain_text("Today nothing would fade.")
    looks_right(alice, "memory-fading")

    alice.begin(f"Which colour has the {kettle} kettle?")
    expect(alice.log).to_contain_text("It is red.")
    told = alice.log.locator(".remark").filter(has_text="Recalled")
    told.get_by_role("link", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What was recalled")
    expect(page.locator("main")).to_contain_text("found by:")
    looks_right(alice, "memory-why")
    shown = page.url

    page.get_by_role("link", name=f"The {kettle} kettle is red.").click()
    page.get_by_label("How it is").fill(f"The {kettle} kettle is blue.")
    page.get_by_role("button", name="Put right").click()
    expect(page.locator("main")).to_contain_text(f"The {kettle} kettle is red.")
    looks_right(alice, "memory-one")
    page.locator("dl").get_by_role("link", name=f"The {kettle} kettle is red").click()
    called = alice.log.locator(".unit").filter(has_text="remember").first
    expect(called).to_be_in_viewport()
    page.go_back()

    page.get_by_role("button", name="Forget", exact=False).click()
    expect(page.locator("main")).not_to_contain_text(f"The {kettle} kettle")
    looks_right(alice, "memory-forgotten")
    page.goto(f"/settings/memory/?q={kettle}+kettle")
    expect(page.locator("main")).not_to_contain_text(f"The {kettle} kettle")
    page.goto(shown)
    expect(page.get_by_role("heading", level=1)).to_have_text("What was recalled")
    expect(page.locator("main")).not_to_contain_text(f"The {kettle} kettle is")
    looks_right(alice, "memory-why-forgotten")
    service.expect(f"Is the {kettle} kettle blue?", reply("I do not know."))
    alice.begin(f"Is the {kettle} kettle blue?")
    expect(alice.log).to_contain_text("I do not know.")
    expect(alice.log.locator(".remark").filter(has_text="Recalled")).to_have_count(0)
    looks_right(alice, "memory-gone")
