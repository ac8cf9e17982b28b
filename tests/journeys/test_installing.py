"""A browser finds nothing that keeps it from installing the site."""

from __future__ import annotations

import json

from tests.journeys.people import Person


def test_a_browser_could_install_the_site(alice: Person):
    alice.page.goto("/")
    line = alice.context.new_cdp_session(alice.page)
    found = line.send("Page.getAppManifest")
    assert found["errors"] == []
    assert json.loads(found["data"])["name"] == "Agentsite"
    errors = line.send("Page.getInstallabilityErrors")["installabilityErrors"]
    # A window of Playwright's is a private one, in which nothing is installed.
    assert [each["errorId"] for each in errors if each["errorId"] != "in-incognito"] == []
