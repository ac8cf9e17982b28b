"""An OpenID Connect provider on loopback: strict as a real one, until an attack has it say something else.

A code is given to a browser that was sent here, works once, for the client it was given to and only with
the verifier whose challenge came with the browser. Identity tokens are signed with a key of its own.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, CLIENT_SECRET = "agentsite", "secret-of-the-client"
Claims = dict[str, Any]


@dataclass(frozen=True)
class _Grant:
    redirect_uri: str
    nonce: str
    challenge: str
    person: Claims


@dataclass(frozen=True)
class Sent:
    """With what a browser comes back from the provider."""

    code: str
    state: str


class IdentityProvider:
    """Vouches for `person`. `token` makes the identity token of the claims that an honest one has."""

    def __init__(self) -> None:
        self.person: Claims = {}
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.token: Callable[[Claims], str] = self.signed
        self.userinfo: Callable[[Claims], Claims] = dict
        self.refusals: list[str] = []
        self._grants: dict[str, _Grant] = {}
        self._known: dict[str, Claims] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                bearer = str(self.headers["Authorization"] or "").removeprefix("Bearer ")
                if self.path.endswith("/.well-known/openid-configuration"):
                    self.answer(provider.configuration())
                elif self.path == "/jwks":
                    self.answer({"keys": [provider.public_key()]})
                elif bearer in provider._known:
                    self.answer(provider.userinfo(provider._known[bearer]))
                else:
                    self.answer({"error": "invalid_token"}, 401)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                form = parse_qs(self.rfile.read(length).decode())
                given = {name: values[0] for name, values in form.items()}
                try:
                    self.answer(provider.exchanged(given))
                except ValueError as problem:
                    provider.refusals.append(str(problem))
                    self.answer({"error": "invalid_grant", "error_description": str(problem)}, 400)

            def answer(self, body: object, status: int = 200) -> None:
                said = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def honest(self) -> None:
        """As it was made, for the next attack."""
        self.token, self.userinfo = self.signed, dict
        self.refusals.clear()

    # --- what it says -----------------------------------------------------------------------------

    def configuration(self) -> Claims:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def public_key(self) -> Claims:
        key: Claims = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**key, "kid": "one", "use": "sig", "alg": "RS256"}

    def visited(self, location: str) -> Sent:
        """What a person does who is sent here: she signs in and is sent back."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        if given.get("client_id") != CLIENT:
            raise ValueError("another client")
        code = secrets.token_urlsafe(12)
        self._grants[code] = _Grant(
            given["redirect_uri"],
            given.get("nonce", ""),
            given.get("code_challenge", ""),
            dict(self.person),
        )
        return Sent(code, given.get("state", ""))

    def exchanged(self, given: Claims) -> Claims:
        """Raises ValueError for what a provider refuses."""
        grant = self._grants.pop(given.get("code", ""), None)
        if grant is None:
            raise ValueError("the code is unknown or used")
        if (given.get("client_id"), given.get("client_secret")) != (CLIENT, CLIENT_SECRET):
            raise ValueError("another client")
        if given.get("redirect_uri") != grant.redirect_uri:
            raise ValueError("another way back")
        if grant.challenge:
            digest = sha256(given.get("code_verifier", "").encode()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != grant.challenge:
                raise ValueError("another browser's verifier")
        access = secrets.token_urlsafe(12)
        self._known[access] = grant.person
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": grant.person.get("sub", ""),
            "iat": now,
            "exp": now + 300,
            "jti": secrets.token_urlsafe(8),
            **({"nonce": grant.nonce} if grant.nonce else {}),
        }
        return {"access_token": access, "token_type": "Bearer", "id_token": self.token(claims)}

    def signed(self, claims: Claims) -> str:
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "one"})
