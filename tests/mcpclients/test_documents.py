"""A client whose id is the address of a document about it, held to what that may say and where it may be."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client as Browser

from accounts.models import ApiToken, Organisation, User
from harness.errors import Invalid
from mcpclients.assertions import KIND
from mcpclients.documents import is_document, read_client
from mcpclients.models import McpClient
from tests.cast import ClientOf
from tests.mcpclients.flow import BACK, ISSUER, OAuthClient, confirmed, opens

pytestmark = pytest.mark.django_db


class Site:
    """Of whoever makes the client."""

    def __init__(self) -> None:
        self.said: Any = {}
        self.keys: Any = None
        """What stands at `/keys.json`."""
        self.status = 200
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = site.keys if self.path == "/keys.json" else site.said
                body = json.dumps(found).encode()
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


class Signer:
    """A client's key, and what it signs with it."""

    def __init__(self, client_id: str, name: str = "first") -> None:
        self.client_id, self.name = client_id, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        made: dict[str, Any] = jwt.get_algorithm_by_name("ES256").to_jwk(
            self.key.public_key(), as_dict=True
        )
        self.public = {**made, "kid": name}

    def signed(self, **more: Any) -> dict[str, str]:
        said = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": ISSUER,
            "exp": int(time.time()) + 60,
            "jti": secrets.token_urlsafe(8),
            **more,
        }
        return {
            "client_assertion_type": KIND,
            "client_assertion": jwt.encode(said, self.key, "ES256", {"kid": self.name}),
        }


def test_a_client_with_keys_signs_who_it_is_each_time(
    site: Site, alice: User, acme: Organisation, client_of: ClientOf
):
    own, another = Signer(site.url), Signer(site.url)
    site.keys = {"keys": [own.public]}
    site.said |= {
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks_uri": f"http://{site.host}/keys.json",
    }
    hers, notes = confirmed(client_of(alice)), OAuthClient(read_client(site.url).client_id)
    code = notes.code_of(hers, acme)
    shown = own.signed()
    refused: list[dict[str, str]] = [
        {},
        {**own.signed(), "client_assertion_type": "x"},
        another.signed(),
        own.signed(aud="https://elsewhere.example"),
        own.signed(exp=int(time.time()) - 60),
        own.signed(exp=int(time.time()) + 6_000),
        own.signed(iss="https://elsewhere.example"),
        own.signed(sub="https://elsewhere.example"),
        {**shown, "client_assertion": shown["client_assertion"][:-4]},
        own.signed(exp=str(int(time.time()) + 6_000)),
        own.signed(sub="\ud800"),
        own.signed(sub="\0"),
    ]
    for wrong in refused:
        assert notes.token(code, **wrong).json()["error"] == "invalid_client", wrong
    given = notes.token(code, **shown, client_id=None).json()
    assert opens(given["access_token"])
    for kept in ({}, shown):
        answer = notes.renew(given["refresh_token"], **kept).json()
        assert answer["error"] == "invalid_client", "it was shown before"
    newer = Signer(site.url, "second")
    site.keys = {"keys": [newer.public]}
    odd = newer.signed(aud=[f"{ISSUER}/oauth/token"], jti="\ud800", exp=str(int(time.time()) + 60))
    again = notes.renew(given["refresh_token"], **odd)
    assert opens(again.json()["access_token"])
    assert notes.post("revoke", token=again.json()["refresh_token"]).status_code == 401
    assert opens(again.json()["access_token"])
    newest = Signer(site.url, "third")
    site.keys = {"keys": [newest.public, {**own.public, "alg": "none", "use": "enc"}]}
    ended = notes.post("revoke", token=again.json()["refresh_token"], **newest.signed())
    assert ended.status_code == 200
    assert not opens(again.json()["access_token"])


def test_keys_that_cannot_be_used_let_nobody_in(site: Site):
    good = Signer(site.url).public
    usual = {**site.said, "token_endpoint_auth_method": "private_key_jwt"}
    unusable: tuple[Any, ...] = (
        None,
        [],
        {"keys": []},
        {"keys": ["x"]},
        {"keys": [good] * 21},
        {"keys": [{**good, "d": "secret"}]},
        {"keys": [{**good, "x": "x"}]},
        {"keys": [{**good, "x": f"!!!!{good['x']}"}]},
        {"keys": [{**good, "crv": "P-999"}]},
        {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]},
        {"keys": [{"kty": "RSA", "n": "A" * 2_000, "e": "AQAB"}]},
    )
    for keys in unusable:
        site.said = {**usual, "jwks": keys}
        with pytest.raises(Invalid):
            read_client(site.url)
    long = f"https://{'a' * 70}.example/keys.json"
    for place in ("http://10.0.0.7/keys.json", "https://a b/keys.json", "app.x:/keys", long, 7):
        site.said = {**usual, "jwks_uri": place}
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
    assert "leads to a private or local address, which is refused." in answer.content.decode()
    assert "AGENTSITE_MCP_PRIVATE_HOSTS" in answer.content.decode()
    assert not ApiToken.objects.exists()
