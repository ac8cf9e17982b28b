"""A browser signs up by a button, shows what is pushed to it, and a click opens the page.

No browser's push service is within reach of these tests: what it would give the browser is given here. What
the site sends goes to one on loopback, and what that would carry on comes by the browser's own tools. How
services refuse is tried in `tests/notices`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Worker, expect

from providers.scripted import call, reply
from tests.journeys.model_service import ModelService
from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.notices.pushservice import BrowserAt, PushService, Received, signed_by
from tests.patience import PATIENCE, until

SUBSCRIBED = """
    PushManager.prototype.subscribe = async (options) => {
        if (options.applicationServerKey.length !== 65 || !options.userVisibleOnly) throw new Error();
        const {endpoint, ...keys} = SUBSCRIPTION;
        return {toJSON: () => ({endpoint, keys})};
    };
"""
SHOWN = """async () => (await registration.getNotifications()).map(
    ({title, body, data}) => ({title, body, url: data.url}))"""
CLICKED = """async () => {
    const went = [];
    clients.openWindow = async (url) => went.push(`opened ${url}`);
    WindowClient.prototype.focus = async function () { went.push(`focused ${this.url}`); };
    const [notification] = await registration.getNotifications();
    const click = new NotificationEvent("notificationclick", {notification});
    let done;
    click.waitUntil = (promise) => { done = promise; };
    dispatchEvent(click);
    await done;
    return [went, (await registration.getNotifications()).length];
}"""


@pytest.fixture
def alice(whole_chromium: Browser, site: Site, signed_in: Path) -> Iterator[Person]:
    person = Person(whole_chromium, site, state=signed_in)
    yield person
    assert person.leave() == []


def test_a_browser_takes_pushes_and_a_click_on_one_opens_its_page(alice: Person):
    page, site = alice.page, alice.site.address
    signed_up_at(alice, BrowserAt("https://push.example.org/alice"))
    expect(page.get_by_text("Chrome · Linux")).to_be_visible()

    worker = worker_of(alice)
    push = _deliverer(alice)
    # Whoever looks at the site is not told what is for who is away; the next one shows that it came.
    push({"title": "Not now", "url": "/approvals/", "away": True})
    first = {"title": "Prices", "body": "The agent is done.", "url": "/new/"}
    _push_until_shown(alice, worker, push, {**first, "away": False, "tag": "a"}, first)
    assert worker.evaluate(CLICKED) == [[f"opened {site}/new/"], 0]
    # A page that is open already comes to the front.
    test = {"title": "Test", "url": "/settings/notifications/"}
    _push_until_shown(alice, worker, push, {**test, "tag": "b"}, {**test, "body": ""})
    assert worker.evaluate(CLICKED) == [[f"focused {site}/settings/notifications/"], 0]
    # And never one of another site.
    elsewhere = {"title": "Elsewhere", "url": "https://elsewhere.example/"}
    _push_until_shown(alice, worker, push, {**elsewhere, "tag": "c"}, {**elsewhere, "body": ""})
    assert worker.evaluate(CLICKED) == [[], 0]

    page.get_by_role("button", name="Remove Chrome · Linux").click()
    expect(page.get_by_text("This browser does not take pushes yet.")).to_be_visible()


def test_what_waits_is_pushed_shown_and_answered_where_a_click_leads(
    alice: Person, service: ModelService, push_service: PushService
):
    page, site = alice.page, alice.site
    site.let_nothing_have_waited()
    browser = push_service.browser("alice")
    signed_up_at(alice, browser)
    page.get_by_label("What waits for me, by push").select_option("always")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    worker = worker_of(alice)
    push = _deliverer(alice)
    key = page.locator("[data-push]").get_attribute("data-key")

    words = "Write what is pushed"
    asked = call("write_file", path="pushed.txt", content="My secret\n")
    service.expect(words, reply(asked), reply("It is written."))
    began = time.monotonic()
    uid = alice.begin(words, switches=("approval",))
    expect(page.locator("[data-approval]")).to_be_visible()

    def about_it() -> list[Received]:
        """Others waited before, in other journeys."""
        received = [*push_service.received]
        return [one for one in received if browser.read(one.body)["url"].startswith(f"/c/{uid}/")]

    early = about_it()
    assert not early or time.monotonic() - began > 60, "not in its first minute"
    page.goto("about:blank")
    if not early:
        site.let_it_have_waited(uid, minutes=2)
        until(about_it)

    (received,) = about_it()
    signed_with, claims = signed_by(received.headers["authorization"])
    assert (signed_with, claims["aud"]) == (key, f"http://127.0.0.1:{push_service.port}")
    assert int(received.headers["ttl"]) > 0
    told = browser.read(received.body)
    assert "secret" not in json.dumps(told)
    assert told["url"].startswith(f"/c/{uid}/#")

    shown = {name: told[name] for name in ("title", "body", "url")}
    page.goto("/accounts/login/")  # a page of the site, for the browser's tools
    _push_until_shown(alice, worker, push, told, shown)
    page.goto("about:blank")
    assert worker.evaluate(CLICKED) == [[f"opened {site.address}{told['url']}"], 0]
    page.goto(told["url"])
    page.locator("[data-approval]").get_by_role("button", name="Allow", exact=True).click()
    expect(alice.log).to_contain_text("It is written.")
    assert len(about_it()) == 1

    page.goto("/settings/notifications/")
    page.get_by_role("button", name="Remove Chrome · Linux").click()
    expect(page.get_by_text("This browser does not take pushes yet.")).to_be_visible()


def signed_up_at(alice: Person, browser: BrowserAt) -> None:
    """By the button; what a push service would have given is `browser`'s."""
    page = alice.page
    alice.context.grant_permissions(["notifications"], origin=alice.site.address)
    given = json.dumps(browser.subscription)
    alice.context.add_init_script(SUBSCRIBED.replace("SUBSCRIPTION", given))
    page.goto("/settings/notifications/")
    expect(page.get_by_text("This browser does not take pushes yet.")).to_be_visible()
    page.get_by_role("button", name="Push to this browser").click()
    expect(page.get_by_text("This browser takes pushes.", exact=True)).to_be_visible()


def worker_of(person: Person) -> Worker:
    """Of the site; the page may know of it before these tests are told."""
    context = person.context
    there = context.service_workers
    return there[0] if there else context.wait_for_event("serviceworker", timeout=1_000 * PATIENCE)


def _deliverer(person: Person) -> Any:
    line = person.context.new_cdp_session(person.page)
    found: list[str] = []
    line.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(each["registrationId"] for each in event["registrations"]),
    )
    line.send("ServiceWorker.enable")
    end = time.monotonic() + PATIENCE
    while not found:
        assert time.monotonic() < end, "the browser's tools know of no worker"
        person.page.wait_for_timeout(20)

    def deliver(told: dict[str, Any]) -> None:
        line.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": person.site.address,
                "registrationId": found[0],
                "data": json.dumps(told),
            },
        )

    return deliver


def _push_until_shown(
    person: Person, worker: Worker, push: Any, told: dict[str, Any], wanted: dict[str, str]
) -> None:
    """A busy browser may drop what its tools bring; what comes again has the same tag, and shows once."""
    end = time.monotonic() + PATIENCE
    tries = 0
    while (shown := worker.evaluate(SHOWN)) != [wanted]:
        assert time.monotonic() < end, shown
        if tries % 100 == 0:
            push(told)
        tries += 1
        person.page.wait_for_timeout(20)
