"""Chromium, the real server in a process of its own, and a model service to answer it."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tests.journeys.forms import CHOSEN, COMBINED, IN_ALL, is_made, turns
from tests.journeys.model_service import ModelService
from tests.journeys.people import PASSWORD, Person
from tests.journeys.site import Site
from tests.notices.pushservice import PushService
from tests.patience import PATIENCE

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HEADLESS_NAME = "chromium-headless-shell"
"""The same browser without its windows: what it draws costs a sixth less."""

Visit = Callable[..., Person]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    made: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_journey = here in item.path.parents
        if is_journey:
            item.add_marker(pytest.mark.browser)
        (left if is_journey and not is_made(item.path.stem, config.args) else made).append(item)
    if left:
        items[:] = made
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and not IN_ALL and Path(__file__).parent in item.path.parents:
        said = f"looked at part {CHOSEN} of {COMBINED}; again: JOURNEYS_PART={CHOSEN}"
        report.sections.append(("what was looked at", said))
    return report


@pytest.fixture(scope="package", autouse=True)
def migrated(django_db_setup: None) -> None:
    """Sites begin with a copy of this process's database."""


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Ended before any other test could meet its event loop."""
    expect.set_options(timeout=1_000 * PATIENCE)
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """One browser for all journeys."""
    browser = _launched(playwright, HEADLESS_NAME, *CHROMIUM_NAMES)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def whole_chromium(playwright: Playwright) -> Iterator[Browser]:
    """One that has notifications, too."""
    browser = _launched(playwright, *CHROMIUM_NAMES)
    yield browser
    browser.close()


def _launched(playwright: Playwright, *names: str) -> Browser:
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        reason = f"No Chromium: none of {', '.join(names)} is on the PATH."
        if os.environ.get("CI"):
            pytest.fail(f"{reason} Install it, or the journeys prove nothing.")
        pytest.skip(reason)
    return playwright.chromium.launch(executable_path=path)


@pytest.fixture(scope="package")
def service() -> Iterator[ModelService]:
    with ModelService() as running:
        yield running


@pytest.fixture(scope="package")
def ports() -> Iterator[tuple[int, int]]:
    """At which a journey may have an MCP server, and whoever guards it. They are held, so that nobody is
    given one before."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            # Whoever listens there may still bind it.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield one.getsockname()[1], other.getsockname()[1]


@pytest.fixture(scope="package")
def push_service() -> Iterator[PushService]:
    """To which the site may post what it pushes."""
    with PushService() as running:
        yield running


@pytest.fixture(scope="package")
def site(
    service: ModelService,
    ports: tuple[int, int],
    push_service: PushService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    """A site whose agents speak to `service` through the official SDK."""
    settings = {
        "ANTHROPIC_API_KEY": "key-of-the-journeys",
        "ANTHROPIC_BASE_URL": service.base_url,
        # Nobody but these journeys appends to the logs; a sweep would run what they only show.
        "AGENTSITE_SWEEP_SECONDS": "0",
        "AGENTSITE_MCP_PRIVATE_HOSTS": ",".join(f"127.0.0.1:{port}" for port in ports),
        "AGENTSITE_MCP_REGISTRIES": f"http://127.0.0.1:{ports[1]}",
        # MCP servers are asked before each call what they have.
        "AGENTSITE_MCP_RELIST_SECONDS": "0",
        "AGENTSITE_PUSH_PRIVATE_HOSTS": f"127.0.0.1:{push_service.port}",
        "AGENTSITE_PUSH_SECONDS": "2",
        "AGENTSITE_BRIEF_SECONDS": "2",
    }
    with Site(tmp_path_factory.mktemp("site"), settings) as running:
        yield running


@pytest.fixture(scope="package")
def signed_in(chromium: Browser, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cookies of the administrator, who came in through the printed link."""
    person = Person(chromium, site)
    set_up(person)
    state = tmp_path_factory.mktemp("state") / "cookies.json"
    person.context.storage_state(path=state)
    assert person.leave() == []
    return state


def set_up(person: Person) -> None:
    """Follow the printed link and become the first administrator."""
    page = person.page
    page.goto(person.site.setup_link)
    page.locator("input[name=organisation_name]").fill("Acme")
    page.locator("input[name=username]").fill("alice")
    page.locator("input[name=email]").fill("alice@example.org")
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Create").click()
    page.wait_for_url(f"{person.site.address}/")


@pytest.fixture
def visit(
    chromium: Browser, site: Site, signed_in: Path, request: pytest.FixtureRequest
) -> Iterator[Visit]:
    """Opens windows in which alice is signed in. After the test none may have complained. `whole`: in the
    browser that shows documents as well."""
    people: list[Person] = []
    when = turns(request.node.nodeid)

    def open_window(
        *,
        at: Site | None = None,
        state: Path | None = None,
        anonymous: bool = False,
        whole: bool = False,
        **kind: bool,
    ) -> Person:
        if at is None and not anonymous:
            state = signed_in
        browser = request.getfixturevalue("whole_chromium") if whole else chromium
        people.append(Person(browser, at or site, state=state, turns=when, **kind))
        return people[-1]

    yield open_window
    assert [problem for person in people for problem in person.leave()] == []


@pytest.fixture
def alice(visit: Visit) -> Person:
    return visit()
