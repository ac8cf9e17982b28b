"""Signing in through an identity provider, with a real one on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from django.urls import reverse

from accounts.actions.invitations import invite_member
from accounts.models import Membership, Role, User
from audit.models import AuditEntry
from tests.cast import PASSWORD


class IdentityProvider:
    """An OpenID Connect server that vouches for whomever the test names."""

    def __init__(self) -> None:
        self.person = {"sub": "1", "email": "carol@example.org", "preferred_username": "carol"}
        self.codes: list[str] = []
        self.verifiers: list[str] = []
        self.claims: dict[str, object] = {}
        """Of the identity token; with none there is no token."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith("/.well-known/openid-configuration"):
                    self.answer(
                        {
                            "issuer": provider.url,
                            "jwks_uri": f"{provider.url}/jwks",
                            "authorization_endpoint": f"{provider.url}/authorize",
                            "token_endpoint": f"{provider.url}/token",
                            "userinfo_endpoint": f"{provider.url}/userinfo",
                        }
                    )
                elif self.headers["Authorization"] == "Bearer granted":
                    self.answer(provider.person)
                else:
                    self.send_error(401)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                form = parse_qs(self.rfile.read(length).decode())
                provider.codes += form["code"]
                provider.verifiers += form.get("code_verifier", [])
                granted = {"access_token": "granted", "token_type": "Bearer"}
                self.answer({**granted, **provider.id_token()})

            def answer(self, body: object) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def id_token(self) -> dict[str, str]:
        if not self.claims:
            return {}
        honest = {"iss": self.url, "aud": "agentsite", "exp": time.time() + 60}
        return {"id_token": jwt.encode({**honest, **self.claims}, "k" * 32, algorithm="HS256")}


@pytest.fixture
def provider(settings):
    stand_in = IdentityProvider()
    threading.Thread(target=stand_in.server.serve_forever, daemon=True).start()
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {
            "APPS": [
                {
                    "provider_id": "oidc",
                    "name": "Example sign-on",
                    "client_id": "agentsite",
                    "secret": "secret",
                    "settings": {"server_url": stand_in.url, "oauth_pkce_enabled": True},
                }
            ]
        }
    }
    yield stand_in
    stand_in.server.shutdown()
    stand_in.server.server_close()


def come_back_from(provider, client):
    """What a browser does: post the button's form, visit the provider, return with a code."""
    leaving = client.post(reverse("openid_connect_login", args=["oidc"]))
    assert leaving["Location"].startswith(f"{provider.url}/authorize?")
    [state] = parse_qs(urlsplit(leaving["Location"]).query)["state"]
    back = reverse("openid_connect_callback", args=["oidc"])
    return client.get(back, {"code": "a-code", "state": state}, follow=True)


def test_the_sign_in_page_offers_the_provider(provider, client, db):
    assert "Example sign-on" in client.get(reverse("account_login")).content.decode()


def test_a_stranger_is_not_let_in_without_an_invitation(provider, client, db):
    page = come_back_from(provider, client)

    assert provider.codes == ["a-code"]
    assert "invitation" in page.content.decode()
    assert not User.objects.exists()


def test_the_operator_may_open_sign_up_to_whoever_the_provider_knows(
    provider, client, db, settings
):
    settings.AGENTSITE_OIDC_SIGNUP = True
    come_back_from(provider, client)

    carol = User.objects.get()
    assert (carol.username, carol.email) == ("carol", "carol@example.org")
    assert not carol.has_usable_password()
    page = client.get(reverse("accounts:organisation"))
    assert page.context["request"].organisation.personal_of == carol


def test_an_invited_person_joins_through_the_provider(provider, alice, acme, client):
    issued = invite_member(
        actor=alice, organisation=acme, email="carol@example.org", role="reviewer"
    )
    client.get(reverse("accounts:invitation", args=[issued.token]))
    come_back_from(provider, client)

    carol = User.objects.get(username="carol")
    assert Membership.objects.role_in(acme, carol) is Role.REVIEWER


def test_mallory_joins_nothing_with_an_invitation_for_somebody_else(provider, alice, acme, client):
    provider.person = {"sub": "2", "email": "mallory@example.org", "preferred_username": "mallory"}
    issued = invite_member(actor=alice, organisation=acme, email="carol@example.org", role="member")
    client.get(reverse("accounts:invitation", args=[issued.token]))
    come_back_from(provider, client)

    assert not acme.memberships.exclude(user=alice).exists()
    assert not User.objects.filter(email="mallory@example.org").exists()


def test_the_provider_cannot_take_over_an_account_by_its_address(provider, alice, client, settings):
    settings.AGENTSITE_OIDC_SIGNUP = True
    provider.person = {"sub": "3", "email": alice.email, "preferred_username": "alice"}
    come_back_from(provider, client)

    assert not SocialAccount.objects.filter(user=alice).exists()
    assert client.get(reverse("accounts:keys")).status_code == 302


def test_a_known_person_signs_in_again(provider, client, db, settings):
    settings.AGENTSITE_OIDC_SIGNUP = True
    come_back_from(provider, client)
    client.post(reverse("account_logout"))
    settings.AGENTSITE_OIDC_SIGNUP = False

    come_back_from(provider, client)

    assert client.get(reverse("accounts:keys")).context["user"].username == "carol"
    assert User.objects.count() == 1


def test_an_account_elsewhere_that_is_connected_and_let_go_is_told(provider, alice, client_of):
    client = client_of(alice)
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    leaving = client.post(reverse("openid_connect_login", args=["oidc"]), {"process": "connect"})
    [state] = parse_qs(urlsplit(leaving["Location"]).query)["state"]
    back = reverse("openid_connect_callback", args=["oidc"])
    client.get(back, {"code": "a-code", "state": state}, follow=True)
    account = SocialAccount.objects.get(user=alice)
    told = AuditEntry.objects.latest("pk")
    assert (told.action, told.actor) == ("factor_added", alice)
    assert told.details == {"kind": "socialaccount", "provider": account.provider}

    client.post(reverse("socialaccount_connections"), {"account": account.pk})
    assert not SocialAccount.objects.exists()
    told = AuditEntry.objects.latest("pk")
    assert (told.action, told.actor) == ("factor_removed", alice)


def test_an_answer_nobody_asked_for_is_refused(provider, client, db, settings):
    settings.AGENTSITE_OIDC_SIGNUP = True
    back = reverse("openid_connect_callback", args=["oidc"])
    client.get(back, {"code": "a-code", "state": "made-up"}, follow=True)

    assert not User.objects.exists()


def test_a_code_is_of_use_only_in_the_browser_that_was_sent_for_it(provider, client, db, settings):
    settings.AGENTSITE_OIDC_SIGNUP = True
    leaving = client.post(reverse("openid_connect_login", args=["oidc"]))
    sent = parse_qs(urlsplit(leaving["Location"]).query)
    back = reverse("openid_connect_callback", args=["oidc"])
    client.get(back, {"code": "a-code", "state": sent["state"][0]}, follow=True)

    [verifier] = provider.verifiers
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    assert sent["code_challenge"] == [digest.rstrip(b"=").decode()]


@pytest.mark.parametrize(("subject", "lets_in"), [("1", True), ("somebody-else", False)])
def test_two_answers_about_two_people_let_nobody_in(
    provider, client, db, settings, subject, lets_in
):
    settings.AGENTSITE_OIDC_SIGNUP = True
    provider.claims = {"sub": subject}
    page = come_back_from(provider, client)

    assert User.objects.exists() is lets_in
    assert ("two different answers" in page.content.decode()) is not lets_in
