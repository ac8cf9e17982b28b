"""Provider keys: sealed at rest, write-only, and the narrowest wins."""

from __future__ import annotations

import logging
import traceback
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import IntegrityError, transaction

from accounts import vault
from accounts.actions.members import remove_member
from accounts.actions.provider_keys import remove_provider_key, store_provider_key
from accounts.models import Membership, ProviderKey, Scope
from accounts.provider_keys import resolve
from harness.errors import Forbidden, Invalid, NotConfigured, NotFound

KEY = "sk-test-0123456789-abcd"


@pytest.fixture(autouse=True)
def no_keys_in_the_environment(settings):
    settings.AGENTSITE_PROVIDER_KEYS = {}


def store(actor, scope="user", key=KEY, **more):
    return store_provider_key(actor=actor, scope=scope, provider="anthropic", key=key, **more)


def key_of(user, organisation):
    resolved = resolve(user, organisation, "anthropic")
    assert resolved is not None
    return resolved.key


def test_a_stored_key_is_sealed_and_opens_again(alice, acme):
    row = store(alice)

    assert KEY not in row.sealed_key
    assert row.last_four == "abcd"
    assert key_of(alice, acme) == KEY


def test_the_same_key_sealed_twice_looks_different():
    assert vault.seal(KEY) != vault.seal(KEY)


def test_storing_again_replaces_the_key(alice, acme):
    store(alice)
    store(alice, key="sk-another-0123456789")

    assert ProviderKey.objects.count() == 1
    assert key_of(alice, acme) == "sk-another-0123456789"


def test_the_narrowest_scope_wins(alice, bob, staff, acme, settings):
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "from-environment", "base_url": ""}}
    assert key_of(alice, acme) == "from-environment"
    store(staff, "deployment", key="from-deployment")
    assert key_of(alice, acme) == "from-deployment"
    store(alice, "organisation", key="from-organisation", organisation=acme)
    assert key_of(alice, acme) == "from-organisation"
    assert key_of(bob, acme) == "from-organisation"
    store(alice, "user", key="from-alice")
    assert key_of(alice, acme) == "from-alice"
    assert key_of(bob, acme) == "from-organisation"


def test_nothing_stored_and_nothing_in_the_environment_is_none(alice, acme):
    assert resolve(alice, acme, "anthropic") is None


def test_another_provider_is_another_key(alice, acme):
    store(alice)

    assert resolve(alice, acme, "openai_compatible") is None


def test_a_wider_key_is_never_sent_to_a_narrower_address(alice, acme):
    store(alice, "organisation", organisation=acme)
    store(alice, "user", key="", base_url="https://elsewhere.example.org")

    resolved = resolve(alice, acme, "anthropic")
    assert resolved is not None
    assert (resolved.key, resolved.base_url) == ("", "https://elsewhere.example.org")


def test_mallory_cannot_work_with_the_key_of_acme(alice, acme, mallory):
    store(alice, "organisation", organisation=acme)

    assert resolve(mallory, acme, "anthropic") is None


def test_whoever_leaves_loses_the_organisations_key(alice, bob, acme):
    store(alice, "organisation", organisation=acme)
    remove_member(actor=alice, membership=Membership.objects.get(user=bob))

    assert resolve(bob, acme, "anthropic") is None


def test_only_those_who_manage_set_the_organisations_key(bob, mallory, acme):
    with pytest.raises(Forbidden):
        store(bob, "organisation", organisation=acme)
    with pytest.raises(NotFound):
        store(mallory, "organisation", organisation=acme)
    with pytest.raises(NotFound):
        store(bob, "organisation")
    assert not ProviderKey.objects.exists()


def test_only_the_operator_sets_a_key_for_everybody(alice, acme, staff):
    with pytest.raises(Forbidden):
        store(alice, "deployment")
    assert store(staff, "deployment").scope is Scope.DEPLOYMENT


def test_keys_are_seen_only_by_whoever_may_change_them(alice, bob, mallory, staff, acme):
    own = store(bob)
    shared = store(alice, "organisation", organisation=acme)
    everybodys = store(staff, "deployment")

    assert set(ProviderKey.objects.visible_to(alice)) == {shared}
    assert set(ProviderKey.objects.visible_to(bob)) == {own}
    assert set(ProviderKey.objects.visible_to(mallory)) == set()
    assert set(ProviderKey.objects.visible_to(staff)) == {everybodys}


