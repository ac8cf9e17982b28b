"""What an agent did is read from its cards, its changed files and its files, which are drawn and run
nothing."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form

SHOTS = os.environ.get("JOURNEY_SHOTS", "")
PAGE = (
    "<style>h1 { color: teal }</style><h1>Harbour</h1>"
    '<script>document.title = "ran"; document.body.append("it ran")</script>'
    '<meta http-equiv="refresh" content="0;url=/settings/">'
    '<form action="/accounts/logout/" method="post"><button>Out</button></form>'
)
DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40" onload="top.ran = 1">'
    '<script>top.ran = 1</script><rect width="80" height="40" fill="teal"/></svg>'
)
DIAGRAM = "```mermaid\nflowchart LR\n  A[Ship] -->|pays| B{Harbour}\n  B --> C((Quay))\n```"
NOTES = (
    "# Notes\n\nShips sleep[^1] at the quay.\n\n"
    "| ship | dues |\n|---|---|\n| Ada | 4 |\n\n[^1]: At night.\n"
)


@in_form("phone", "light", "dark")
def test_cards_changed_files_and_previews(visit: Visit, service, kind, request):
    who = request.node.callspec.id

    def shot(name: str) -> None:
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"cards-{name}-{who}.png")

    opening = f"Show me everything: {who}"
    todos = [
        {"content": f"Step {n}", "active_form": f"Doing step {n}", "status": state}
        for n, state in enumerate(("completed", "in_progress", "pending"))
    ]
    service.expect(
        opening,
        reply(
            call("write_file", path="app.py", content="def total():\n    return 1\n"),
            call("write_file", path="notes.md", content=NOTES),
            call("write_file", path="page.html", content=PAGE),
            call("write_file", path="dues.csv", content='ship,dues\n"Ada, the",=1+1\n'),
            call("write_file", path="flag.svg", content=DRAWING),
            call("todo_write", todos=todos),
        ),
        reply(call("edit_file", path="app.py", old_text="return 1", new_text="return 2")),
        reply(f"Done[^n].\n\n{DIAGRAM}\n\n```text\n{'B' * 200}\n```\n\n[^n]: As you see."),
    )
    alice = visit(whole=True, **kind)
    page = alice.page
    alice.begin(opening, switches=("approval",))
    cards = page.locator("#log .unit.tool")
    expect(cards).to_have_count(6)
    expect(cards.first.locator(".tool-title")).to_have_text("Write app.py")
    expect(cards.first.locator(".approval .diff-added")).to_have_count(2)
    arguments = cards.first.locator("[data-fold=arguments]")
    expect(arguments).to_have_js_property("open", False)
    assert alice.audit() == ""
    cards.first.scroll_into_view_if_needed()
    shot("asks")
    page.get_by_role("button", name="Allow all").click()
    edit = page.locator("#log .unit.tool", has_text="Edit app.py")
    expect(edit.locator(".approval .diff-removed")).to_contain_text("return 1")
    expect(edit).to_contain_text("May the agent change this file exactly so?")
    edit.scroll_into_view_if_needed()
    shot("edit-asks")
    edit.get_by_role("button", name="Allow", exact=True).click()
    expect(alice.log).to_contain_text("Done")
    alice.wait_for_status("idle")
    edited = page.locator("#log .tool-title", has_text="Edited app.py")
    expect(edited).to_have_count(1)
    tasks = page.locator("#panel-todos .todos")
    expect(tasks).to_contain_text("1 of 3 done")
    expect(tasks).to_have_js_property("open", False)
    drawn = page.locator("#log figure.diagram img")
    expect(drawn).to_have_js_property("complete", True)
    assert drawn.evaluate("picture => picture.naturalWidth") > 100
    source = page.locator("#log details.source")
    expect(source.locator(".language")).not_to_be_visible()
    source.locator("summary").click()
    expect(source.locator(".language")).to_have_text("mermaid")
    source.locator("summary").click()
    note = page.locator("#log sup.note a")
    expect(page.locator(note.get_attribute("href") or "")).to_have_text("As you see.")
    assert alice.audit() == ""
    shot("done")

    # Long lines are wrapped everywhere once that is wished, also after a reload.
    code = page.locator("#log .prose > figure.code pre")
    size = "box => getComputedStyle(box).fontSize"
    assert code.locator("code").evaluate(size) == code.evaluate(size)
    runs_on = "box => box.scrollWidth > box.clientWidth + 1"
    assert code.evaluate(runs_on)
    page.get_by_role("button", name="Wrap lines", exact=True).click()
    assert not code.evaluate(runs_on)
    screen = alice.screen()
    page.reload()
    alice.looks_like(screen)
    assert not code.evaluate(runs_on)
    page.get_by_role("button", name="Do not wrap lines").first.click()

    if kind.get("phone"):
        page.get_by_role("button", name="Files and details").tap()
    changes = page.locator("#changes")
    expect(changes.locator("li")).to_have_count(5)
    expect(changes.locator("li", has_text="app.py")).to_contain_text("+3")
    shot("aside")
    changes.get_by_role("link", name="app.py", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("table.diff")).to_have_count(2)
    assert alice.audit() == ""
    shot("change")
    page.keyboard.press("Escape")

    files = page.locator("#files")

    def look_at(name: str) -> None:
        files.get_by_role("link", name=name, exact=True).click()
        expect(dialog.locator(".file-title")).to_have_text(name)

    look_at("notes.md")
    expect(dialog.locator(".file-prose h3")).to_have_text("Notes")
    assert alice.audit() == ""
    shot("markdown")
    dialog.get_by_role("link", name="Show its text").click()
    expect(dialog.locator(".code-view")).to_contain_text("# Notes")
    page.keyboard.press("Escape")

    look_at("dues.csv")
    expect(dialog.locator("td").last).to_have_text("=1+1")
    assert alice.audit() == ""
    shot("table")
    page.keyboard.press("Escape")

    alice.expected += ["Blocked script execution", "policy: script-src", "sandboxed"]
    look_at("flag.svg")
    drawn = dialog.locator(".picture-view img")
    expect(drawn).to_be_visible()
    assert (
        drawn.evaluate("async image => { await image.decode(); return image.naturalWidth }") == 80
    )
    assert alice.audit() == ""
    shot("svg")
    page.keyboard.press("Escape")

    look_at("page.html")
    inside = page.frame_locator("iframe.page-view")
    expect(inside.locator("h1")).to_have_text("Harbour")
    expect(inside.locator("h1")).to_have_css("color", "rgb(0, 128, 128)")
    inside.get_by_role("button", name="Out").click()
    expect(inside.locator("body")).not_to_contain_text("it ran")
    assert [frame.url for frame in page.frames if "/files/page/" in frame.url]
    assert alice.audit() == ""
    shot("html")
    assert page.evaluate("window.ran") is None

    # Its own address, opened by itself, has no more rights.
    address = page.locator("iframe.page-view").get_attribute("src")
    assert address is not None
    other = alice.new_tab()
    other.goto(address)
    expect(other.locator("h1")).to_have_text("Harbour")
    assert other.evaluate("document.title") == ""
    assert other.evaluate("window.origin") == "null"
    assert "/files/page/" in other.url
