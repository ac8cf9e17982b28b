"""From an empty directory to an agent's files, without a key and with one."""

from __future__ import annotations

from playwright.sync_api import expect

from providers.scripted import call, reply, say
from tests.journeys.conftest import Visit, set_up
from tests.journeys.people import Person
from tests.journeys.site import Site


def test_without_a_key_the_demo_agent_plans_and_writes_two_files(visit: Visit, tmp_path):
    with Site(tmp_path) as fresh:
        person = visit(at=fresh)
        assert fresh.setup_link
        set_up(person)
        person.begin("Please make a plan and write two files")
        # It streams: there is arriving text before the answer is a finished unit.
        expect(person.page.locator("#log .live").first).to_be_visible()
        person.wait_for_status("idle")
        see_the_work(person)
        # The link worked once.
        person.expected.append("status of 404")
        answer = person.page.goto(fresh.setup_link)
        assert answer is not None
        assert answer.status == 404
        person.page.close()


def see_the_work(person: Person) -> None:
    """Cards, a diff, a finished plan and two files that open."""
    page = person.page
    folded = page.locator("#log details.group:not([open]) > summary")
    while folded.count():
        folded.first.click()
    cards = page.locator('#log [data-kind="tool"]')
    written = cards.filter(has=page.locator(".tool-title", has_text="Created"))
    expect(written).to_have_count(2)
    for card in written.all():
        expect(card).to_have_attribute("data-state", "ok")
    assert page.locator("#log .tool-diff").count() >= 2
    todos = page.locator("#panel-todos li")
    assert todos.count() >= 2
    expect(page.locator("#panel-todos li.completed")).to_have_count(todos.count())
    files = page.locator("#files a[href*='files/view']")
    expect(files).to_have_count(2)
    name = files.first.inner_text().split()[0]
    files.first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(name)
    expect(dialog.locator("pre, iframe").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_with_a_messages_api_the_same_works_through_the_official_sdk(
    alice: Person, service, site: Site
):
    def todos(*states: str) -> list[dict[str, str]]:
        names = ("Write the page", "Write the style")
        return [
            {"content": name, "active_form": f"Doing {name}", "status": state}
            for name, state in zip(names, states, strict=True)
        ]

    service.expect(
        "Plan and write two files",
        reply(
            say("I plan first."), call("todo_write", todos=todos("in_progress", "pending")), chunk=4
        ),
        reply(
            call("write_file", path="page.html", content="<h1>Hello</h1>\n"),
            call("write_file", path="style.css", content="h1 { color: teal }\n"),
        ),
        reply(call("todo_write", todos=todos("completed", "completed"))),
        reply("Both files are **there**.", chunk=6),
    )
    uid = alice.begin("Plan and write two files")
    expect(alice.log).to_contain_text("Both files are there.")
    alice.wait_for_status("idle")
    see_the_work(alice)
    assert service.api.headers[-1]["authorization"] == "Bearer key-of-the-journeys"
    assert [event.type for event in site.events(uid)].count("session.status_idle") == 1
