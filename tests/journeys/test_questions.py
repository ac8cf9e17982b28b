"""An agent's questions: one form, answered with mouse, keyboard or finger, from any tab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.patience import until

QUESTIONS = [
    {
        "header": "Database",
        "question": "Which database shall the inventory use?",
        "options": [
            {"label": "PostgreSQL", "description": "A server of its own; many may write at once."},
            {"label": "SQLite", "description": "One file beside the program; nothing to run."},
        ],
    },
    {
        "question": "Which parts shall have tests first?",
        "options": [{"label": "Models"}, {"label": "Views"}, {"label": "Jobs"}],
        "multi_select": True,
        "free_text": False,
    },
    {"question": "What else should I know?"},
]
TOLD = (
    "Which database shall the inventory use?\n→ SQLite\n\n"
    "Which parts shall have tests first?\n→ Models, Jobs\n\n"
    "What else should I know?\n→ “Keep it small.”"
)


@pytest.fixture
def words(service, request) -> str:
    """What to ask the agent so that it asks back."""
    text = f"Plan an inventory: {request.node.name}"
    service.expect(text, reply(call("ask_user", questions=QUESTIONS)), reply("I have what I need."))
    return text


def look(page: Page, name: str) -> None:
    """Leaves a picture for whoever names a directory in JOURNEY_PICTURES."""
    if folder := os.environ.get("JOURNEY_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def form_of(person: Person) -> Locator:
    form = person.log.locator("[data-questions]")
    expect(form).to_be_visible()
    return form


def result_in(site: Site, uid: str) -> str:
    (event,) = [row for row in site.events(uid) if row.type == "user.custom_tool_result"]
    return str(event.payload["content"][0]["text"])


@in_form("phone", "light", "dark")
def test_questions_are_answered_in_one_form(visit: Visit, site: Site, words: str, kind):
    alice = visit(**kind)
    uid = alice.begin(words)
    form = form_of(alice)
    expect(form.get_by_role("group", name="Which database")).to_be_visible()
    assert alice.audit() == ""
    form.get_by_label("SQLite").check()
    form.get_by_label("Models").check()
    form.get_by_label("Jobs").check()
    form.get_by_label("What else should I know?").fill("Keep it small.")
    name = "-".join(kind) or "light"
    look(alice.page, f"questions-{name}")
    alice.page.reload()
    form = form_of(alice)
    expect(form.get_by_label("SQLite")).to_be_checked()
    expect(form.get_by_label("What else should I know?")).to_have_value("Keep it small.")
    form.get_by_role("button", name="Answer").click()
    expect(alice.log).to_contain_text("I have what I need.")
    expect(alice.log).to_contain_text("Answered by alice")
    assert result_in(site, uid) == TOLD
    assert alice.audit() == ""
    look(alice.page, f"answered-{name}")
    alice.wait_for_status("idle")
    live = alice.screen()
    alice.page.reload()
    expect(alice.log).to_contain_text("I have what I need.")
    alice.looks_like(live)


def test_the_keyboard_alone_answers_and_enter_alone_never_does(
    visit: Visit, site: Site, words: str
):
    alice = visit()
    uid = alice.begin(words)
    form = form_of(alice)
    first = form.get_by_label("PostgreSQL")
    first.focus()
    alice.page.keyboard.press("Space")
    alice.page.keyboard.press("ArrowDown")
    expect(form.get_by_label("SQLite")).to_be_checked()
    alice.page.keyboard.press("Enter")
    expect(form).to_be_visible()
    for _step in range(2):
        alice.page.keyboard.press("Tab")
    expect(form.get_by_label("Models")).to_be_focused()
    alice.page.keyboard.press("Space")
    form.get_by_role("button", name="Answer").focus()
    alice.page.keyboard.press("Enter")
    expect(alice.log).to_contain_text("I have what I need.")
    assert result_in(site, uid).startswith("Which database shall the inventory use?\n→ SQLite\n")


def test_an_answer_in_another_tab_is_told_and_what_was_typed_here_is_kept(visit: Visit, words: str):
    alice = visit()
    alice.begin(words)
    other = alice.new_tab()
    other.goto(alice.page.url)
    form = form_of(alice)
    form.get_by_label("What else should I know?").fill("I was not done yet")
    form.get_by_role("button", name="Skip").wait_for()
    other.get_by_role("button", name="Skip the questions").click()
    expect(alice.page.locator("#alert")).to_contain_text("answered in the meantime")
    expect(alice.page.locator("#composer textarea")).to_have_value("I was not done yet")
    expect(alice.log).to_contain_text("chose not to answer")
    alice.page.locator("#composer textarea").fill("")


def test_a_message_in_place_of_an_answer_goes_on(visit: Visit, words: str):
    alice = visit()
    alice.begin(words)
    form_of(alice)
    alice.send("Whatever you think best.")
    expect(alice.log).to_contain_text("I have what I need.")
    expect(alice.log.locator("[data-questions]")).to_have_count(0)
    expect(alice.page.locator("#queue [data-order]")).to_have_count(0)


def test_nothing_chosen_is_said_and_sends_nothing(visit: Visit, site: Site, words: str):
    alice = visit()
    uid = alice.begin(words)
    form_of(alice).get_by_role("button", name="Answer").click()
    expect(alice.page.locator("#alert")).to_contain_text("Choose something")
    assert "user.custom_tool_result" not in {row.type for row in site.events(uid)}


def test_a_stop_answers_the_questions_as_stopped(visit: Visit, words: str):
    alice = visit()
    alice.begin(words)
    form_of(alice)
    alice.page.locator('#composer [data-action="stop"]').click()
    expect(alice.log).to_contain_text("Stopped by a person")
    expect(alice.log.locator("[data-questions]")).to_have_count(0)


def test_without_script_the_form_is_posted(chromium, signed_in, site: Site, visit: Visit, words):
    uid = visit().begin(words)
    context = chromium.new_context(
        base_url=site.address, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()

    def asked() -> bool:
        page.goto(f"/c/{uid}/")
        return bool(page.locator("[data-questions]").count())

    until(asked)
    page.get_by_label("SQLite").check()
    page.get_by_label("Models").check()
    page.get_by_label("Jobs").check()
    page.get_by_label("What else should I know?").fill("Keep it small.")
    page.get_by_role("button", name="Answer").click()
    page.wait_for_url(f"**/c/{uid}/")
    expect(page.locator("#log")).to_contain_text("Answered by alice")
    assert result_in(site, uid) == TOLD
    context.close()


@in_form("dark", "light", "phone")
def test_staff_see_each_tools_card(visit: Visit, kind):
    staff = visit(**kind)
    page = staff.page
    name = "-".join(kind) or "light"
    page.goto("/admin/agents/agent/tools/")
    expect(page.locator("#tool-web_fetch")).to_contain_text("untrusted answers")
    page.locator("#tool-web_fetch summary").click()
    page.locator("#tool-web_fetch").scroll_into_view_if_needed()
    look(page, f"admin-tools-{name}")
    page.goto("/admin/agents/agent/")
    expect(page.locator('a[href="/admin/agents/agent/tools/"]').first).to_be_attached()
