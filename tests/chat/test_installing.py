"""A browser is told what it needs to put the site among a person's programs, and nothing of anybody."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from PIL import Image

pytestmark = pytest.mark.django_db


@pytest.fixture
def told() -> dict[str, Any]:
    answer = Client().get("/manifest.webmanifest")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/manifest+json"
    found: dict[str, Any] = answer.json()
    return found


def test_every_icon_is_there_in_the_size_that_is_said(told):
    for icon in told["icons"]:
        place = finders.find(icon["src"].removeprefix("/static/"))
        assert place is not None, icon
        with Image.open(place) as picture:
            assert "x".join(map(str, picture.size)) == icon["sizes"]
            assert picture.format == "PNG"
    assert {icon["purpose"] for icon in told["icons"]} == {"any", "maskable"}


def test_what_it_leads_to_is_there_for_who_is_signed_in(told, alice, acme, client_of):
    client = client_of(alice)
    for address in (told["start_url"], *(each["url"] for each in told["shortcuts"])):
        assert client.get(address).status_code == 200


def test_it_is_the_same_for_everybody_and_kept_by_caches(alice, client_of):
    anonymous = Client().get("/manifest.webmanifest")
    assert client_of(alice).get("/manifest.webmanifest").content == anonymous.content
    assert "max-age" in anonymous["Cache-Control"]
    assert "Set-Cookie" not in anonymous
    assert "Accept-Language" in anonymous["Vary"]


def test_pages_of_everybody_and_of_who_is_signed_in_name_it(alice, acme, client_of):
    link = '<link rel="manifest" href="/manifest.webmanifest">'
    assert link in Client().get("/accounts/login/").content.decode()
    assert link in client_of(alice).get("/").content.decode()
