"""Which hosts a base URL may name, however the address is spelt."""

from __future__ import annotations

import os
import subprocess
import sys
from ipaddress import ip_address
from typing import Any

import pytest

from accounts.actions.provider_keys import store_provider_key
from accounts.models import ProviderKey, Scope
from accounts.provider_addresses import judge_connection
from agentsite.checks import check_installation
from agentsite.environment import BASE_DIR
from harness.errors import AddressRefused, Invalid

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
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [f"{host}:8000"]

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
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = ["other.internal:8000", f"{host}:8001"]
    assert "own network" in refusal_of(alice, host)

    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = ["other.internal:8000", f"{host}:8000"]
    assert store(alice, host).base_url == f"http://{host}:8000/v1"
    assert store(alice, host, "organisation", acme).scope is Scope.ORGANISATION
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = []
    assert store(staff, host, "deployment").scope is Scope.DEPLOYMENT


@pytest.mark.parametrize(
    ("listed", "host"),
    [("10.0.0.0/24", "10.0.0.8"), ("10.0.0.8/31", "10.0.0.8"), ("[fd12::/64]", "[fd12::1]")],
)
def test_a_network_in_the_list_opens_no_host_to_people(alice, acme, settings, listed, host):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [f"{listed}:8000"]
    assert "own network" in refusal_of(alice, host)
    assert "own network" in refusal_of(alice, host, "organisation", acme)


@pytest.mark.parametrize("host", NOBODYS)
def test_an_address_of_no_single_server_is_refused(alice, settings, host):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = [f"{host}:8000"]

    assert "no single server" in refusal_of(alice, host)


@pytest.mark.parametrize("host", OUTSIDE)
def test_public_hosts_are_taken_however_written(alice, host):
    assert store(alice, host).base_url == f"http://{host}:8000/v1"


@pytest.mark.parametrize("host", LOOPBACK)
def test_of_this_machine_only_the_ports_of_local_model_servers_are_open_by_default(alice, host):
    assert "own network" in refusal_of(alice, host)
    given: dict[str, Any] = {"scope": "user", "provider": "openai_compatible", "key": ""}
    for port in (11434, 1234):
        base_url = f"http://{host}:{port}/v1"
        assert store_provider_key(actor=alice, base_url=base_url, **given).base_url == base_url
    for port in (6379, 5432, 80):
        with pytest.raises(Invalid):
            store_provider_key(actor=alice, base_url=f"http://{host}:{port}/v1", **given)


def test_in_production_nothing_inside_is_open_by_default():
    program = (
        "import agentsite.settings as settings; print(settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=BASE_DIR,
        env={**os.environ, "AGENTSITE_ENV": "production", "AGENTSITE_ENV_FILE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("entry", ["localhost", "10.0.0.0/8", "::1", "a b:80", "localhost:99999"])
@pytest.mark.parametrize(
    ("setting", "number"),
    [("AGENTSITE_PRIVATE_PROVIDER_HOSTS", "E020"), ("AGENTSITE_WEBHOOK_PRIVATE_HOSTS", "E026")],
)
def test_an_entry_without_a_port_or_that_is_none_refuses_the_start(
    settings, setting, number, entry
):
    setattr(settings, setting, ["ollama.internal:11434", entry])
    problems = [one for one in check_installation() if one.id == f"agentsite.{number}"]
    assert len(problems) == 1
    assert entry in problems[0].msg


def test_a_network_refuses_the_start_where_each_host_is_to_be_spelt(settings):
    networks = ["10.1.0.0/16:443", "[fd12::]:443", "10.0.0.9/32:443"]
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = networks
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = networks
    (problem,) = (
        one for one in check_installation() if one.id in ("agentsite.E020", "agentsite.E026")
    )
    assert problem.id == "agentsite.E020"
    assert "10.1.0.0/16:443" in problem.msg


@pytest.mark.parametrize(
    "host", ["１６９.254.169.254", "169%2e254.169.254", "example.org\\@x", "a..b"]
)
def test_a_host_that_clients_may_read_differently_is_refused(staff, host):
    refusal_of(staff, host, "deployment")


LISTED = ["ollama.internal:11434", "10.0.0.9:11434", "10.1.0.0/16:11434", "localhost:11434"]


@pytest.mark.parametrize(
    ("host", "address", "port"),
    [
        ("api.example.com", "10.0.0.8", 443),
        ("api.example.com", "127.0.0.1", 443),
        ("api.example.com", "169.254.169.254", 443),
        ("api.example.com", "::ffff:192.168.0.1", 443),
        ("api.example.com", "fe80::1", 443),
        ("api.example.com", "0.0.0.0", 443),
        ("ollama.internal", "169.254.169.254", 11434),
        ("ollama.internal", "fd00:ec2::254", 11434),
        ("ollama.internal", "10.0.0.8", 6379),
        ("localhost", "127.0.0.1", 5432),
        ("models.example.com", "10.0.0.9", 443),
        ("models.example.com", "10.0.0.9", 11434),
        ("models.example.com", "10.1.0.9", 11434),
        ("10.1.0.9", "10.1.0.9", 11434),
        ("127.0.0.1", "127.0.0.1", 11434),
    ],
)
def test_a_name_that_leads_inside_is_refused_when_it_does(settings, host, address, port):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = LISTED
    with pytest.raises(AddressRefused) as refusal:
        judge_connection(host, ip_address(address), port)
    assert address not in refusal.value.words
    assert "private or local address, which is refused" in refusal.value.words
    assert "AGENTSITE_PRIVATE_PROVIDER_HOSTS" in refusal.value.words


@pytest.mark.parametrize(
    ("host", "address", "port"),
    [
        ("api.example.com", "93.184.216.34", 443),
        ("api.example.com", "2606:2800:220:1:248:1893:25c8:1946", 443),
        ("ollama.internal", "10.0.0.8", 11434),
        ("10.0.0.9", "10.0.0.9", 11434),
        ("10.9", "10.0.0.9", 11434),
        ("localhost", "127.0.0.1", 11434),
    ],
)
def test_a_name_that_leads_outside_or_where_the_operator_lets_it_is_not(
    settings, host, address, port
):
    settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS = LISTED
    judge_connection(host, ip_address(address), port)
