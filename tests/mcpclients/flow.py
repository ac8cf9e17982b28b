"""A client of `/mcp` and the browser of the person whom it sends here, as bytes."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client as Browser
from django.urls import reverse

from accounts.models import Organisation
from mcpclients.callers import caller_at_mcp
from tests.cast import PASSWORD

RESOURCE = "http://testserver/mcp"
ISSUER = "http://testserver"
BACK = "https://client.example/back"


def confirmed(browser: Browser) -> Browser:
    """Of somebody who has just typed the password once more."""
    answer = browser.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert answer.status_code == 302, answer.content
    return browser


def register(browser: Browser, **said: Any) -> Any:
    given = {"client_name": "Notes", "redirect_uris": [BACK], **said}
    return browser.post("/oauth/register", json.dumps(given), "application/json")


def opens(secret: str) -> bool:
    """Whether `/mcp` lets in whoever shows this. It asks in a thread, which sees what is committed."""
    return caller_at_mcp(secret) is not None


@dataclass
class OAuthClient:
    """A registered client. `browser` is nobody's: the client's own requests."""

    client_id: str
    redirect_uri: str = BACK
    browser: Browser = field(default_factory=Browser)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @classmethod
    def registered(cls, **said: Any) -> OAuthClient:
        made = register(Browser(), **said)
        assert made.status_code == 201, made.content
        return cls(made.json()["client_id"], made.json()["redirect_uris"][0])

    def address(self, **more: Any) -> str:
        proof = base64.urlsafe_b64encode(sha256(self.verifier.encode()).digest()).decode()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": proof.rstrip("="),
            "code_challenge_method": "S256",
            "scope": "conversations:read conversations:write",
            "state": "as it was",
            "resource": RESOURCE,
            **more,
        }
        return "/oauth/authorize?" + urlencode(
            {name: value for name, value in asked.items() if value is not None}
        )

    def code_of(self, hers: Browser, where: Organisation, **more: Any) -> str:
        """What a person's browser brings back who allows it."""
        form = {
            "organisation": where.uid,
            "scopes": ["conversations:read", "conversations:write"],
            "days": "90",
            "allow": "1",
        }
        answer = hers.post(self.address(**more), form)
        assert answer.status_code == 302, answer.content.decode()[-2000:]
        return brought_back(answer)["code"]

    def token(self, code: str, **more: Any) -> Any:
        asked = {"redirect_uri": self.redirect_uri, "code_verifier": self.verifier, **more}
        return self.post(
            "token", grant_type="authorization_code", code=code, resource=RESOURCE, **asked
        )

    def renew(self, refresh_token: str, **more: Any) -> Any:
        return self.post("token", grant_type="refresh_token", refresh_token=refresh_token, **more)

    def post(self, where: str, **form: Any) -> Any:
        given = {"client_id": self.client_id, **form}
        sent = urlencode({name: value for name, value in given.items() if value is not None})
        return self.browser.post(f"/oauth/{where}", sent, "application/x-www-form-urlencoded")

    def let_in(self, hers: Browser, where: Organisation) -> dict[str, Any]:
        answer = self.token(self.code_of(hers, where))
        assert answer.status_code == 200, answer.content
        given: dict[str, Any] = answer.json()
        return given


def brought_back(answer: Any) -> dict[str, str]:
    return {name: held[0] for name, held in parse_qs(urlsplit(answer["Location"]).query).items()}
