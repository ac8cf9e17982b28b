"""A person takes along all that is kept of her."""

from __future__ import annotations

import json
from zipfile import ZipFile

from playwright.sync_api import expect

from providers.scripted import reply
from tests.journeys.conftest import Visit
from tests.journeys.forms import in_form
from tests.journeys.test_every_page import overflows


@in_form("light", "phone")
def test_a_person_takes_all_of_hers_along(visit: Visit, service, kind):
    service.expect("Keep this for me", reply("It is kept."))
    alice = visit(**kind)
    page = alice.page
    uid = alice.begin("Keep this for me")
    alice.wait_for_status("idle")
    page.goto("/settings/")
    page.get_by_role("link", name="Your data").click()
    alice.confirm(then=page.get_by_role("heading", level=1, name="Your data"))
    assert alice.audit() == ""
    assert not overflows(page)
    button = page.get_by_role("button", name="Download the archive")
    with page.expect_download() as download:
        button.click()
    with ZipFile(download.value.path()) as held:
        assert held.testzip() is None
        told = json.loads(held.read(f"conversations/{uid}.json"))
        assert "It is kept." in json.dumps(told["events"])
        assert "account.json" in held.namelist()
    expect(button).to_be_visible()

    # What would go is told; of the one who runs the server nothing does.
    page.get_by_role("link", name="Delete the account").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete your account")
    expect(page.locator("main [role=status]")).to_contain_text("the last superuser")
    assert alice.audit() == ""
    assert not overflows(page)