def test_to_mallory_a_key_of_alice_does_not_exist(alice, mallory):
    row = store(alice)

    with pytest.raises(NotFound):
        remove_provider_key(actor=mallory, provider_key=row)
    assert ProviderKey.objects.filter(pk=row.pk).exists()
    remove_provider_key(actor=alice, provider_key=row)
    assert not ProviderKey.objects.exists()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("key", {"key": ""}),
        ("key", {"key": "two words-secret"}),
        ("key", {"key": "secret\nX-Injected: 1"}),
        ("key", {"key": "sécret"}),
        ("key", {"key": "s" * 501}),
        ("base_url", {"base_url": "models.example.org"}),
        ("base_url", {"base_url": "ftp://models.example.org"}),
        ("base_url", {"base_url": "https://user:secret@models.example.org"}),
        ("base_url", {"base_url": "https://models.example.org/?key=secret"}),
        ("base_url", {"base_url": "https://models.example.org:port"}),
        ("base_url", {"base_url": "https://models.example.org/a b"}),
        ("base_url", {"base_url": "http://169.254.169.254/latest"}),
        ("base_url", {"base_url": "https://" + "m" * 500}),
        ("provider", {"provider": "An Thropic"}),
        ("provider", {"provider": ""}),
        ("scope", {"scope": "planet"}),
    ],
)
def test_a_wrong_value_is_refused_by_field_and_never_repeated(alice, field, values):
    given = {"scope": "user", "provider": "anthropic", "key": KEY, "base_url": "", **values}
    with pytest.raises(Invalid) as refusal:
        store_provider_key(actor=alice, **given)
    assert refusal.value.field == field
    assert refusal.value.hint
    assert "secret" not in refusal.value.message + refusal.value.hint
    assert not ProviderKey.objects.exists()


def test_a_key_at_its_limit_is_taken(alice):
    assert store(alice, key="s" * 500).last_four == "ssss"


def test_a_short_key_shows_nothing_of_itself(alice):
    assert store(alice, key="abcdefgh").last_four == ""


def test_a_key_shows_in_no_representation(alice, acme, caplog):
    caplog.set_level(logging.DEBUG)
    row = store(alice)
    resolved = resolve(alice, acme, "anthropic")

    shown = f"{row!r} {row} {resolved!r} {resolved} {caplog.text}"
    assert KEY not in shown


def test_a_key_shows_in_no_exception_of_a_closed_vault(alice, settings):
    settings.AGENTSITE_VAULT_KEYS = []
    with pytest.raises(NotConfigured) as refusal:
        store(alice)
    assert KEY not in "".join(traceback.format_exception(refusal.value))

    settings.AGENTSITE_VAULT_KEYS = ["not-a-fernet-key"]
    with pytest.raises(NotConfigured) as refusal:
        store(alice)
    assert "not-a-fernet-key" not in "".join(traceback.format_exception(refusal.value))


def test_a_vault_key_is_rotated_without_losing_a_secret(alice, acme, settings):
    old, new = settings.AGENTSITE_VAULT_KEYS[0], Fernet.generate_key().decode()
    store(alice)
    TOTP.activate(alice, "TOTPSECRET")

    settings.AGENTSITE_VAULT_KEYS = [new, old]
    assert key_of(alice, acme) == KEY
    call_command("reseal_secrets", stdout=StringIO())
    settings.AGENTSITE_VAULT_KEYS = [new]
    assert key_of(alice, acme) == KEY
    assert vault.open_sealed(Authenticator.objects.get().data["secret"]) == "TOTPSECRET"


def test_a_lost_vault_key_is_said_plainly(alice, acme, settings):
    store(alice)
    settings.AGENTSITE_VAULT_KEYS = [Fernet.generate_key().decode()]

    with pytest.raises(NotConfigured) as refusal:
        resolve(alice, acme, "anthropic")
    assert "AGENTSITE_VAULT_KEY" in refusal.value.hint


def test_the_table_holds_one_key_for_each_scope_and_provider(alice):
    store(alice)
    with pytest.raises(IntegrityError), transaction.atomic():
        ProviderKey.objects.create(user=alice, provider="anthropic")


def test_a_key_has_one_scope(alice, acme):
    with pytest.raises(IntegrityError), transaction.atomic():
        ProviderKey.objects.create(user=alice, organisation=acme, provider="anthropic")
