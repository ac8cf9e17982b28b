"""The admin's pages are accessible by day and by night, and their parts are reached by the keyboard.

With `JOURNEYS=all` every page is looked at; without, a part of them (`forms.PARTS`), and of the others those
of one model of each app, and of some apps of all, are fetched.

The pages are enumerated from Django's routes and filled with rows of a site that has one of everything
(`furnish`), so that a new page is walked by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib import admin
from playwright.sync_api import Browser, expect

from tests.architecture.routes import page_routes
from tests.journeys.forms import IN_ALL, in_part, turns
from tests.journeys.people import COLOURS, DARK, PASSWORD, Person
from tests.journeys.site import Site

PAGES = {
    f"{model._meta.app_label}/{model._meta.model_name}": model for model in admin.site._registry
}
"""What is registered, by the part of its addresses."""

UNSEEN: Mapping[str, str] = {
    "admin:search": "a part of the menu, drawn while somebody types there",
    "admin:login": "leads to the sign-in page of everybody",
    "admin:logout": "takes no GET",
    "admin:autocomplete": "data for a chooser",
    "admin:jsi18n": "a script",
    "admin:view_on_site": "leads elsewhere",
}
"""Routes that are no page of the admin's, each with its reason. Those without a name lead to others."""

QUERIES = {"admin:agents_agent_compare": "?from=1&to=2", "admin:agents_agent_restore": "?number=1"}
REFUSED = ("/add/", "/delete/", "/take-away/", "/archive/", "/offer/")
"""Ends of addresses that nobody may open where the rows are only read."""

APPS = sorted({part.partition("/")[0] for part in PAGES})


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory, migrated: None) -> Iterator[Site]:
    settings = {
        "AGENTSITE_SWEEP_SECONDS": "0",
        "JOURNEYS_FIRST": "tests.journeys.furnish:furnish",
    }
    with Site(tmp_path_factory.mktemp("furnished"), settings) as site:
        yield site


