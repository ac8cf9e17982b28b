"""A program on her machine sends alice to the page of consent; she lets it in, sees it listed and ends it."""

from __future__ import annotations

import base64
import json
import threading
import urllib.request
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.journeys.conftest import Visit
from tests.journeys.people import Person

VERIFIER = "v" * 43


class Program:
    """What waits on her machine for the answer, and then leads her browser to a page of its maker."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        program = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not self.path.startswith("/back"):
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html")
                    self.end_headers()
                    self.wfile.write(b"<!doctype html><title>Done</title>You may close this.")
                    return
                program.answers.append(self.path)
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{program.port}/done")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port


@pytest.fixture
def program() -> Iterator[Program]:
    here = Program()
    threading.Thread(target=here.server.serve_forever, args=(0.02,), daemon=True).start()
    yield here
    here.server.shutdown()
    here.server.server_close()


def ask(address: str, body: bytes, kind: str) -> dict[str, str]:
    asked = urllib.request.Request(address, body, {"Content-Type": kind})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        said: dict[str, str] = json.load(answer)
    return said


def looks_right(person: Person) -> None:
    assert person.audit() == ""
    width = person.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0


def test_a_program_is_let_in_listed_and_shut_out(visit: Visit, program: Program):
    alice = visit()
    alice.expected.append("favicon")
    page, site = alice.page, alice.site.address
    back = f"http://127.0.0.1:{program.port}/back"
    said = json.dumps({"client_name": "Desk notes", "redirect_uris": [back]}).encode()
    client = ask(f"{site}/oauth/register", said, "application/json")["client_id"]
    proof = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": back,
        "code_challenge": proof,
        "code_challenge_method": "S256",
        "scope": "conversations:read conversations:write approvals:decide",
        "state": "7",
    }
    page.goto(f"/oauth/authorize?{urlencode(asked)}")
    who = page.get_by_role("heading", name="A program on your own machine")
    alice.confirm(then=who)
    expect(who).to_contain_text(f"127.0.0.1:{program.port}")
    looks_right(alice)
    page.get_by_role("button", name="Allow").click()
    page.wait_for_url(f"http://localhost:{program.port}/done")
    brought = parse_qs(urlsplit(program.answers[0]).query)
    assert brought["state"] == ["7"]
    form = {
        "grant_type": "authorization_code",
        "client_id": client,
        "code": brought["code"][0],
        "code_verifier": VERIFIER,
    }
    kind = "application/x-www-form-urlencoded"
    given = ask(f"{site}/oauth/token", urlencode(form).encode(), kind)
    assert given["scope"] == "conversations:read conversations:write"
    page.goto("/settings/tokens/")
    row = page.get_by_role("listitem").filter(has_text=f"Desk notes (127.0.0.1:{program.port})")
    expect(row).to_contain_text("a client that was let in at /mcp")
    looks_right(alice)
    row.get_by_role("button", name="Revoke").click()
    expect(row.get_by_role("button", name="Revoke")).to_have_count(0)
    more = {
        "grant_type": "refresh_token",
        "client_id": client,
        "refresh_token": given["refresh_token"],
    }
    with pytest.raises(urllib.request.HTTPError):
        ask(f"{site}/oauth/token", urlencode(more).encode(), kind)
