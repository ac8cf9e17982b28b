"""Every page is opened by a journey that looks at it with axe, or this file says why not.

The routes are enumerated: a page is whatever answers GET with HTML or leads elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import resolve

from tests.architecture.routes import Route, page_routes
from tests.architecture.test_every_door_is_guarded import ABSENT, ask, values_for
from tests.journeys.test_every_page import ANONYMOUS_PAGES, CONVERSATION_PAGES, PAGES

DJANGOS_OWN = "admin/"
"""`tests/journeys/test_admin.py` enumerates these itself."""

UNSEEN: Mapping[str, str] = {
    "conversations:models": "a part of the form in which a conversation begins; a journey unfolds it",
    "conversations:event": "a journey of its own opens it from an answer",
    "notices:stop": "a sentence and a button behind the signed link in a mail",
    "brief:one": "drawn by the same parts as what is so now",
    "schedules:schedule": "a journey of its own makes a schedule and looks at it",
    "schedules:result": "a file, of a run that answered",
    "schedules:schedule-change": "the same journey changes it",
    "schedules:schedule-delete": "the same journey deletes it",
    "conversations:event-context": "drawn as conversations:context, which a journey looks at",
    "folders:folder": "a journey of its own makes a folder and looks at it",
    "folders:folder-change": "the same journey changes it",
    "folders:folder-delete": "the same journey deletes it",
    "agents:agent": "a journey of its own makes an agent and looks at it",
    "agents:agent-versions": "the same journey looks at its versions",
    "agents:review": "the same journey asks for a review and decides it",
    "tryouts:tryout": "the same journey tries it out",
    "decay:rule": "the same journey looks at it, from the page of all that is remembered",
    "recall:one": "a journey of its own puts a memory right and forgets it",
    "documents:collection": "drawn by the same parts as the list of collections and a folder",
    "owndata:delete-account": "asks for the password first; a journey of its own looks at it",
    "owndata:own-data": "asks for the password first; a journey of its own looks at it",
    "documents:passage": "text of a passage in the parts of a memory's page",
    "webhooks:webhook": "a journey of its own makes an endpoint and looks at it",
    "conversations:file-picture": "a picture, of a file that is one; a journey of its own looks at it",
    "conversations:file-page": "for a frame, of a file that is a page; the same journey looks at it",
    "conversations:shared-link": "a journey of its own makes a link and looks at what it opens",
    "evals:suite": "a journey of its own makes a suite and looks at it",
    "evals:suite-change": "the same journey looks at its settings",
    "evals:suite-delete": "drawn by the same parts as a folder's",
    "evals:case": "the same journey changes a case",
    "evals:case-new": "the same journey adds one",
    "evals:releases": "the same journey looks at a blocked version and lets it pass",
    "evals:evaluation": "the same journey tries it",
    "evals:skill": "drawn by the same parts as a suite's",
    "evals:comparison": "the same journey compares two evaluations",
    "hooks:hook": "drawn by the same parts as the form on the page of all hooks, which is looked at",
    "comparisons:comparison": "the journey of pipelines compares one with an agent and looks at it",
    "pipelines:pipeline": "a journey of its own starts one and looks at it",
    "pipelines:version": "drawn by the same template as the pipeline",
    "pipelines:change": "the form of the page of all pipelines, which is looked at",
    "pipelines:run": "the journey looks at its run, asking and done",
    "prompts:prompt": "a journey of its own makes a prompt and looks at it",
    "prompts:version": "the same journey compares two versions",
    "prompts:source": "a journey of its own adds one and looks at it",
    "prompts:delete": "drawn by the same parts as a folder's",
    "skills:skill": "a journey of its own writes a skill and looks at it",
    "skills:version": "the same journey releases a version",
    "skills:packages": "a part of the page of a version, while its packages are installed",
    "skills:trial": "a part of the page of a version, while a trial run is under way",
    "skills:edit": "the same journey writes another",
    "skills:source": "drawn by the same parts as the list of sources",
    "skills:index": "for programs, where the operator offers the server's skills to others",
    "skills:archive": "a file, for programs as well",
    "skillsets:add": "the same journey gives it to a conversation",
    "mcpclients:authorise": "a journey of its own has a program let in and looks at it",
    "mcpservers:server": "a journey of its own adds a server and looks at it",
    "mcpservers:registered": "a journey of its own searches a registry and adds a server of it",
    "mcpservers:attach-prompt": "a form in a dialog, drawn like the others; a server has to have prompts",
    "mcpservers:question": "exists while a call rests for it; drawn by the parts of the server's page",
    "mcpservers:server-connected": "leads from an authorisation server to the page of the MCP server",
    "tasks:task": "a journey of its own makes tasks, moves them and looks at one",
    "tasks:delete": "the same journey deletes it",
    "vaults:vault": "a journey of its own makes a vault and looks at it",
    "webhooks:webhook-delivery": "the same journey looks at a delivery",
    "api-docs": "a library's page; a journey of its own looks at it, folded and unfolded",
    "accounts:setup": "works once for a whole site; a journey walks through it",
    "approvals:call-approval": "leads from a card to its approval",
    "approvals:approval": "exists once a call was asked for; a journey of its own looks at it",
    "accounts:invitation": "a journey of its own looks at it: the link exists only then",
    "account_set_password": "leads to the change of the password, which everybody here has",
    "account_confirm_login_code": "signing in by a mailed code is off; it leads to the sign-in page",
    "mfa_authenticate": "between password and entry; without a code to ask for it leads on",
    "mfa_reauthenticate": "asks for a code; without one it leads to the page that is looked at",
    "mfa_deactivate_totp": "exists only with an authenticator; drawn by the same parts as 2fa/",
    "mfa_view_recovery_codes": "exists only with an authenticator; drawn by the same parts as 2fa/",
    "mfa_generate_recovery_codes": "exists only with an authenticator; drawn by the same parts",
    "mfa_download_recovery_codes": "a file, and only with an authenticator",
    "socialaccount_login_error": "401 by design, and drawn by the same parts as the cancelled one",
    "socialaccount_signup": "leads to the sign-in page unless another site vouches for somebody",
    "accounts/social/login/cancelled/": "an old address of allauth's; leads to the new one",
    "accounts/social/login/error/": "an old address of allauth's; leads to the new one",
    "accounts/social/signup/": "an old address of allauth's; leads to the new one",
    "accounts/social/connections/": "an old address of allauth's; leads to the new one",
    "openid_connect_login": "leads to another site, where one is configured",
    "openid_connect_callback": "comes from another site, where one is configured",
}
"""Pages that no list of the journeys holds, by name (those without: by pattern), with the reason."""


def seen() -> set[str]:
    """The names of the routes that the journeys' addresses lead to."""
    addresses = (*ANONYMOUS_PAGES, *PAGES, *CONVERSATION_PAGES)
    return {
        resolve(urlsplit(address.replace("{uid}", ABSENT)).path).view_name for address in addresses
    }


