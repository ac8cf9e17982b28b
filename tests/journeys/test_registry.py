"""Alice finds an MCP server in a registry, fills in what it wants, adds it, and lists it in the registry of
her own."""

from __future__ import annotations

from copy import deepcopy

from playwright.sync_api import expect

from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.people import Person
from tests.journeys.test_questions import look
from tests.standins.mcp_registry import REMOTE, registry_served
from tests.standins.mcp_server import Remote, door_of, served

PACKAGES = [
    {"registryType": "pypi", "identifier": "mcp-tracker", "version": "1.2.0"},
    {"registryType": "oci", "identifier": "tools.example/tracker:latest"},
]


def fits(person: Person, name: str) -> None:
    look(person.page, f"69-{name}")
    assert person.audit() == "", name
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert person.page.evaluate(width) <= 0, name


@in_form("light", "phone", "dark")
def test_a_server_is_found_in_a_registry_filled_in_added_and_listed(
    visit: Visit, ports: tuple[int, int], kind, request
):
    remote, entry = Remote(), deepcopy(REMOTE)
    remote.offer("echo")
    entry["remotes"][0]["url"] = f"http://{{tenant}}:{ports[0]}/mcp"
    entry["packages"] = PACKAGES
    alice, form = visit(**kind), request.node.callspec.id
    page = alice.page
    # Refusals are answers that a browser writes down.
    alice.expected.append("422")
    with served(door_of(remote), ports[0]), registry_served(ports[1]) as registry:
        others = [{**REMOTE, "name": f"com.example/tracker-{number}"} for number in range(40)]
        registry.servers = [entry, *others]
        page.goto("/settings/mcp-servers/")
        page.get_by_role("link", name="Search a registry").click()
        page.get_by_label("Name, or a part of it").fill("tracker")
        page.get_by_role("button", name="Search").click()
        expect(page.get_by_role("link", name="Further ones")).to_be_visible()
        fits(alice, f"found-{form}")
        page.get_by_role("link", name="Tracker", exact=True).first.click()
        expect(page.locator("main")).to_contain_text("only image@sha256:")
        expect(page.locator("main")).to_contain_text("mcp_package install pypi:mcp-tracker==1.2.0")
        fits(alice, f"registered-{form}")
        page.get_by_role("textbox", name="tenant").fill("127.0.0.1")
        page.locator("[name='way0-header.Authorization.token']").fill("alices-secret-token")
        page.get_by_role("textbox", name="Name", exact=True).fill("No Name")
        page.get_by_role("button", name="Add and look at it").click()
        expect(page.locator("main")).to_contain_text("1 to 32 small letters")
        fits(alice, f"refused-{form}")
        page.get_by_role("textbox", name="Name", exact=True).fill("tracker")
        page.locator("[name='way0-header.Authorization.token']").fill("alices-secret-token")
        page.get_by_label("Whose it is").select_option("organisation")
        page.get_by_role("button", name="Add and look at it").click()
        expect(page.locator("main")).to_contain_text("com.example/tracker 1.2.0")
        expect(page.get_by_role("heading", name="echo")).to_contain_text("released")
        assert remote.headers[-1]["authorization"] == "Bearer alices-secret-token"
        page.get_by_role("button", name="List it").click()
        expect(page.locator("main")).to_contain_text("Members find it at /v0.1/servers")
        fits(alice, f"listed-{form}")
        page.once("dialog", lambda asked: asked.accept())
        page.get_by_role("button", name="Take away").click()
