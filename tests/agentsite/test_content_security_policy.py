"""Scripts and styles come from this site alone; only the admin's own are looser."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.urls import reverse

from agentsite import environment


def policy_of(answer) -> dict[str, set[str]]:
    parts = [part.split() for part in answer["Content-Security-Policy"].split(";") if part.strip()]
    return {name: set(sources) for name, *sources in parts}


@pytest.mark.parametrize("path", ["/accounts/login/", "/organisation/", "/nowhere/", "/admin"])
def test_every_page_outside_the_admin_is_strict(client, db, path):
    policy = policy_of(client.get(path))

    assert policy["default-src"] == {"'self'"}
    assert policy["script-src"] == {"'self'"}
    assert policy["style-src"] == {"'self'"}
    assert policy["frame-ancestors"] == {"'none'"}
    assert policy["base-uri"] == {"'self'"}
    assert policy["form-action"] == {"'self'"}


def test_the_admin_may_evaluate_and_style_but_loads_nothing_foreign(staff, client_of):
    policy = policy_of(client_of(staff).get(reverse("admin:index")))

    assert policy["script-src"] == {"'self'", "'unsafe-eval'"}
    assert policy["style-src"] == {"'self'", "'unsafe-inline'"}
    assert policy["default-src"] == {"'self'"}
    assert policy["frame-ancestors"] == {"'none'"}


def test_a_path_that_only_begins_like_the_admin_is_strict(client, db):
    assert policy_of(client.get("/administration/"))["script-src"] == {"'self'"}


def test_a_form_may_lead_to_the_identity_provider_and_nowhere_else():
    program = (
        "from agentsite.settings import CONTENT_SECURITY_POLICY as policy;"
        "print(*policy['DIRECTIVES']['form-action'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=environment.BASE_DIR,
        env={**os.environ, "AGENTSITE_OIDC_SERVER_URL": "https://login.example.org/realms/one"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["'self'", "https://login.example.org"]
