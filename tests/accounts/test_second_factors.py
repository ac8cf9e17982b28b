"""A code of a second factor counts once, and guesses of one are counted."""

from __future__ import annotations

import time
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts.models import User
from tests.cast import PASSWORD

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
PERIOD = 30
BEGIN = 60_000_000 * PERIOD
"""Where a period begins."""


class Clock:
    now = float(BEGIN)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time", lambda: clock.now)
    return clock


@pytest.fixture
def guarded(alice: User) -> User:
    TOTP.activate(alice, SECRET)
    return alice


def code_at(moment: float) -> str:
    return str(format_hotp_value(hotp_value(SECRET, int(moment) // PERIOD)))


def half_in(person: User) -> Client:
    """A browser of its own, in which the password was typed."""
    browser = Client()
    browser.post(reverse("account_login"), {"login": person.username, "password": PASSWORD})
    return browser


def lets_in(browser: Client, code: str) -> bool:
    browser.post(reverse("mfa_authenticate"), {"code": code})
    return bool(browser.get(reverse("accounts:keys")).status_code == 200)


@pytest.mark.parametrize("later", [1, PERIOD + 1, 2 * PERIOD - 1])
def test_a_code_is_not_taken_again_for_as_long_as_it_could_be_typed(
    guarded: User, clock: Clock, later: float
) -> None:
    ahead = code_at(BEGIN + PERIOD)  # of a telephone whose clock goes before
    assert lets_in(half_in(guarded), ahead)
    clock.now += later
    assert not lets_in(half_in(guarded), ahead)


def test_a_code_is_not_taken_again_after_the_cache_was_lost(guarded: User, clock: Clock) -> None:
    code = code_at(BEGIN)
    assert lets_in(half_in(guarded), code)
    cache.clear()
    assert not lets_in(half_in(guarded), code)


def test_a_code_before_the_last_one_is_not_taken_any_more(guarded: User, clock: Clock) -> None:
    assert lets_in(half_in(guarded), code_at(BEGIN))
    assert not lets_in(half_in(guarded), code_at(BEGIN - PERIOD))
    assert lets_in(half_in(guarded), code_at(BEGIN + PERIOD)), "the next one is"


def test_the_same_holds_where_a_password_was_typed_long_ago(guarded: User, clock: Clock) -> None:
    browser, code = half_in(guarded), code_at(BEGIN)
    assert lets_in(browser, code)
    clock.now += PERIOD + 1
    again = browser.post(reverse("mfa_reauthenticate"), {"code": code})
    assert again.status_code == 200, "the form comes back"
    again = browser.post(reverse("mfa_reauthenticate"), {"code": code_at(clock.now)})
    assert again.status_code == 302


def test_guesses_are_counted_however_much_else_is_remembered(
    guarded: User, clock: Clock, settings: Any
) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login_failed": "10/300s/key"}
    browser = half_in(guarded)
    for _guess in range(10):
        assert not lets_in(browser, "000000")
    assert not lets_in(browser, code_at(BEGIN)), "no more for now"
    for number in range(5_000):  # such as names that strangers try to sign in with
        cache.add(f"something-else:{number}", 1)
    assert not lets_in(browser, code_at(BEGIN))
