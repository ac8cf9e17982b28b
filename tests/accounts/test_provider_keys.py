"""Provider keys: sealed at rest, write-only, and the narrowest wins."""

from __future__ import annotations

import logging
import socket
import traceback
from io import StringIO
from ipaddress import ip_address

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.core.management import call_command
from django.db import IntegrityError, transaction

from accounts import vault
from accounts.actions.members import remove_member
from accounts.actions.provider_keys import remove_provider_key, store_provider_key
from accounts.models import Membership, ProviderKey, Scope
from accounts.provider_connections import way_of
from accounts.provider_keys import resolve
from harness.errors import AddressRefused, Forbidden, Invalid, NotConfigured, NotFound

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


# --- who pays -------------------------------------------------------------------------------------

OURS = "http://localhost:11434/v1"


def pays(user, organisation, provider="openai_compatible"):
    resolved = resolve(user, organisation, provider)
    assert resolved is not None
    return resolved.server_pays


def of_alice(alice, key="", base_url=OURS, provider="openai_compatible"):
    store_provider_key(actor=alice, scope="user", provider=provider, key=key, base_url=base_url)


@pytest.fixture(params=["row", "environment"])
def of_the_server(request, staff, settings):
    """Sets the deployment's key and address, in either place."""

    def give(key="", base_url=OURS, provider="openai_compatible"):
        if request.param == "row":
            store_provider_key(
                actor=staff, scope="deployment", provider=provider, key=key, base_url=base_url
            )
        else:
            settings.AGENTSITE_PROVIDER_KEYS = {provider: {"key": key, "base_url": base_url}}

    return give


def test_what_the_deployment_gives_the_server_pays(alice, acme, of_the_server):
    of_the_server(key=KEY)
    assert pays(alice, acme)


@pytest.mark.parametrize(
    "spelt",
    [
        OURS,
        f"{OURS}/",
        "HTTP://LOCALHOST:11434/v1",
        "http://localhost.:11434/v1",
        "http://localhost:11434/v1/../v1",
        "https://localhost:11434/other",
        "http://127.0.0.1:11434/v1",
        "http://127.1:11434",
        "http://[::1]:11434",
        "http://[::ffff:127.0.0.1]:11434",
    ],
)
@pytest.mark.parametrize("key", ["", "sk-that-nobody-looks-at"])
def test_at_the_servers_own_keyless_service_it_pays_whoever_names_it(
    alice, acme, of_the_server, settings, spelt, key
):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [
        "localhost:11434",
        "127.0.0.1:11434",
        "[::1]:11434",
    ]
    of_the_server()
    of_alice(alice, key, spelt)
    assert pays(alice, acme)


@pytest.mark.parametrize("host", ["ollama.internal", "10.0.0.8", "models.example.org"])
@pytest.mark.parametrize("given", ["", "stop-gap"])
@pytest.mark.parametrize("key", ["", "sk-that-nobody-looks-at"])
def test_inside_the_network_the_server_pays_whatever_the_name_and_the_key(
    alice, acme, of_the_server, settings, host, given, key
):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [f"{host}:8000"]
    of_the_server(key=given, base_url="http://gpu.internal:8000/v1")
    of_alice(alice, key, f"http://{host}:8000/v1")
    assert pays(alice, acme)


def test_inside_the_network_it_pays_for_an_organisations_row_too(alice, bob, acme, of_the_server):
    of_the_server(key="stop-gap", base_url="http://gpu.internal:8000/v1")
    store_provider_key(
        actor=alice,
        scope="organisation",
        organisation=acme,
        provider="openai_compatible",
        key="sk-any",
        base_url=OURS,
    )
    assert pays(bob, acme)


def test_another_port_of_a_listed_host_is_no_service_inside(alice, acme, of_the_server, settings):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = ["models.example.org:8000"]
    of_the_server(key=KEY)
    of_alice(alice, "sk-own", "https://models.example.org")
    assert not pays(alice, acme)


@pytest.mark.parametrize(
    "named", ["http://models.example.org", "https://models.example.org:443/v1"]
)
def test_who_brings_no_key_to_the_servers_address_is_not_taken_to_pay(
    alice, acme, of_the_server, named
):
    of_the_server(key=KEY, base_url="https://models.example.org")
    of_alice(alice, "", named)
    assert pays(alice, acme)
    store_provider_key(
        actor=alice,
        scope="organisation",
        organisation=acme,
        provider="openai_compatible",
        key="",
        base_url=named,
    )
    remove_provider_key(actor=alice, provider_key=ProviderKey.objects.get(user=alice))
    assert pays(alice, acme)


def test_it_counts_under_whichever_protocol_the_service_is_asked(alice, acme, of_the_server):
    of_the_server(base_url="https://models.example.org", provider="openai_compatible")
    of_alice(alice, "sk-any", "https://models.example.org", provider="anthropic")
    assert pays(alice, acme, "anthropic")


def test_the_servers_key_is_the_servers_wherever_it_is_stored(alice, acme, of_the_server):
    of_the_server(key=KEY, base_url="https://models.example.org")
    of_alice(alice, KEY, "https://other.example.org")
    assert pays(alice, acme)


@pytest.mark.parametrize(
    ("key", "base_url"),
    [
        ("sk-own", "https://models.example.org"),
        ("sk-own", "https://other.example.org"),
        ("", "https://other.example.org"),
        ("", "https://models.example.org:8443"),
    ],
)
def test_with_a_key_or_a_service_of_her_own_a_person_pays_herself(
    alice, acme, of_the_server, key, base_url
):
    of_the_server(key=KEY, base_url="https://models.example.org")
    of_alice(alice, key, base_url)
    assert not pays(alice, acme)


