"""Each unsafe production value is one numbered error, and refuses the start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from agentsite import checks
from agentsite.checks import check_installation, refuse_unsafe_start
from memory.embedding.chosen import NEEDS

SECRET_KEY = "kJ8#vQ2!mZ5@xW9$bN4%cR7^tY1&uI3*oP6(aS0)dF_gH+jKl="
VAULT_KEY = Fernet.generate_key().decode()

SAFE = {
    "AGENTSITE_ENV": "production",
    "DEBUG": False,
    "SECRET_KEY": SECRET_KEY,
    "ALLOWED_HOSTS": ["agents.example.org"],
    "AGENTSITE_BASE_URL": "https://agents.example.org",
    "SESSION_COOKIE_SECURE": True,
    "CSRF_COOKIE_SECURE": True,
    "CSRF_TRUSTED_ORIGINS": ["https://agents.example.org"],
    "AGENTSITE_VAULT_KEYS": [VAULT_KEY],
}


@pytest.fixture
def production(settings):
    for name, value in SAFE.items():
        setattr(settings, name, value)
    return settings


def found() -> list[str]:
    return [str(message.id) for message in check_installation()]


def test_safe_production_values_raise_nothing(production):
    assert found() == []
    refuse_unsafe_start()


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("AGENTSITE_ENV", "prod", "agentsite.E001"),
        ("DEBUG", True, "agentsite.E002"),
        ("SECRET_KEY", "unset:kJ8#vQ2!mZ5@xW9$bN4%cR7^tY1&uI3*oP6(aS0)dF_gH", "agentsite.E003"),
        ("SECRET_KEY", "django-insecure-" + SECRET_KEY, "agentsite.E003"),
        ("SECRET_KEY", "changeme" + SECRET_KEY, "agentsite.E003"),
        ("SECRET_KEY", SECRET_KEY[:49], "agentsite.E003"),
        ("SECRET_KEY", "abc" * 30, "agentsite.E003"),
        ("ALLOWED_HOSTS", [], "agentsite.E004"),
        ("ALLOWED_HOSTS", ["*"], "agentsite.E004"),
        ("AGENTSITE_BASE_URL", "", "agentsite.E005"),
        ("AGENTSITE_BASE_URL", "agents.example.org", "agentsite.E005"),
        ("SESSION_COOKIE_SECURE", False, "agentsite.E006"),
        ("CSRF_COOKIE_SECURE", False, "agentsite.E006"),
        ("CSRF_TRUSTED_ORIGINS", ["https://other.example.org"], "agentsite.E007"),
        (
            "CSRF_TRUSTED_ORIGINS",
            ["https://agents.example.org", "https://*.example.org"],
            "agentsite.E008",
        ),
        ("AGENTSITE_VAULT_KEYS", [], "agentsite.E009"),
        ("AGENTSITE_VAULT_KEYS", [VAULT_KEY, "short"], "agentsite.E009"),
    ],
)
def test_an_unsafe_value_is_one_numbered_error_and_refuses_the_start(
    production, name, value, number
):
    setattr(production, name, value)

    assert found() == [number]
    with pytest.raises(ImproperlyConfigured, match=number):
        refuse_unsafe_start()


def test_plain_http_in_production_is_a_warning_only(production):
    production.AGENTSITE_BASE_URL = "http://agents.example.org"
    production.CSRF_TRUSTED_ORIGINS = ["http://agents.example.org"]

    assert found() == ["agentsite.W001"]
    refuse_unsafe_start()


def test_no_message_repeats_a_secret(production):
    production.SECRET_KEY = "a-short-secret"
    production.AGENTSITE_VAULT_KEYS = ["a-malformed-secret"]

    for message in check_installation():
        assert "secret" not in str(message).replace("AGENTSITE_SECRET_KEY", "")


def test_no_two_checks_have_one_number():
    numbers = re.findall(r'"(?:agentsite\.)?([EW]\d{3})"', Path(checks.__file__).read_text())
    assert len(numbers) > 20
    assert sorted(numbers) == sorted(set(numbers))


def test_the_local_profile_is_not_held_to_production_values(settings):
    settings.AGENTSITE_ENV = "local"
    settings.DEBUG = True
    settings.AGENTSITE_VAULT_KEYS = []

    assert found() == []


def test_a_language_that_is_not_spoken_is_refused_at_the_start(production):
    production.AGENTSITE_LANGUAGE = "tlh"
    assert found() == ["agentsite.E031"]
    with pytest.raises(ImproperlyConfigured, match="AGENTSITE_LANGUAGE"):
        refuse_unsafe_start()


def test_where_mails_come_in_is_an_address_and_a_mailbox(settings):
    settings.AGENTSITE_INBOUND_MAIL = "nowhere"
    assert found() == ["agentsite.E053"]
    settings.AGENTSITE_INBOUND_MAIL = "@in.example.org"
    for crooked in ("https://example.org", "imaps://", "imaps://anna:b@host:x/", "imap://[::1/"):
        settings.AGENTSITE_IMAP_URL = crooked
        assert found() == ["agentsite.E054"], crooked
    settings.AGENTSITE_IMAP_URL = "imaps://anna:b%40c@mail.example.org/In"
    assert found() == []
    settings.AGENTSITE_INBOUND_MAIL = ""
    assert found() == ["agentsite.E055"]


@pytest.mark.parametrize("profile", ["local", "production"])
def test_a_broker_without_redis_is_refused_whatever_the_profile(production, profile):
    production.AGENTSITE_ENV = profile
    production.AGENTSITE_BROKER_URL = "redis://127.0.0.1/1"
    assert found() == ["agentsite.E010"]
    production.AGENTSITE_REDIS_URL = "redis://127.0.0.1/0"
    assert found() == []


def test_an_embedder_that_is_none_or_lacks_its_packages_is_an_error(production, monkeypatch):
    production.AGENTSITE_EMBEDDINGS = "letters"
    assert found() == []
    production.AGENTSITE_EMBEDDINGS = "openai"
    assert found() == ["agentsite.E029"]
    monkeypatch.setitem(NEEDS, "letters", ("no-such-package",))
    production.AGENTSITE_EMBEDDINGS = "letters"
    assert found() == ["agentsite.E030"]