def others(
    looked_at: set[str], client: Client, world: Mapping[str, dict[str, Any]]
) -> Iterator[Route]:
    """Pages beside those; that they open is the journeys' to see."""
    for route in page_routes():
        if route.pattern.startswith(DJANGOS_OWN) or route.key in looked_at:
            continue
        answer = ask(client, "get", route.address(values_for(route, world)))
        is_file = answer.status_code == 200 and (answer.streaming or b"<html" not in answer.content)
        is_data = "json" in answer.headers.get("Content-Type", "")
        if answer.status_code != 405 and not is_file and not is_data:
            yield route


@pytest.fixture
def staff_client(client_of, alice) -> Client:
    """Alice with every right, so that nothing hides from her."""
    alice.is_staff = alice.is_superuser = True
    alice.save(update_fields=["is_staff", "is_superuser"])
    client: Client = client_of(alice)
    return client


@pytest.mark.django_db
def test_every_page_is_looked_at_by_a_journey_or_excused_and_no_excuse_is_stale(
    staff_client, world
):
    looked_at = seen()
    there = list(others(looked_at, staff_client, world))
    unseen = [
        f"{route}: add it to the pages of tests/journeys/test_every_page.py"
        for route in there
        if route.key not in UNSEEN
    ]
    assert not unseen, "\n".join(unseen)
    assert all(UNSEEN.values())
    assert not UNSEEN.keys() & looked_at
    assert UNSEEN.keys() <= {route.key for route in there}