def test_an_address_without_the_key_it_takes_is_no_service_of_the_servers(
    alice, acme, of_the_server
):
    of_the_server(base_url="https://gateway.example.org", provider="anthropic")
    of_alice(alice, "sk-own", "https://gateway.example.org", provider="anthropic")
    assert not pays(alice, acme, "anthropic")


def test_a_key_of_the_server_that_cannot_be_opened_stands_in_nobodys_way(
    alice, acme, staff, settings
):
    store(staff, "deployment")
    settings.AGENTSITE_VAULT_KEYS = [Fernet.generate_key().decode()]
    of_alice(alice, "sk-own", "https://api.example.org", provider="anthropic")
    assert not pays(alice, acme, "anthropic")


# --- services of the server under other names -------------------------------------------------------


class Names:
    """What the name service says of each name, and which it was asked."""

    def __init__(self) -> None:
        self.lead: dict[str, list[str]] = {}
        self.asked: list[str] = []

    def look_up(self, host, port, *_args, **_named):
        self.asked.append(host)
        if host not in self.lead:
            raise socket.gaierror("nobody knows")
        return [(0, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.lead[host]]


@pytest.fixture
def names(monkeypatch) -> Names:
    cache.clear()
    names = Names()
    names.lead = {
        "models.example.org": ["93.184.216.34", "2606:2800:220:1::1"],
        "other.example.org": ["8.8.8.8"],
    }
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names


def way(user, organisation, provider="openai_compatible"):
    key = resolve(user, organisation, provider)
    assert key is not None
    return way_of(key)


@pytest.mark.parametrize(
    "leads_to", ["93.184.216.34", "::ffff:93.184.216.34", "2606:2800:220:1:0:0:0:1"]
)
@pytest.mark.parametrize(
    ("given", "key"), [("", ""), ("", "sk-that-nobody-looks-at"), ("sk-ours", "")]
)
def test_another_name_of_a_service_that_asks_for_no_key_escapes_nothing(
    alice, acme, of_the_server, names, leads_to, given, key
):
    of_the_server(key=given, base_url="https://models.example.org/v1")
    names.lead["alias.example.net"] = ["8.8.4.4", leads_to]
    of_alice(alice, key, "http://alias.example.net/v1")
    assert way(alice, acme).server_pays


def test_its_address_escapes_nothing_either(alice, acme, of_the_server, names):
    of_the_server(base_url="https://models.example.org/v1")
    names.lead["93.184.216.34"] = ["93.184.216.34"]
    of_alice(alice, "sk-any", "http://93.184.216.34:443")
    assert way(alice, acme).server_pays


def test_at_an_address_of_her_own_a_person_pays_and_no_connection_leads_to_the_servers(
    alice, acme, of_the_server, names
):
    of_the_server(base_url="https://models.example.org/v1")
    of_alice(alice, "sk-own", "https://other.example.org")
    found = way(alice, acme)
    assert not found.server_pays
    judge = found.connections.judge
    judge("other.example.org", ip_address("8.8.8.8"), 443)
    judge("other.example.org", ip_address("93.184.216.34"), 8443)
    for address in ("93.184.216.34", "::ffff:93.184.216.34", "2606:2800:220:1::1"):
        for port in (80, 443):
            with pytest.raises(AddressRefused):
                judge("other.example.org", ip_address(address), port)
    with pytest.raises(AddressRefused):
        judge("other.example.org", ip_address("10.0.0.8"), 443)


def test_a_service_of_the_server_that_cannot_be_told_apart_counts_as_the_servers(
    alice, acme, of_the_server, names
):
    of_the_server(base_url="https://models.example.org/v1")
    of_alice(alice, "sk-own", "https://other.example.org")
    del names.lead["models.example.org"]
    assert way(alice, acme).server_pays


def test_a_name_of_hers_that_leads_nowhere_now_is_not_the_servers_and_never_becomes_it(
    alice, acme, of_the_server, names
):
    of_the_server(base_url="https://models.example.org/v1")
    of_alice(alice, "sk-own", "https://changing.example.net")
    found = way(alice, acme)
    assert not found.server_pays
    with pytest.raises(AddressRefused, match="service of this server"):
        found.connections.judge("changing.example.net", ip_address("93.184.216.34"), 443)


@pytest.mark.parametrize(
    ("given", "ours", "key", "named"),
    [
        ("sk-ours", "https://models.example.org", "sk-own", "https://other.example.org"),
        ("sk-ours", "", "", "https://other.example.org"),
        ("", OURS, "sk-own", "https://other.example.org"),
        ("", "https://models.example.org", "", OURS),
        ("", "https://models.example.org", "", "https://models.example.org"),
    ],
)
def test_where_spelling_tells_no_name_is_looked_up(
    alice, acme, of_the_server, names, given, ours, key, named
):
    of_the_server(key=given, base_url=ours)
    of_alice(alice, key, named)
    way(alice, acme)
    assert names.asked == []


def test_names_of_the_servers_services_are_not_looked_up_for_each_run(
    alice, acme, of_the_server, names
):
    of_the_server(base_url="https://models.example.org/v1")
    of_alice(alice, "sk-own", "https://other.example.org")
    assert not way(alice, acme).server_pays
    assert not way(alice, acme).server_pays
    assert names.asked.count("models.example.org") == 1
