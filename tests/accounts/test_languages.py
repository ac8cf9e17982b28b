"""Pages and mails come in the language of a person's account; where she chose none, as her browser asks."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client

from accounts.models import User
from notices.mailing import compose
from notices.models import Kind
from tests.cast import PASSWORD

pytestmark = pytest.mark.django_db

GERMAN = b'<html lang="de" dir="ltr"'
ENGLISH = b'<html lang="en" dir="ltr"'
ARABIC = b'<html lang="ar" dir="rtl"'


def choose(client: Client, language: str):
    return client.post("/settings/language/", {"language": language})


def cookie(client: Client) -> str:
    kept = client.cookies.get(settings.LANGUAGE_COOKIE_NAME)
    return kept.value if kept else ""


def test_a_chosen_language_is_spoken_at_once_and_on_every_device(alice, acme, client_of):
    desk, phone = client_of(alice), client_of(alice)
    assert ENGLISH in desk.get("/settings/").content
    answer = choose(desk, "de")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/settings/"
    page = desk.get("/settings/")
    assert GERMAN in page.content
    assert "<h1>Einstellungen</h1>" in page.content.decode()
    assert page.headers["Content-Language"] == "de"
    assert GERMAN in phone.get("/settings/").content
    # By it the phone's sockets speak as its pages do.
    assert cookie(phone) == "de"


def test_arabic_is_written_from_right_to_left(alice, acme, client_of):
    client = client_of(alice)
    choose(client, "ar")
    assert ARABIC in client.get("/settings/").content


def test_without_a_choice_a_browser_gets_what_it_asks_for(alice, acme, client_of):
    client = client_of(alice)
    assert GERMAN in client.get("/settings/", headers={"accept-language": "de-AT,de;q=0.9"}).content
    assert ENGLISH in client.get("/settings/", headers={"accept-language": "fi"}).content
    assert GERMAN in Client().get("/accounts/login/", headers={"accept-language": "de"}).content


def test_a_choice_that_is_taken_back_leaves_it_to_the_browser_again(alice, acme, client_of):
    client = client_of(alice)
    choose(client, "ar")
    choose(client, "")
    assert cookie(client) == ""
    assert GERMAN in client.get("/settings/", headers={"accept-language": "de"}).content
    assert User.objects.get(pk=alice.pk).language == ""


def test_the_next_person_at_a_browser_is_not_spoken_to_in_the_last_ones_language(
    alice, bob, acme, client_of
):
    client = client_of(alice)
    choose(client, "ar")
    client.post("/accounts/logout/")
    # The page to sign in on keeps it: most likely she comes back.
    assert ARABIC in client.get("/accounts/login/").content
    client.post("/accounts/login/", {"login": "bob", "password": PASSWORD})
    assert ENGLISH in client.get("/settings/").content


def test_a_language_that_is_not_spoken_is_refused_and_changes_nothing(alice, acme, client_of):
    client = client_of(alice)
    choose(client, "de")
    answer = choose(client, "tlh")
    assert answer.status_code == 400
    assert User.objects.get(pk=alice.pk).language == "de"


def test_nobody_chooses_who_is_not_signed_in(alice, acme):
    assert choose(Client(), "de").headers["Location"].startswith("/accounts/login/")


def test_a_mail_is_written_in_its_readers_language(alice, acme, settings):
    settings.AGENTSITE_BASE_URL = "https://agents.example.org"
    alice.language = "de"
    compose(alice, Kind.WAITS, []).send()
    alice.language = ""
    compose(alice, Kind.WAITS, []).send()
    german, english = mail.outbox
    assert german.subject != english.subject
    settings.AGENTSITE_LANGUAGE = "de"
    assert compose(alice, Kind.WAITS, []).subject == german.subject