@pytest.fixture(scope="module")
def cookies(chromium: Browser, furnished: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    person = Person(chromium, furnished)
    page = person.page
    page.goto("/accounts/login/")
    page.locator("input[name=login]").fill("alice")
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").first.click()
    page.wait_for_url(f"{furnished.address}/")
    state = tmp_path_factory.mktemp("state") / "cookies.json"
    person.context.storage_state(path=state)
    assert person.leave() == []
    return state


@pytest.fixture(scope="module")
def operators_window(chromium: Browser, furnished: Site, cookies: Path) -> Iterator[Person]:
    person = Person(chromium, furnished, state=cookies)
    person.context.add_init_script("localStorage.setItem('adminTheme', '\"light\"')")
    person.expected.append("status of 403")  # pages that are refused to everybody
    yield person
    assert person.leave() == []


@pytest.fixture
def operator(operators_window: Person, request: pytest.FixtureRequest) -> Person:
    operators_window.turns = turns(request.node.nodeid)
    return operators_window


def first_rows(site: Site) -> dict[str, str]:
    """The key of one row of each model, by the part of its addresses."""
    with closing(sqlite3.connect(site.directory / "data" / "db.sqlite3")) as database:
        keys = {
            part: database.execute(
                f"SELECT {model._meta.pk.column} FROM {model._meta.db_table} LIMIT 1"
            ).fetchone()
            for part, model in PAGES.items()
        }
    empty = [part for part, key in keys.items() if key is None]
    assert not empty, f"let tests/journeys/furnish.py make a row of each: {empty}"
    return {part: str(key[0]) for part, key in keys.items()}


def addresses(site: Site) -> Iterator[tuple[str, str]]:
    """The app and the address of every page of the admin."""
    keys = first_rows(site)
    for route in page_routes():
        if not route.pattern.startswith("admin/") or not route.name or route.key in UNSEEN:
            continue
        query = QUERIES.get(route.name, "")
        part = "/".join(route.pattern.split("/")[1:3])
        if route.name == "admin:app_list":
            yield from ((app, f"/admin/{app}/") for app in APPS)
        else:
            values = dict.fromkeys(route.parameters, keys.get(part, ""))
            yield part.partition("/")[0], route.address(values) + query


APPS_WHOLE = ("agents", "approvals")
"""Apps of which every model's pages are fetched that are not looked at. Of the others the first one's are:
their lists and forms are made of the same parts."""


def fetched(app: str, address: str, first: dict[str, str]) -> bool:
    """Whether a page that is not looked at is asked for."""
    parts = address.split("/")
    is_of_model = app and len(parts) > 4
    if not is_of_model or app in APPS_WHOLE:
        return True
    return first.setdefault(app, parts[3]) == parts[3]


ALIKE = ("/history/", "/delete/")
"""Ends of addresses whose pages differ in names alone: they are opened and looked at for one app."""
COLOURED = ("/admin/agents/", "/admin/approvals/approval/", "/admin/audit/")
"""Begins of addresses whose colours are looked at, by day and by night, with the front page's: they have each
part and colour that others have. With `JOURNEYS=all` every page's are."""


def both_themes(person: Person, *, colours: bool = True, at_once: bool = False) -> str:
    """What axe finds by day and, of what the other theme can break, by night; in its turn, or `at_once`."""
    if not (at_once or next(person.turns)):
        return ""
    person.page.wait_for_function("document.getAnimations().length === 0")
    by_day = person.audit(without=() if colours else COLOURS, at_once=True)
    if not colours:
        return by_day
    person.page.keyboard.press("Control+e")
    expect(person.page.locator("html")).to_have_class("dark")
    by_night = person.audit(rules=DARK, at_once=True)
    person.page.keyboard.press("Control+e")
    return by_day + by_night


@pytest.mark.parametrize("app", ["", *APPS])
def test_pages_of_the_admin_are_accessible(furnished: Site, operator: Person, app: str):
    seen, found = 0, []
    first: dict[str, str] = {}
    for place, (of, address) in enumerate(addresses(furnished)):
        if (of if of in APPS else "") != app:
            continue
        is_looked_at = in_part(place)
        if not fetched(of, address, first) and not is_looked_at:
            continue
        answer = (operator.page.goto if is_looked_at else operator.context.request.get)(address)
        assert answer is not None
        if answer.status == 403:
            assert address.endswith(REFUSED), address
            continue
        assert answer.status == 200, address
        if is_looked_at and urlsplit(operator.page.url).path != urlsplit(address).path:
            operator.page.locator("main input[name=password]").fill(PASSWORD)
            operator.page.keyboard.press("Enter")
            operator.page.wait_for_url(f"**{address}")
        seen += 1
        if not is_looked_at or (address.endswith(ALIKE) and app != "agents"):
            continue
        colours = IN_ALL or address == "/admin/" or address.startswith(COLOURED)
        if report := both_themes(operator, colours=colours, at_once=True):
            found.append(f"{address}\n{report}")
    assert seen
    assert not found, "\n".join(found)


def test_no_excuse_is_stale():
    assert UNSEEN.keys() <= {route.key for route in page_routes()}


def test_the_keyboard_reaches_what_the_theme_leaves_to_the_mouse(operator: Person):
    page = operator.page
    page.goto("/admin/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.goto("/admin/agents/agent/add/")
    for name in ("Tools", "Limits", "As a subagent", "Switches of new conversations"):
        tab = page.get_by_role("tab", name=name)
        tab.focus()
        page.keyboard.press("Enter")
        expect(tab).to_have_attribute("aria-selected", "true")
        assert both_themes(operator) == ""
    menu = page.get_by_role("button", name="Show or hide the menu").first
    menu.focus()
    page.keyboard.press(" ")
    expect(page.get_by_role("navigation", name="Pages of the admin")).to_be_hidden()
    page.keyboard.press(" ")
    account = page.get_by_role("button", name="Your account and the theme")
    account.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Change password")).to_be_visible()
    assert both_themes(operator) == ""


def test_rules_are_added_and_removed_by_the_keyboard(operator: Person):
    page = operator.page
    page.goto("/admin/agents/agent/")
    page.get_by_role("link", name="Coder", exact=True).click()

    def open_rules() -> None:
        page.get_by_role("tab", name="Tools").focus()
        page.keyboard.press("Enter")

    open_rules()
    rows = page.locator(".rule-row")
    before = rows.count()
    page.get_by_role("button", name="Add a rule").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name=f"Rule {before + 1}")).to_be_visible()
    page.keyboard.type("calculator")
    page.keyboard.press("Tab")
    page.keyboard.type("deny")
    assert both_themes(operator) == ""
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    open_rules()
    added = page.get_by_role("group", name=f"Rule {before}", exact=True)
    expect(added.get_by_label("Tool or pattern")).to_have_value("calculator")
    expect(added.get_by_label("What it does")).to_have_value("always_deny")
    added.get_by_role("button", name="Remove").focus()
    page.keyboard.press("Enter")
    expect(rows).to_have_count(before)
    page.get_by_role("button", name="Save and continue editing").click()
    open_rules()
    expect(rows).to_have_count(before)


def test_lists_are_filtered_by_the_keyboard(operator: Person):
    page = operator.page
    page.goto("/admin/approvals/approval/")
    filters = page.get_by_role("button", name="Filters")
    filters.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#changelist-filter")).to_be_visible()
    assert both_themes(operator) == ""


def test_what_is_asked_before_something_is_done_is_accessible(operator: Person):
    page = operator.page
    for address, action in (
        ("/admin/approvals/approval/", "deny"),
        ("/admin/deadletters/deadletter/", "discard"),
        ("/admin/accounts/membership/", "delete_selected"),
    ):
        page.goto(address)
        page.locator("input[name=_selected_action]").first.check()
        page.locator("select[name=action]").first.select_option(action)
        page.get_by_role("button", name="Run").first.click()
        expect(page.locator("input[name=_selected_action][type=hidden]").first).to_be_attached()
        assert both_themes(operator) == "", address


def test_a_refused_form_is_accessible(operator: Person):
    page = operator.page
    page.goto("/admin/agents/environment/add/")
    page.locator("#id_name").fill("Closed")
    page.locator("#id_policy").fill("nonsense: true")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("nonsense", exact=False).first).to_be_visible()
    assert both_themes(operator) == ""
