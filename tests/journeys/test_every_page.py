"""Every page a person meets is accessible, in light and dark, and fits a phone.

That every page is in one of the lists here is proved by `tests/architecture/test_every_page_is_seen`. Without
`JOURNEYS=all` a part of each list is looked at (`forms.PARTS`), the others are fetched.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from providers.scripted import Hold, call, reply, say, think
from tests.journeys.conftest import Visit
from tests.journeys.every_event import steps
from tests.journeys.forms import IN_ALL, PARTS, in_part
from tests.journeys.people import NARROW
from tests.journeys.site import ROOT, Site

ANONYMOUS_PAGES = (
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/password/reset/",
    "/accounts/password/reset/done/",
    "/accounts/password/reset/key/1-wrong/",
    "/accounts/password/reset/key/done/",
    "/accounts/confirm-email/",
    "/accounts/confirm-email/wrong/",
    "/accounts/3rdparty/login/cancelled/",
    "/accounts/inactive/",
)
PAGES = (
    "/",
    "/?q=nothing-has-this",
    "/?archived=1",
    "/new/",
    "/agents/",
    "/agents/new/",
    "/agents/reviews/",
    "/evals/",
    "/folders/",
    "/brief/",
    "/timers/",
    "/settings/brief/",
    "/comparisons/",
    "/pipelines/",
    "/pipelines/?example=reviewed-answer",
    "/pipelines/waiting/",
    "/prompts/",
    "/prompts/sources/",
    "/schedules/",
    "/schedules/new/",
    "/go/",
    "/keyboard/",
    "/tasks/",
    "/tasks/mine/",
    "/skills/",
    "/skills/new/",
    "/skills/reviews/",
    "/skills/sources/",
    "/settings/",
    "/settings/documents/",
    "/settings/hooks/",
    "/settings/keys/",
    "/settings/links/",
    "/settings/mcp-registry/",
    "/settings/mcp-servers/",
    "/settings/memory/",
    "/settings/memory/forget/",
    "/settings/notifications/",
    "/settings/retention/",
    "/settings/steering/",
    "/settings/tokens/",
    "/settings/vaults/",
    "/settings/workers/",
    "/organisation/",
    "/organisation/webhooks/",
    "/usage/",
    "/usage/budgets/",
    "/approvals/",
    "/approvals/mine/",
    "/approvals/decided/",
    "/approvals/audit/",
    "/approvals/rules/",
    "/approvals/simulate/",
    "/operations/",
    "/operations/backlog/",
    "/operations/running/",
    "/operations/rescheduling/",
    "/operations/waiting/",
    "/operations/wakes/",
    "/operations/background/",
    "/operations/teams/",
    "/operations/subagents/",
    "/operations/letters/",
    "/operations/journal/",
    "/accounts/reauthenticate/",
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/2fa/totp/activate/",
    "/accounts/3rdparty/",
    "/accounts/logout/",
)
CONVERSATION_PAGES = (
    "/c/{uid}/",
    "/c/{uid}/budget/",
    "/c/{uid}/rename/",
    "/c/{uid}/model/",
    "/c/{uid}/context/",
    "/c/{uid}/steering/",
    "/c/{uid}/delete/",
    "/c/{uid}/tags/",
    "/c/{uid}/outcome/",
    "/c/{uid}/case/",
    "/c/{uid}/prompts/",
    "/c/{uid}/timeline/",
    "/c/{uid}/receipt/",
    "/c/{uid}/move/",
    "/c/{uid}/skills/",
    "/c/{uid}/skills/workspace/?place=.agents/skills/tidy",
    "/c/{uid}/tasks/",
    "/c/{uid}/team/",
    "/c/{uid}/memory/",
    "/c/{uid}/learned/",
    "/c/{uid}/subagents/",
    "/c/{uid}/share/",
    "/c/{uid}/link/",
    "/c/{uid}/files/",
    "/c/{uid}/files/view/?path=seen.py",
    "/c/{uid}/changes/",
    "/c/{uid}/changes/file/?path=seen.py",
    "/c/{uid}/changes/revert/?event=sevt_1&path=seen.py",
)

SKILL = "---\nname: tidy\ndescription: How we tidy up.\n---\nPut every cup on the shelf.\n"

# The one on a desk is looked at in the dark as well.
KINDS = pytest.mark.parametrize("kind", [{}, {"phone": True}], ids=["desk", "phone"])


@KINDS
def test_pages_for_everybody_are_accessible(visit: Visit, kind):
    check(visit(anonymous=True, **kind), ANONYMOUS_PAGES)


@KINDS
def test_pages_of_a_signed_in_person_are_accessible(visit: Visit, service, kind):
    # A page that lists what a person has done is looked at with something to list.
    service.expect("Something to list", reply("Here it is."))
    person = visit(**kind)
    person.begin("Something to list")
    person.wait_for_status("idle")
    check(person, PAGES, by_night=IN_ALL and not kind)


@KINDS
def test_pages_around_a_conversation_are_accessible(visit: Visit, service, kind):
    service.expect(
        "Write one file",
        reply(
            call("write_file", path="seen.py", content="x = 1\n"),
            call("write_file", path=".agents/skills/tidy/SKILL.md", content=SKILL),
        ),
        reply("Written."),
    )
    person = visit(**kind)
    uid = person.begin("Write one file")
    person.wait_for_status("idle")
    expect(person.log).to_contain_text("Written.")
    check(person, tuple(address.format(uid=uid) for address in CONVERSATION_PAGES))


@KINDS
def test_an_invitation_is_accessible(visit: Visit, kind):
    alice = visit(**kind)
    page = alice.page
    page.goto("/organisation/")
    page.locator("input[name=email]").fill(f"carol-{len(kind)}@example.org")
    page.get_by_role("button", name="Invite").click()
    link = page.locator("#invitation-link").input_value()
    assert alice.audit() == ""
    check(visit(anonymous=True, **kind), (link,))


@KINDS
def test_the_pages_of_a_webhook_are_accessible(visit: Visit, kind):
    alice = visit(**kind)
    page = alice.page
    page.goto("/organisation/webhooks/")
    page.locator("input[name=url]").fill("https://hooks.example.invalid/a-rather-long/address")
    page.locator("input[name=everything]").check()
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#secret")).to_have_value(re.compile("^whsec_"))
    assert alice.audit() == ""
    assert not overflows(page)
    page.get_by_role("button", name="Send a test event").click()
    # Nothing answers under such a name; the page shows it without being loaded again.
    expect(page.locator("#attempts")).to_contain_text("cannot be resolved")
    check_as_it_stands(alice)
    page.get_by_role("link", name="The endpoint").click()
    check(alice, (page.url, "/organisation/webhooks/"))


@KINDS
def test_the_pages_of_an_mcp_server_are_accessible(visit: Visit, kind):
    alice = visit(**kind)
    page = alice.page
    page.goto("/settings/mcp-servers/")
    page.locator("#id_name").fill(f"a-rather-long-name-{len(kind)}")
    page.locator("#id_url").fill("https://mcp.example.invalid/a-rather-long/address")
    page.get_by_role("button", name="Add and look at it").click()
    # Nothing answers under such a name.
    expect(page.locator("main")).to_contain_text("failing since")
    check_as_it_stands(alice)
    check(alice, ("/settings/mcp-servers/",))


@KINDS
def test_the_pages_of_a_vault_are_accessible(visit: Visit, kind):
    alice = visit(**kind)
    page = alice.page
    page.goto("/settings/vaults/")
    page.locator("input[name=display_name]").fill("A vault with a rather long name for a phone")
    page.get_by_role("button", name="Create").click()
    page.locator("input[name=mcp_server_url]").fill("https://api.example.org/a-rather-long/team")
    page.locator("#id_token").fill("a-token-that-is-long-enough")
    page.get_by_role("button", name="Store").click()
    page.get_by_text("Replace the secret").click()
    assert "a-token-that-is-long-enough" not in page.content()
    check_as_it_stands(alice)
    check(alice, ("/settings/vaults/",))


def check(person, addresses: tuple[str, ...], *, by_night: bool = False) -> None:
    """`by_night` where colours are met that no other page has."""
    found = []
    for place, address in enumerate(addresses, PARTS // 2 if person.phone else 0):
        if not in_part(place):
            assert person.context.request.get(address).status == 200, address
            continue
        answer = person.page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        rules = NARROW if person.phone and not IN_ALL else ()
        if report := person.audit(rules=rules, at_once=True):
            found.append(f"{address}\n{report}")
        if by_night and (report := person.audit_by_night()):
            found.append(f"{address} by night\n{report}")
        if overflows(person.page):
            found.append(f"{address}: wider than the window")
        if pairs := crowded(person.page):
            found.append(f"{address}: fields without a gap: {pairs}")
    assert not found, "\n".join(found)


def check_as_it_stands(person) -> None:
    """At the page as it stands, by all rules."""
    assert person.audit() == ""
    assert not overflows(person.page)
    assert crowded(person.page) == []


def overflows(page) -> bool:
    return bool(
        page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
    )


def crowded(page) -> list[str]:
    """Fields that touch the one above, by the first of their names."""
    pairs: list[str] = page.evaluate(
        """() => [...document.querySelectorAll(".field + .field")].filter((field) => {
          const above = field.previousElementSibling;
          const gap = field.getBoundingClientRect().top - above.getBoundingClientRect().bottom;
          return field.checkVisibility() && above.checkVisibility() && gap >= 0 && gap < 6;
        }).map((field) => field.innerText.split("\\n")[0])"""
    )
    return pairs


@KINDS
def test_a_conversation_is_accessible_in_each_of_its_states(
    visit: Visit, service, site: Site, kind
):
    person = visit(**kind)
    hold = Hold()
    service.expect(
        "Show each state",
        reply(
            think("Thinking about it."),
            say(
                "Working on it ",
                hold,
                "**now**.\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n",
            ),
            call("write_file", path="state.py", content="x = 1\n"),
        ),
        reply("Done."),
    )
    found = []

    def look() -> None:
        found.append(person.audit())
        if not kind:
            found.append(person.audit_by_night())

    person.begin()
    look()
    person.begin("Show each state", switches=("approval",))
    expect(person.answering).to_have_text("Working on it ")
    look()
    person.send("A queued message")
    expect(person.page.locator("#queue [data-order]")).to_have_count(1)
    look()
    hold.release.set()
    person.wait_for_status("waiting")
    look()
    person.page.locator('#log [data-action="allow"]').click()
    expect(person.page.locator("#queue [data-order]")).to_have_count(0)
    person.wait_for_status("idle")
    unfold_everything(person.page)
    look()
    assert not overflows(person.page)
    assert [report for report in found if report] == []


@KINDS
def test_every_type_of_event_is_accessible(visit: Visit, site: Site, kind):
    person = visit(**kind)
    uid = person.begin()
    site.append(uid, *[event for step in steps(uid[-8:]) for event in step])
    person.page.reload()
    expect(person.page.locator("#queue [data-order]")).to_have_count(1)
    unfold_everything(person.page)
    assert person.audit() == ""
    assert kind or person.audit_by_night() == ""
    assert not overflows(person.page)


def unfold_everything(page) -> None:
    page.evaluate(
        "() => document.querySelectorAll('#log details').forEach(d => { d.open = true; })"
    )


def test_the_picture_of_the_readme_can_be_taken(visit: Visit, service):
    """Written to `docs/images/` when UPDATE_SCREENSHOTS is 1; the page is checked either way."""
    person = visit()
    plan = ("Write the script", "Read the rows", "Write the summary")

    def todos(done: int) -> list[dict[str, str]]:
        return [
            {
                "content": step,
                "active_form": step.replace("Write", "Writing").replace("Read", "Reading"),
                "status": "completed" if place < done else "pending",
            }
            for place, step in enumerate(plan)
        ]

    table = (
        "| quarter | revenue | change |\n|---|---:|---:|\n"
        "| Q1 | 1.20 M | |\n| Q2 | 1.38 M | +15 % |\n| Q3 | 1.31 M | −5 % |\n"
    )
    service.expect(
        "Summarise the quarterly revenue and keep the script that does it",
        reply(
            think("A small script, then the summary."),
            say("I write a script that adds up the quarters, then the summary."),
            call("todo_write", todos=todos(1)),
            call(
                "write_file",
                path="revenue.py",
                content="import csv\n\n\ndef totals(path):\n    ...\n",
            ),
        ),
        reply(
            call(
                "edit_file",
                path="revenue.py",
                old_text="    ...\n",
                new_text="    with open(path) as file:\n        return list(csv.reader(file))\n",
            ),
            call("write_file", path="summary.md", content="# Revenue\n\n" + table),
            call("todo_write", todos=todos(3)),
        ),
        reply(
            f"Revenue grew until Q2 and fell a little in Q3.\n\n{table}\n"
            "The script is in `revenue.py`; run it again whenever the data changes."
        ),
    )
    person.begin("Summarise the quarterly revenue and keep the script that does it")
    expect(person.log).to_contain_text("whenever the data changes")
    person.wait_for_status("idle")
    expect(person.page.locator("#files a[href*='files/view']")).to_have_count(2)
    person.page.locator("#log details.group > summary").click()
    expect(person.page.locator("#log .tool-diff").first).to_be_visible()
    if os.environ.get("UPDATE_SCREENSHOTS") == "1":
        picture: Path = ROOT / "docs" / "images" / "conversation.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        person.page.mouse.move(0, 0)
        person.page.screenshot(path=picture)
