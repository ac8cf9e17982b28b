"""A command in a conversation: asked for, allowed, watched while it runs, stopped; and one in the
background, with its chip."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from playwright.sync_api import expect

from providers.scripted import call, reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.patience import until

SHOTS = os.environ.get("JOURNEY_SHOTS", "")


def shot(page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png")


def processes_with(mark: str) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if mark in line and "ps -eo" not in line]


def bash(command: str):
    return reply(call("bash", command=command))


@in_form("light", "dark", "phone")
def test_a_command_is_asked_for_watched_reloaded_and_stopped(visit: Visit, service, kind, request):
    opening = f"Run it, please: {request.node.name}"
    mark = f"600.{os.getpid()}4"
    command = (
        f"echo begun; for i in 1 2 3; do echo line $i; sleep 0.2; done; sleep {mark} & sleep {mark}"
    )
    service.expect(opening, bash(command), reply("It was stopped."))
    alice = visit(**kind)
    # The test ends right after a reload, when its socket may still be on its way.
    page = alice.page
    alice.begin(opening)

    card = page.locator("#log .unit.tool")
    expect(card).to_have_attribute("data-state", "waiting")
    expect(card).to_contain_text(command)
    assert not processes_with(mark), "nothing runs before it is allowed"
    assert alice.audit() == ""
    shot(page, f"bash-asks-{request.node.callspec.id}")
    card.get_by_role("button", name="Allow", exact=True).click()

    output = card.locator("pre.live-output")
    expect(output).to_have_text("begun\nline 1\nline 2\nline 3\n")
    expect(card).to_have_attribute("data-state", "running")
    assert alice.audit() == ""
    shot(page, f"bash-runs-{request.node.callspec.id}")

    page.reload()
    expect(page.locator("#log pre.live-output")).to_have_text("begun\nline 1\nline 2\nline 3\n")
    until(lambda: len(processes_with(f"sleep {mark}")) >= 2)

    page.get_by_role("button", name="Stop").click()
    alice.wait_for_status("stopped")
    until(lambda: not processes_with(f"sleep {mark}"))
    card = page.locator("#log .unit.tool")
    expect(card).to_have_attribute("data-state", "stopped")
    expect(card.locator("pre.live-output")).to_have_count(0)
    expect(card.locator("pre.output")).to_have_text("begun\nline 1\nline 2\nline 3")
    assert alice.audit() == ""
    shot(page, f"bash-stopped-{request.node.callspec.id}")

    screen = alice.screen()
    page.reload()
    alice.looks_like(screen)


def test_a_decision_made_without_a_line_is_sent_when_the_line_is_back(visit: Visit, service):
    service.expect("Run it later", bash("echo it ran"), reply("It ran."))
    alice = visit()
    alice.expected += ["ERR_INTERNET_DISCONNECTED", "htmx"]
    alice.begin("Run it later")
    card = alice.page.locator("#log .unit.tool")
    allow = card.get_by_role("button", name="Allow", exact=True)
    expect(allow).to_be_visible()
    alice.context.set_offline(True)
    expect(alice.page.locator("#connection")).to_be_visible()
    allow.click()
    expect(allow).to_be_disabled()
    expect(alice.page.locator("#alert")).to_be_hidden()
    alice.context.set_offline(False)
    expect(alice.log).to_contain_text("It ran.")
    expect(card).to_have_attribute("data-state", "ok")


def test_a_finished_command_shows_code_time_output_and_errors(visit: Visit, service):
    service.expect(
        "Fail for me", bash("echo fine; echo wrong >&2; exit 3"), reply("It failed with 3.")
    )
    alice = visit()
    alice.begin("Fail for me")
    card = alice.page.locator("#log .unit.tool")
    card.get_by_role("button", name="Allow", exact=True).click()
    expect(card.locator(".exit-code")).to_have_text("exit code 3")
    expect(card.locator("pre.output").first).to_have_text("fine")
    expect(card.locator("pre.stderr")).to_have_text("wrong")
    alice.wait_for_status("idle")
    assert alice.audit() == ""
    shot(alice.page, "bash-failed")


@in_form("phone", "light", "dark")
def test_a_background_command_has_a_chip_and_is_cancelled_from_it(
    visit: Visit, service, kind, request
):
    opening = f"In the background: {request.node.name}"
    mark = f"600.{os.getpid()}3"
    service.expect(
        opening,
        reply(call("background_run", command=f"echo serving; sleep {mark}")),
        reply("It runs."),
        reply("It was cancelled."),
    )
    alice = visit(**kind)
    page = alice.page
    alice.begin(opening)
    page.locator("#log .unit.tool").get_by_role("button", name="Allow", exact=True).click()
    alice.wait_for_status("idle")

    chip = page.locator("#panel-background")
    expect(chip).to_contain_text("1 background command runs")
    chip.locator("summary").click()
    expect(chip).to_contain_text("echo serving")
    assert alice.audit() == ""
    shot(page, f"background-{request.node.callspec.id}")
    page.reload()
    chip.locator("summary").click()
    chip.get_by_role("button", name="Cancel").click()
    expect(page.locator("#log [data-kind=notice]")).to_contain_text("Background command cancelled")
    expect(chip.locator("details")).to_have_count(0)
    expect(alice.log).to_contain_text("It was cancelled.")
    until(lambda: not processes_with(f"sleep {mark}"))
    shot(page, f"background-ended-{request.node.callspec.id}")
