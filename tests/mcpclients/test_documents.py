"""A client whose id is the address of a document about it, held to what that may say and where it may be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client as Browser

from accounts.models import ApiToken, Organisation, User
from harness.errors import Invalid
from mcpclients.documents import is_document, read_client
from mcpclients.models import McpClient
from tests.cast import ClientOf
from tests.mcpclients.flow import BACK, OAuthClient, confirmed, opens

pytestmark = pytest.mark.django_db


class Site:
    """Of whoever makes the client."""

    def __init__(self) -> None:
        self.said: Any = {}
        self.status = 200
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(site.said).encode()
                self.send_response(site.status)
                self.send_header("Location", "/elsewhere.json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/client.json"


@pytest.fixture
def site(settings: Any) -> Iterator[Site]:
    here = Site()
    settings.AGENTSITE_MCP_PRIVATE_HOSTS = [here.host]
    here.said = {"client_id": here.url, "client_name": "Notes", "redirect_uris": [BACK]}
    thread = threading.Thread(target=here.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield here
    here.server.shutdown()
    here.server.server_close()


def test_a_person_is_shown_who_vouches_for_a_client(
    site: Site, alice: User, acme: Organisation, client_of: ClientOf
):
    made = read_client(site.url)
    hers, notes = confirmed(client_of(alice)), OAuthClient(made.client_id)
    page = hers.get(notes.address()).content.decode()
    assert f"“Notes”, and {site.host} vouches for it" in page
    assert opens(notes.let_in(hers, acme)["access_token"])
    site.said["redirect_uris"] = ["https://client.example/new"]
    assert read_client(site.url).pk == made.pk
    assert hers.get(notes.address()).status_code == 400


def test_a_document_that_does_not_fit_lets_nobody_in(site: Site):
    usual = site.said
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"client_id": "https://elsewhere.example/client.json"}, 200),
        ({"client_id": None}, 200),
        ({"redirect_uris": ["http://client.example/back"]}, 200),
        ({"token_endpoint_auth_method": "client_secret_post"}, 200),
        ({"client_secret": "x"}, 200),
        ({"more": "x" * 40_000}, 200),
        ({}, 404),
        ({}, 302),
    ]
    for said, status in wrong:
        site.said, site.status = {**usual, **said}, status
        with pytest.raises(Invalid):
            read_client(site.url)
    assert not McpClient.objects.exists()


def test_none_is_read_from_inside_this_network(site: Site, settings: Any):
    settings.AGENTSITE_MCP_PRIVATE_HOSTS = []
    with pytest.raises(Invalid):
        read_client(site.url)
    assert not McpClient.objects.exists()


def test_none_is_read_for_a_stranger_and_a_refusal_is_a_page(
    alice: User, acme: Organisation, client_of: ClientOf
):
    nobody = OAuthClient("https://127.0.0.1:9/client.json")
    assert is_document(nobody.client_id)
    assert Browser().get(nobody.address()).status_code == 302
    answer = confirmed(client_of(alice)).get(nobody.address())
    assert answer.status_code == 400
    assert "leads to where none may be" in answer.content.decode()
    assert not ApiToken.objects.exists()
