"""The page that shows the API: a library's, under our policy, from our own files, accessible and in order."""

from __future__ import annotations

from django.conf import settings
from playwright.sync_api import expect

from tests.journeys.people import Person


def test_the_page_of_the_api_keeps_the_policy_and_its_requests_work(alice: Person):
    """Whatever the policy blocked would stand among the window's complaints."""
    asked: list[str] = []
    page = alice.page
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/api/docs/")
    groups = page.locator(".opblock-tag")
    expect(groups).to_have_count(len(settings.SPECTACULAR_SETTINGS["TAGS"]))
    assert all("/" in said or "AG-UI" in said for said in groups.all_inner_texts()), "describe it"
    assert alice.audit() == ""
    page.get_by_role("search").get_by_role("textbox").fill("Who")
    expect(groups).to_have_count(1)
    groups.get_by_role("button").press("Enter")
    operation = page.locator("#operations-Who-auth_me_retrieve")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(
        operation.locator(".live-responses-table tbody .response-col_status").first
    ).to_contain_text("200")
    expect(operation.locator(".live-responses-table")).to_contain_text("alice@example.org")
    assert alice.audit() == ""
    assert all(url.startswith((alice.site.address, "data:")) for url in asked)
