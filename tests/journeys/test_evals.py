"""An owner makes a case of an answer, tries it, sees a version blocked, lets it pass, and takes a receipt."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from providers.scripted import reply
from receipts.verifying import public_key, verify
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.looks import looks_right
from tests.journeys.model_service import ModelService
from tests.journeys.site import Site

INSTRUCT = "tests.journeys.furnish:instruct"

RULE = "Never promise a refund."
CASE = f"""\
name: house-rule
input: Will you refund it?
told_date: '2026-01-02'
script:
  replies:
  - say: I pass this on.
    if_told: {RULE}
  - say: You will get a refund.
    unless_told: {RULE}
checks:
- name: promises no refund
  type: text
  none: [will get a refund]
"""


def try_it(page: Page, agent: str) -> None:
    """Start an evaluation from the suite's page, and look until it is over."""
    page.get_by_label("Agent", exact=True).select_option(label=agent)
    page.get_by_label("Play the cases' scripts").check()
    page.get_by_role("button", name="Start").click()
    badge = page.locator("#sum-title .badge")
    while badge.inner_text() == "running":
        page.get_by_role("link", name="Look again").click()
    expect(badge).to_have_text("done")


@on_screen(phone=False)
def test_a_version_that_forgets_a_rule_is_blocked_and_let_pass_with_a_reason(
    visit: Visit, site: Site, service: ModelService, phone: bool, tmp_path: Path
):
    alice = visit(phone=phone)
    page = alice.page
    name = f"Support {'phone' if phone else 'desk'}"
    service.expect(f"Hello, {name}", reply("Good day."))
    uid = alice.begin(f"Hello, {name}")
    expect(alice.log).to_contain_text("Good day.")
    alice.wait_for_status("idle")
    site.call(INSTRUCT, name=name, instructions=f"Help. {RULE}")

    page.goto("/evals/")
    page.locator("section", has=page.locator("#new-title")).get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create").click()
    looks_right(alice, "evals-suite-empty")
    suite = page.url
    page.goto(f"/c/{uid}/case/")
    page.get_by_label("Suite").select_option(label=name)
    page.get_by_role("button", name="Make it").click()
    expect(page.locator("textarea")).to_have_value(re.compile("Good day"))
    looks_right(alice, "evals-case")
    page.get_by_role("button", name="Delete this case").click()
    page.get_by_role("link", name="New case").click()
    page.locator("textarea").fill(CASE)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="house-rule")).to_be_visible()
    try_it(page, name)
    expect(page.locator("main")).to_contain_text("1/1 (100%)")

    page.goto("/evals/")
    page.get_by_role("link", name=name).last.click()
    page.get_by_text("Need a suite").click()
    page.get_by_label("Suite").select_option(label=name)
    page.get_by_label("Tries by the cases' scripts").check()
    page.get_by_role("button", name="Need it").click()
    site.call(INSTRUCT, name=name, instructions="Help.")
    page.goto(suite)
    try_it(page, name)
    page.get_by_text("Answer", exact=True).first.click()
    page.get_by_label("Your points").first.select_option("1")
    page.get_by_label("Why").first.fill("It says nothing of the rule.")
    page.get_by_role("button", name="Give").first.click()
    page.get_by_text("Answer", exact=True).first.click()
    expect(page.get_by_text("1 of 5 – It says nothing of the rule.")).to_be_visible()
    looks_right(alice, "evals-evaluation")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("main")).to_contain_text("1 case does worse")
    page.get_by_text("Answers", exact=True).click()
    looks_right(alice, "evals-comparison")
    page.goto(suite)
    looks_right(alice, "evals-suite")
    page.get_by_role("link", name="Settings", exact=True).last.click()
    looks_right(alice, "evals-settings")

    page.goto("/evals/")
    looks_right(alice, "evals-suites")
    page.get_by_role("link", name=name).last.click()
    expect(page.locator("main")).to_contain_text("house-rule: promises no refund")
    looks_right(alice, "evals-blocked")
    page.locator("#reason-2").fill("The rule is gone.")
    page.get_by_role("button", name="Release all the same").click()
    expect(page.locator("main")).to_contain_text("The rule is gone.")
    page.get_by_role("button", name="Roll back to the version before").click()
    expect(page.locator("main")).to_contain_text("Version 1 is in use.")
    looks_right(alice, "evals-released")
    page.locator("#canary-reason-2").fill("A try.")
    page.get_by_role("button", name="Make it the canary").click()
    expect(page.locator("main")).to_contain_text("10% of new conversations begin with version 2.")
    looks_right(alice, "evals-canary")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Roll back the canary").click()
    expect(page.locator("#canary-title")).to_have_count(0)

    page.goto(f"/c/{uid}/receipt/")
    looks_right(alice, "evals-receipt")
    receipt = downloaded(page, "Download the receipt", tmp_path)
    key = downloaded(page, "Public key", tmp_path)
    assert verify(receipt, public_key(key)).conversation == uid


def downloaded(page: Page, link: str, folder: Path) -> bytes:
    with page.expect_download() as begun:
        page.get_by_role("link", name=link).click()
    begun.value.save_as(folder / link)
    return (folder / link).read_bytes()
