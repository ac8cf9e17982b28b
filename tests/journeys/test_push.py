"""A browser signs up by a button, shows what is pushed to it, and a click opens the page.

No push service is within reach of these tests: what it would give the browser is given here, what it would
carry comes by the browser's own tools. What is sent to one is tried in `tests/notices`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Worker, expect

from tests.journeys.people import Person
from tests.journeys.site import Site
from tests.notices.pushservice import BrowserAt
from tests.patience import PATIENCE

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
    alice.context.grant_permissions(["notifications"], origin=site)
    given = json.dumps(BrowserAt("https://push.example.org/alice").subscription)
    alice.context.add_init_script(SUBSCRIBED.replace("SUBSCRIPTION", given))
    page.goto("/settings/notifications/")
    expect(page.get_by_text("This browser does not take pushes yet.")).to_be_visible()
    page.get_by_role("button", name="Push to this browser").click()
    expect(page.get_by_text("This browser takes pushes.", exact=True)).to_be_visible()
    expect(page.get_by_text("Chrome · Linux")).to_be_visible()

    (worker,) = alice.context.service_workers
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


def _deliverer(person: Person) -> Any:
    line = person.context.new_cdp_session(person.page)
    found: list[str] = []
    line.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(each["registrationId"] for each in event["registrations"]),
    )
    line.send("ServiceWorker.enable")
    person.page.wait_for_function("() => navigator.serviceWorker.ready.then(() => true)")
    assert found

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
