"""An owner writes a prompt, adds a version, compares the two and moves the label."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.looks import looks_right


@on_screen(phone=True)
def test_a_prompt_is_made_changed_compared_and_labelled(visit: Visit, phone: bool):
    alice = visit(phone=phone)
    page = alice.page
    page.goto("/prompts/")
    make = page.locator("section", has=page.locator("#new-title"))
    make.get_by_label("Name").fill("tone-phone" if phone else "tone-desk")
    make.get_by_label("Text").fill("Answer in a {{tone}} tone.")
    make.get_by_label("Variables").fill("tone = kind # how it speaks")
    make.get_by_role("button", name="Create").click()
    add = page.locator("section", has=page.locator("#add-title"))
    add.get_by_label("Text").fill("Answer {{person}} in a {{tone}} tone.")
    add.get_by_role("button", name="Add").click()
    labels = page.locator("section", has=page.locator("#labels-title"))
    labels.get_by_label("Label", exact=True).fill("production")
    labels.get_by_label("Version", exact=True).fill("2")
    labels.get_by_role("button", name="Move the label").click()
    expect(labels.get_by_role("link", name="version 2")).to_be_visible()
    looks_right(alice, "prompts-prompt")
    page.get_by_role("link", name=re.compile("^Version 2")).click()
    expect(page.locator("ins")).to_have_text("Answer {{person}} in a {{tone}} tone.")
    looks_right(alice, "prompts-version")


@on_screen(phone=True)
def test_a_source_that_is_away_says_so(visit: Visit, phone: bool):
    alice = visit(phone=phone)
    page = alice.page
    page.goto("/prompts/sources/")
    page.get_by_label("Address").fill(f"https://127.0.0.1/{'phone' if phone else 'desk'}")
    page.get_by_label("Key").fill("pk-lf-1:sk-lf-2")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Ask it now").click()
    expect(page.get_by_role("heading", name="Away since")).to_be_visible()
    looks_right(alice, "prompts-source")
    page.goto("/prompts/sources/")
    expect(page.locator("main")).to_contain_text("away since")
    looks_right(alice, "prompts-sources")
