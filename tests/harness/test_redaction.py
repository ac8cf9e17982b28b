"""Secrets in what is shown of a model's requests: by name and by looks, and nothing harmless."""

from __future__ import annotations

import time

import pytest

from harness.redaction import MASK, redacted, redacted_text
from tests.hostile import LOOKS_LIKE_SECRETS


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijklmnop",
        "ags_0123456789abcdef0123456789abcdef",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop",
    ],
)
def test_what_looks_like_a_key_is_masked(secret):
    assert secret not in redacted_text(f"use {secret} here")


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2hunter2",
        "API_KEY=abcdef123456",
        'client_secret: "abcdef123456"',
        "Authorization: Bearer abcdef.123456-xyz",
        "https://user:hunter2hunter2@example.org/",
        "password\u00a0=\u00a0hunter2hunter2",
        "Bearer\u2003abcdef.123456-xyz",
        "ＡＰＩ＿ＫＥＹ：abcdef123456",
        "tok\u212aen\u3000=\u2003abcdef123456".replace("k\u212a", "\u212a"),
        "pa\u017f\u017fword=hunter2hunter2",
        "password = “hunter2 hunter2”",
        "passphrase=hunter2hunter2",
        "postgres://user:ab/hunter2@example.org/",
        '{"body": "{\\"password\\": \\"hunter2hunter2\\"}"}',
    ],
)
def test_what_is_assigned_to_a_telling_name_is_masked(text):
    masked = redacted_text(text)
    assert MASK in masked
    assert "hunter2" not in masked
    assert "abcdef" not in masked


@pytest.mark.parametrize(
    "text",
    [
        "a" * 80,
        "d41d8cd98f00b204e9800998ecf8427e" * 2,
        "The token is used up.",
        "tokens: 12",
        "sk-learn is a library",
        "Keep it secret.",
        "Ｋｅｅｐ it “secret” – 秘密\u3000です。",
        '{"at": "http://localhost:8080/path", "mail": "a@example.org"}',
    ],
)
def test_harmless_text_stays(text):
    assert redacted_text(text) == text


def test_fields_are_masked_by_their_names_at_any_depth():
    shown = redacted({"a": [{"api_key": "x1", "x-api-key": "x2", "max_tokens": 5, "note": "fine"}]})
    assert shown == {"a": [{"api_key": MASK, "x-api-key": MASK, "max_tokens": 5, "note": "fine"}]}


def test_what_nobody_sees_in_a_name_hides_no_secret():
    assert redacted({"pass\u200bword": "x1", "api_\u00adkey": "x2"}) == {
        "pass\u200bword": MASK,
        "api_\u00adkey": MASK,
    }


def test_a_key_that_is_known_is_masked_whatever_it_looks_like():
    assert redacted_text("plainlooking1 stays not", ["plainlooking1"]) == f"{MASK} stays not"


def test_a_private_key_is_masked_even_without_its_end():
    text = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n"
    assert "MIIabc" not in redacted_text(text)


@pytest.mark.parametrize("name", LOOKS_LIKE_SECRETS)
def test_four_times_the_text_takes_about_four_times_as_long(name):
    """What is quadratic takes sixteen times."""
    text = LOOKS_LIKE_SECRETS[name]
    text *= 100_000 // len(text) + 1
    assert any(_seconds(text * 4) < 9 * _seconds(text) for _try in range(5))


def _seconds(text: str) -> float:
    began = time.thread_time()
    redacted_text(text)
    redacted({text: "x"})
    return time.thread_time() - began


def test_half_a_character_is_no_way_past_the_mask():
    assert "hunter2" not in redacted_text("\ud800 password: hunter2hunter2")
