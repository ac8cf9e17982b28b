"""Guessing is slow however an account is spelt, and nobody is kept out of her own by others."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from accounts import lockout
from accounts.adapters import AccountAdapter
from accounts.addresses import neighbourhood
from accounts.devices import COOKIE
from accounts.lockout import ACCOUNT_FAILURES, account_of
from tests.cast import PASSWORD

SPELLINGS = ["alice", "ALICE", " alice ", "alice@example.org", "Alice@Example.ORG", "aLiCe\t"]


@pytest.fixture(autouse=True)
def counting(settings):
    settings.AXES_ENABLED = True
    cache.clear()
    yield
    cache.clear()


def attempt(client: Client, login: str, password: str, address: str = "198.51.100.1") -> bool:
    """Whether it signs in."""
    client.post(
        reverse("account_login"), {"login": login, "password": password}, REMOTE_ADDR=address
    )
    return "_auth_user_id" in client.session


def fail(login: str, times: int, address: str = "198.51.100.1") -> None:
    for _ in range(times):
        attempt(Client(), login, "wrong", address)


def test_all_spellings_of_an_account_are_one(alice, bob):
    assert {account_of(spelling) for spelling in SPELLINGS} == {f"account:{alice.pk}"}
    assert account_of("bob") != account_of("alice")
    assert account_of("no\u00a0body") == account_of("NOBODY") == account_of("ｎｏｂｏｄｙ")
    assert len(account_of("x" * 5000)) <= 150
    assert account_of("al\0ice") == account_of("alice")


def test_another_spelling_opens_no_second_count(alice):
    for spelling in SPELLINGS[:5]:
        attempt(Client(), spelling, "wrong")
    for spelling in SPELLINGS:
        assert not attempt(Client(), spelling, PASSWORD)


def test_what_locks_a_strangers_address_locks_no_other(alice):
    for number in range(4):
        fail("alice", 6, f"203.0.113.{number}")
    assert attempt(Client(), "alice", PASSWORD, "198.51.100.1")


def test_an_ipv6_subscriber_is_one_address(alice):
    for number in range(5):
        attempt(Client(), "alice", "wrong", f"2001:db8::{number + 1}")
    assert not attempt(Client(), "alice", PASSWORD, "2001:db8::ffff")
    assert attempt(Client(), "alice", PASSWORD, "2001:db8:0:1::1")
    assert neighbourhood("::ffff:192.0.2.7") == "192.0.2.7"


def test_many_addresses_together_guess_slowly(alice, monkeypatch):
    monkeypatch.setattr(lockout, "ACCOUNT_FAILURES", 4)
    for number in range(5):  # the fifth takes the one turn of these seconds
        fail("alice", 1, f"203.0.113.{number}")
    assert not attempt(Client(), "alice", PASSWORD, "203.0.113.99")
    cache.delete(f"sign-in:turn:account:{alice.pk}")  # the seconds have passed
    assert attempt(Client(), "alice", PASSWORD, "203.0.113.99")
    assert ACCOUNT_FAILURES > 4


def test_a_browser_she_has_used_before_is_not_held_up_by_any_of_it(alice, monkeypatch):
    monkeypatch.setattr(lockout, "ACCOUNT_FAILURES", 4)
    hers = Client()
    assert attempt(hers, "alice", PASSWORD)
    kept = hers.cookies[COOKIE].value
    hers = Client()
    hers.cookies[COOKIE] = kept
    fail("alice", 8, "198.51.100.1")  # from her own address
    fail("alice", 1, "203.0.113.1")
    assert not attempt(Client(), "alice", PASSWORD)
    assert attempt(hers, "alice", PASSWORD)


def test_a_known_browser_has_a_count_of_its_own(alice):
    hers = Client()
    assert attempt(hers, "alice", PASSWORD)
    kept = hers.cookies[COOKIE].value
    hers = Client()
    hers.cookies[COOKIE] = kept
    for _ in range(5):
        attempt(hers, "alice", "wrong")
    assert not attempt(hers, "alice", PASSWORD)
    assert attempt(Client(), "alice", PASSWORD)


def test_a_forged_or_foreign_cookie_is_no_known_browser(alice, bob):
    his = Client()
    assert attempt(his, "bob", PASSWORD)
    for value in (his.cookies[COOKIE].value, "forged"):
        fail("alice", 6)
        browser = Client()
        browser.cookies[COOKIE] = value
        assert not attempt(browser, "alice", PASSWORD)


@pytest.mark.parametrize("addresses", [1, 6])
def test_whoever_owns_the_mailbox_gets_in_by_a_reset(alice, monkeypatch, mailoutbox, addresses):
    """Also while strangers take every turn of the account's unknown browsers."""
    monkeypatch.setattr(lockout, "ACCOUNT_FAILURES", 4)
    for number in range(6):
        fail("alice", 1, f"203.0.113.{number % addresses}")
    browser = Client()
    assert not attempt(browser, "alice", PASSWORD, "203.0.113.0" if addresses == 1 else "192.0.2.1")
    browser.post(reverse("account_reset_password"), {"email": alice.email})
    link = next(word for word in mailoutbox[0].body.split() if "/password/reset/key/" in word)
    form = browser.get(link, follow=True)
    values = {"password1": "an entirely new phrase", "password2": "an entirely new phrase"}
    browser.post(form.request["PATH_INFO"], values)
    assert attempt(browser, "alice", "an entirely new phrase")


def test_a_user_name_that_is_somebody_elses_address_makes_no_browser_known(alice, bob):
    bob.username = alice.email
    bob.save()
    his = Client()
    for number in range(8):
        if number % 4 == 0:  # each sign-in of his own gives the browser a fresh count
            assert attempt(his, bob.email, PASSWORD)
            kept = his.cookies[COOKIE].value
        his = Client()
        his.cookies[COOKIE] = kept
        attempt(his, alice.email, "wrong")
    assert not attempt(his, alice.email, PASSWORD)
    assert account_of(alice.email) == f"account:{alice.pk}"
    cache.clear()
    alice.set_password("another phrase altogether")
    alice.save()
    assert not attempt(Client(), alice.email, PASSWORD, "203.0.113.5")  # which is his


def test_nobody_signs_up_under_an_address_as_user_name():
    with pytest.raises(ValidationError):
        AccountAdapter().clean_username("alice@example.org")
