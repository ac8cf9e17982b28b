"""An authorisation server on loopback, and what an MCP server asks of whoever comes without its token.

It holds a client to OAuth 2.1: a code serves once, within its client, redirect address, resource and proof
key; refresh tokens are exchanged once. What it says of itself a test may bend.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

Reply = tuple[int, dict[str, str], Any]


@dataclass
class AuthorisationServer:
    """`speak` fits an ASGI door; `issuer` and `resource` are known when the doors are open."""

    issuer: str = ""
    resource: str = ""
    said: dict[str, Any] = field(default_factory=dict)
    """In place of what its metadata would say; None takes a field away."""
    resource_said: dict[str, Any] = field(default_factory=dict)
    """The same of the MCP server's."""
    registers: bool = True
    registers_with: dict[str, Any] = field(default_factory=dict)
    """In place of what it would say of a client."""
    names_itself: bool = True
    needs: str = "read"
    """The scope that the MCP server wants of a token."""
    grants: str = ""
    """In place of what is asked for."""
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Good access tokens, with their scope."""
    renewals: dict[str, str] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    heard: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path and form of each request to the authorisation server."""

    # --- the authorisation server ---------------------------------------------------------------

    def speak(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        form = {name: held[0] for name, held in parse_qs(body.decode()).items()}
        self.heard.append((path, form))
        known: dict[str, Callable[[], Reply]] = {
            "/.well-known/oauth-authorization-server": self._metadata,
            "/register": lambda: self._register(json.loads(body)),
            "/token": lambda: self._token(form, headers),
            "/revoke": lambda: self._revoke(form),
        }
        if path.startswith("/authorize?"):
            return self._consent(method, f"{self.issuer}{path}")
        return known.get(path, lambda: (404, {}, {}))()

    def _consent(self, method: str, url: str) -> Reply:
        """The page on which she allows it, and the way back."""
        if method == "POST":
            back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
            return 303, {"Location": f"{back}?{urlencode(self.allow(url))}"}, ""
        form = "<form method=post><button>Allow it all</button></form>"
        return 200, {}, f"<!doctype html><html lang=en><title>Guard</title><h1>Allow it?</h1>{form}"

    def allow(self, url: str, **more: str) -> dict[str, str]:
        """What a person who allows it all brings back: she was sent to `url`."""
        asked = {name: held[0] for name, held in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.issuer}/authorize?")
        assert asked["code_challenge_method"] == "S256"
        client = self.clients[asked["client_id"]]
        assert asked["redirect_uri"] in client["redirect_uris"]
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        iss = {"iss": self.issuer} if self.names_itself else {}
        return {"code": code, "state": asked["state"], **iss, **more}

    def _metadata(self) -> Reply:
        said = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
            "authorization_response_iss_parameter_supported": self.names_itself,
            **({"registration_endpoint": f"{self.issuer}/register"} if self.registers else {}),
            **self.said,
        }
        return 200, {}, {name: value for name, value in said.items() if value is not None}

    def _register(self, asked: dict[str, Any]) -> Reply:
        made = {**asked, "client_id": f"client-{len(self.clients)}"}
        if asked["token_endpoint_auth_method"] != "none":
            made["client_secret"] = secrets.token_urlsafe(16)
        self.clients[made["client_id"]] = made
        return 201, {}, {**made, **self.registers_with}

    def _token(self, form: dict[str, str], headers: Mapping[str, str]) -> Reply:
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
        if (basic := headers.get("authorization", "")).startswith("Basic "):
            pair = base64.b64decode(basic.removeprefix("Basic ")).decode()
            client_id, secret = map(unquote, pair.split(":", 1))
        client = self.clients.get(client_id)
        if client is None or client.get("client_secret", "") != secret:
            return 401, {}, {"error": "invalid_client"}
        if form.get("resource") != self.resource:
            return 400, {}, {"error": "invalid_target"}
        if form["grant_type"] == "refresh_token":
            scope = self.renewals.pop(form["refresh_token"], None)
        else:
            scope = self._of_code(form, client_id)
        if scope is None:
            return 400, {}, {"error": "invalid_grant"}
        token, renewal = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[token], self.renewals[renewal] = scope, scope
        given = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        return 200, {}, {**given, "refresh_token": renewal, "scope": scope}

    def _of_code(self, form: dict[str, str], client_id: str) -> str | None:
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["client_id"] != client_id:
            return None
        proof = sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(proof).decode().rstrip("=")
        if (challenge, form["redirect_uri"]) != (asked["code_challenge"], asked["redirect_uri"]):
            return None
        return self.grants or asked.get("scope", "")

    def _revoke(self, form: dict[str, str]) -> Reply:
        self.revoked.append(form["token"])
        self.renewals.pop(form["token"], None)
        return 200, {}, {}

    # --- the door of the MCP server -------------------------------------------------------------

    def refusal(self, path: str, headers: Mapping[str, str]) -> Reply | None:
        """What the MCP server answers in place of doing anything; None: it may go on."""
        origin = self.resource.removesuffix(urlsplit(self.resource).path)
        document = f"/.well-known/oauth-protected-resource{urlsplit(self.resource).path}"
        if path == document:
            said = {
                "resource": self.resource,
                "authorization_servers": [self.issuer],
                "scopes_supported": ["read"],
                **self.resource_said,
            }
            return 200, {}, said
        if path.startswith("/.well-known/"):
            return 404, {}, {}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            told = f'Bearer resource_metadata="{origin}{document}"'
            return 401, {"WWW-Authenticate": told}, {}
        if self.needs not in self.tokens[token].split():
            told = f'Bearer error="insufficient_scope", scope="{self.needs}"'
            return 403, {"WWW-Authenticate": told}, {}
        return None


def as_query(given: Mapping[str, str]) -> str:
    return urlencode(given)
