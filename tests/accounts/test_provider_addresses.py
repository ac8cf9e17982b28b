"""Which hosts a base URL may name, however the address is spelt."""

from __future__ import annotations

import pytest

from accounts.actions.provider_keys import store_provider_key
from accounts.models import ProviderKey, Scope
from accounts.provider_addresses import why_refused
from harness.errors import Invalid

CREDENTIALS = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.169.254.",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:169.254.169.254]",
    "[::169.254.169.254]",
    "[64:ff9b::169.254.169.254]",
    "[2002:a9fe:a9fe::1]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fd00:ec2::254]",
    "[fd00:ec2::254%251]",
    "100.100.100.200",
    "168.63.129.16",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "metadata",
]
INSIDE = [
    "10.0.0.8",
    "192.168.1",
    "172.16.0.1",
    "100.64.0.1",
    "127.0.0.2",
    "0177.0.0.2",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[::ffff:10.0.0.8]",
    "[64:ff9b::10.0.0.8]",
    "redis",
    "database.internal",
    "printer.local",
    "app.localhost",
]
NOBODYS = ["0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]", "224.0.0.1", "[ff02::1]"]
OUTSIDE = ["models.example.org", "8.8.8.8", "[2606:4700::1111]", "[::ffff:8.8.8.8]", "dead.beef.fa"]
LOOPBACK = ["localhost", "LocalHost.", "127.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"]


def store(actor, host, scope="user", organisation=None):
    return store_provider_key(
        actor=actor,
        organisation=organisation,
        scope=scope,
        provider="anthropic",
        key="",
        base_url=f"http://{host}:8000/v1",
    )


def refusal_of(*arguments):
    with pytest.raises(Invalid) as refusal:
        store(*arguments)
    assert refusal.value.field == "base_url"
    assert refusal.value.hint
    assert not ProviderKey.objects.exists()
    return refusal.value.message


@pytest.mark.parametrize("host", CREDENTIALS)
def test_where_clouds_keep_credentials_no_request_goes(alice, acme, staff, settings, host):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [host]

    for arguments in [(alice, host), (alice, host, "organisation", acme)]:
        assert "not allowed" in refusal_of(*arguments)
    assert "not allowed" in refusal_of(staff, host, "deployment")


@pytest.mark.parametrize("host", INSIDE)
def test_a_host_inside_the_network_is_named_only_if_the_operator_lists_it(
    alice, acme, staff, settings, host
):
    assert "own network" in refusal_of(alice, host)
    assert "own network" in refusal_of(alice, host, "organisation", acme)
    assert "own network" in refusal_of(staff, host)
    assert store(staff, host, "deployment").scope is Scope.DEPLOYMENT

    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = ["other.internal", host]
    assert store(alice, host).base_url == f"http://{host}:8000/v1"
    assert store(alice, host, "organisation", acme).scope is Scope.ORGANISATION


@pytest.mark.parametrize("host", NOBODYS)
def test_an_address_of_no_single_server_is_refused(alice, settings, host):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [host]

    assert "no single server" in refusal_of(alice, host)


@pytest.mark.parametrize("host", [*OUTSIDE, *LOOPBACK])
def test_public_hosts_and_by_default_loopback_are_taken_however_written(alice, host):
    assert store(alice, host).base_url == f"http://{host}:8000/v1"


@pytest.mark.parametrize("host", LOOPBACK)
def test_an_operator_may_take_loopback_off_the_list(alice, settings, host):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = []

    assert "own network" in refusal_of(alice, host)


@pytest.mark.parametrize(
    "host", ["１６９.254.169.254", "169%2e254.169.254", "example.org\\@x", "a..b"]
)
def test_a_host_that_clients_may_read_differently_is_refused(staff, host):
    refusal_of(staff, host, "deployment")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("api.example.com", "10.0.0.8"),
        ("api.example.com", "127.0.0.1"),
        ("api.example.com", "169.254.169.254"),
        ("api.example.com", "::ffff:192.168.0.1"),
        ("api.example.com", "fe80::1%eth0"),
        ("ollama.internal", "169.254.169.254"),
        ("ollama.internal", "fd00:ec2::254"),
        ("localhost", "10.0.0.8.example"),
    ],
)
def test_a_name_that_leads_inside_is_refused_when_it_does(settings, host: str, address: str):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = ["ollama.internal", "localhost"]
    assert why_refused(host, address)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("api.example.com", "93.184.216.34"),
        ("api.example.com", "2606:2800:220:1:248:1893:25c8:1946"),
        ("ollama.internal", "10.0.0.8"),
        ("models.example.com", "10.0.0.9"),
        ("localhost", "127.0.0.1"),
    ],
)
def test_a_name_that_leads_outside_or_where_the_operator_lets_it_is_not(
    settings, host: str, address: str
):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = ["ollama.internal", "10.0.0.9", "localhost"]
    assert not why_refused(host, address)
