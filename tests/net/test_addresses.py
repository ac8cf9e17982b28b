"""One judge says what an address is, and everything that connects on somebody's word asks it."""

from __future__ import annotations

import ast
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsite.environment import BASE_DIR
from conversations.judging import judging_kit
from harness.agentconfig import AgentConfig
from harness.errors import AddressRefused
from harness.history import History
from harness.policy import Verdict
from net.addresses import METADATA, Sort, is_held, meanings, parse_address, reached, sort_of
from net.hostlists import Entry, parse_entries, why_refused
from net.lookups import UnknownHost, judged
from sandbox.egress import why_unreachable
from sandbox.policy import Endpoint
from tests.architecture.sources import mentions, parsed
from webhooks.addresses import AddressRefused as WebhookRefused
from webhooks.addresses import judged_addresses

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
SORTS = [
    (Sort.METADATA, ["169.254.169.254", "192.0.0.192", "168.63.129.16", "100.100.100.200"]),
    (Sort.METADATA, ["fd00:ec2::254", "fd20:ce::254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe"]),
    (Sort.METADATA, ["2002:a9fe:a9fe::1", "64:ff9b:1::a9fe:a9fe", "::169.254.169.254"]),
    (Sort.MACHINE, ["127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"]),
    (Sort.MACHINE, ["64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0.0.0.0"]),
    (Sort.LINK_LOCAL, ["169.254.1.1", "fe80::1", "febf::1", "::ffff:169.254.1.1"]),
    (Sort.MULTICAST, ["224.0.0.1", "239.1.1.1", "ff02::1", "ff0e::1", "::ffff:224.0.0.1"]),
    (Sort.PRIVATE, ["10.0.0.1", "172.31.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1"]),
    (Sort.PRIVATE, ["fd12::1", "fc00::1", "fec0::1", "feff::1", "240.0.0.1", "255.255.255.255"]),
    (Sort.PRIVATE, ["192.0.0.8", "192.0.2.1", "192.88.99.1", "2001:db8::1", "3fff::1", "5f00::1"]),
    (Sort.PRIVATE, ["64:ff9b:1::808:808", "64:ff9b:1:808:8:800::", "64:ff9b:1:a00:0:100:808:808"]),
    (Sort.MACHINE, ["64:ff9b:1:7f00:0:100:808:808", "64:ff9b:1:7f:0:1:808:808"]),
    (Sort.MACHINE, ["64:ff9b:1:0:7f:0:108:808", "64:ff9b:1::7f00:1"]),
    (Sort.PRIVATE, ["::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "100::1", "4000::1"]),
    (Sort.PRIVATE, ["2001:0:4136:e378:8000:63bf:f5ff:fffe", "2606:4700::5efe:10.0.0.1"]),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_told_as_such(address: str):
    assert sort_of(ip_address(address)) is Sort.PUBLIC


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_that_this_machine_holds_is_none(address: str):
    inside = reached(ip_address(address))
    assert sort_of(ip_address(address), held=lambda one: one == inside) is Sort.MACHINE


def test_an_address_is_this_machines_where_it_can_listen_there():
    assert is_held(ip_address("127.0.0.1"))
    for address in ("8.8.8.8", "2606:4700::1111", "198.51.100.7"):
        assert not is_held(ip_address(address))


@pytest.mark.parametrize(
    ("sort", "address"), [(sort, address) for sort, group in SORTS for address in group]
)
def test_every_other_address_is_told_by_the_worst_that_it_means(sort: Sort, address: str):
    assert sort_of(ip_address(address)) is sort


@pytest.mark.parametrize(
    "address",
    sorted({str(one) for one in METADATA} | {one for _sort, group in SORTS for one in group}),
)
async def test_whoever_connects_on_somebodys_word_refuses_what_the_judge_does(
    settings, address: str
):
    settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS = []
    assert why_refused("a.example", ip_address(address), 443, ())
    assert why_unreachable(ip_address(address), Endpoint(host="a.example"))
    with pytest.raises(WebhookRefused):
        await judged_addresses(address, 443)


@pytest.mark.parametrize(
    "spelling", ["127.1", "0x7f.1", "0177.0.0.1", "2130706433", "[::1]", "::1%lo", "127.0.0.1."]
)
def test_an_address_is_known_in_every_spelling_that_resolvers_take(spelling: str):
    found = parse_address(spelling)
    assert found is not None
    assert sort_of(found) is Sort.MACHINE


@pytest.mark.parametrize("name", ["localhost", "a.example", "dead.beef", "1.2.3.4.5", "0x", ""])
def test_a_name_is_no_address(name: str):
    assert parse_address(name) is None


@given(st.ip_addresses(v=6))
def test_what_an_ipv6_address_carries_never_makes_it_more_public(address):
    inner = [sort_of(one) for one in meanings(address) if one != address]
    if Sort.METADATA in inner or Sort.MACHINE in inner:
        assert sort_of(address) is not Sort.PUBLIC


DENIED = "93.184.216.34"


@pytest.mark.parametrize(
    ("denied", "url"),
    [
        (DENIED, "http://[::ffff:5db8:d822]/"),
        (DENIED, "http://[64:ff9b::5db8:d822]/"),
        (DENIED, "http://[64:ff9b:1:5db8:d8:2200::]/"),
        (DENIED, "http://[2002:5db8:d822::1]/"),
        (DENIED, "http://[2001:0:1:2:3:4:a247:27dd]/"),
        (DENIED, "http://[::5db8:d822]/"),
        (DENIED, "http://[2a00::5efe:5db8:d822]/"),
        ("64:ff9b::5db8:d822", f"http://{DENIED}/"),
        ("2002:5db8:d822::1", "http://[64:ff9b::5db8:d822]/"),
        ("fd12::1", "http://[fd12::1%25eth0]/"),
    ],
)
def test_a_denied_host_is_denied_under_every_address_that_leads_to_it(denied: str, url: str):
    when = {"argument": "url", "host": denied}
    rules = [{"tool": "*"}, {"tool": "web_fetch", "permission": "always_deny", "when": when}]
    kit = judging_kit(AgentConfig.model_validate({"tools": rules}), ())
    assert kit.judge("web_fetch", History(), arguments={"url": url}).verdict is Verdict.DENY
    for other in ("http://[64:ff9b::808:808]/", "http://8.8.8.8/", "http://a.example/"):
        judged_other = kit.judge("web_fetch", History(), arguments={"url": other})
        assert judged_other.verdict is Verdict.ALLOW, other


def test_a_list_opens_what_it_names_with_its_port_and_no_more():
    entries = parse_entries(["ollama.internal:11434", "10.1.0.0/16", "[fd12::1]:80", " "])
    allowed = [
        ("ollama.internal", "192.168.0.4", 11434),
        ("x.example", "10.1.2.3", 5),
        ("x.example", "::ffff:10.1.2.3", 5),
        ("x.example", "fd12::1", 80),
        ("Ollama.Internal.", "192.168.0.4", 11434),
        ("[fd12::1]", "fd12::1", 80),
    ]
    refused = [
        ("ollama.internal", "192.168.0.4", 80),
        ("ollama.internal", "169.254.169.254", 11434),
        ("ollama.internal", "0.0.0.0", 11434),
        ("x.example", "10.2.0.1", 5),
        ("x.example", "fd12::1", 81),
        ("xollama.internal", "10.9.9.9", 11434),
    ]
    for host, address, port in allowed:
        assert why_refused(host, ip_address(address), port, entries) is None, host
    for host, address, port in refused:
        assert why_refused(host, ip_address(address), port, entries), (host, address, port)


@pytest.mark.parametrize("entry", ["a b", "localhost:0", "localhost:70000", "http://a", "*"])
def test_an_entry_that_is_none_is_refused_in_words(entry: str):
    with pytest.raises(ValueError, match="no "):
        Entry.parse(entry)


def test_one_bad_address_among_good_ones_refuses_them_all():
    def judge(_host, address, _port):
        if why_refused("a.example", address, 443, ()):
            raise AddressRefused("No.")

    assert judged("a.example", 443, judge, ["8.8.8.8", "8.8.8.8"]) == ["8.8.8.8"]
    with pytest.raises(AddressRefused):
        judged("a.example", 443, judge, ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(UnknownHost):
        judged("a.example", 443, judge, [])


TELLS = frozenset(
    f"is_{word}" for word in ("private", "global", "loopback", "link_local", "multicast")
) | {"is_reserved", "is_site_local", "ipv4_mapped", "sixtofour", "teredo"}
MAY_ASK = {
    "agentsite/server.py": "whether the site itself is served to this machine alone",
    "agentsite/management/commands/up.py": "the same",
}
"""Nothing is connected to on their word."""


def test_no_other_module_judges_addresses():
    """Three lists that disagreed is how one of them let a metadata service through."""
    for path in sorted(BASE_DIR.glob("[!.]*/**/*.py")):
        place = path.relative_to(BASE_DIR)
        if place.parts[0] in {"tests", "net", "bench"} or str(place) in MAY_ASK:
            continue
        if not mentions(place, TELLS):
            continue
        asked = TELLS & {
            node.attr for node in ast.walk(parsed(place)) if isinstance(node, ast.Attribute)
        }
        assert not asked, f"{place} asks {asked}; net.addresses knows"
