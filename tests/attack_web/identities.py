"""An OpenID Connect provider on loopback that says what an attack wants it to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs


class IdentityProvider:
    """Vouches for `person`. What the token endpoint adds to its answer is `token`'s; `codes` came in."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.token: Callable[[], dict[str, Any]] = dict
        self.codes: list[str] = []
        self.issuer = ""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("/.well-known/openid-configuration"):
                    self.answer(
                        {
                            "issuer": provider.issuer or provider.url,
                            "authorization_endpoint": f"{provider.url}/authorize",
                            "token_endpoint": f"{provider.url}/token",
                            "userinfo_endpoint": f"{provider.url}/userinfo",
                            "jwks_uri": f"{provider.url}/jwks",
                        }
                    )
                elif self.path == "/jwks":
                    self.answer({"keys": []})
                elif self.headers["Authorization"] == "Bearer granted":
                    self.answer(provider.person)
                else:
                    self.send_error(401)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                form = parse_qs(self.rfile.read(length).decode())
                provider.codes += form.get("code", [])
                self.answer({"access_token": "granted", "token_type": "Bearer", **provider.token()})

            def answer(self, body: object) -> None:
                said = json.dumps(body).encode()
                self.send_response(200)
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
