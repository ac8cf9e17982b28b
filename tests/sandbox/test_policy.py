"""Policies are read strictly, narrowed only downwards, and missing guarantees are said in words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Invalid
from sandbox.choice import choose
from sandbox.contract import Capabilities, SandboxBackend, Unavailable
from sandbox.guarantees import MEANING, Guarantee
from sandbox.narrowing import _level, narrow
from sandbox.policy import Policy, parse_policy, read_policy
from sandbox.refusals import missing
from sandbox.unconfined import UnconfinedBackend

YAML = """
version: 1
require: [fs_write_confined, no_network]
filesystem_policy: {include_workdir: true, read_only: [/usr, /lib], read_write: []}
process: {env_allow: [LANG], new_privileges: false}
network_policies:
  packages:
    endpoints:
      - {host: "*.Example.org.", port: 443}
      - {host: files.example.com, ports: [443, 80], methods: [GET, HEAD]}
resources: {cpu_seconds: 10, memory_mb: 512}
"""


def test_a_policy_is_read_from_yaml_and_from_json_alike():
    policy = read_policy(YAML)
    assert policy == read_policy(json.dumps(policy.model_dump(mode="json")))
    assert [endpoint.host for endpoint in policy.endpoints] == [
        "*.example.org",
        "files.example.com",
    ]
    assert policy.endpoints[1].ports == (80, 443)
    assert policy.resources.cpu_seconds == 10
    assert read_policy("") == Policy()


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("filesystem_polisy: {}", "filesystem_polisy", "There is no such field here"),
        ("resources: {memory: 5}", "resources.memory", "There is no such field here"),
        ("resources: {memory_mb: 1}", "resources.memory_mb", "At least 64 is needed"),
        ("require: [safety]", "require[0]", "Choose from: fs_write"),
        ("version: 2", "version", "Send 1."),
        ("process: {new_privileges: true}", "process.new_privileges", "False"),
        ("process: {env_allow: [AWS_SECRET]}", "process.env_allow", "never handed to a command"),
        ("process: {env_allow: [GITHUB_TOKEN]}", "process.env_allow", "looks like a secret"),
        ("filesystem_policy: {read_only: [usr]}", "filesystem_policy.read_only[0]", "absolute"),
        ("filesystem_policy: {read_only: [/usr/../etc]}", "filesystem_policy.read_only[0]", "“..”"),
        ("filesystem_policy: {read_only: [/]}", "filesystem_policy.read_only[0]", "whole file system"),
        ("filesystem_policy: {read_write: [/proc/sys]}", "filesystem_policy.read_write[0]", "/proc"),
        ("filesystem_policy: {read_write: [/srv/a], read_only: [/srv/a/b]}", "filesystem_policy",
         "inside the writable"),
        ("network_policies: {a: {endpoints: []}}", "network_policies.a.endpoints", "at least 1"),
        ("network_policies: {a: {endpoints: [{host: '*.com'}]}}",
         "network_policies.a.endpoints[0].host", "top-level domain"),
        ("network_policies: {a: {endpoints: [{host: 'a b'}]}}",
         "network_policies.a.endpoints[0].host", "not a host name"),
        ("network_policies: {a: {endpoints: [{host: a.example, methods: [STEAL]}]}}",
         "network_policies.a.endpoints[0].methods", "STEAL"),
    ],
)  # fmt: skip
def test_what_breaks_the_schema_is_named_with_its_place(text: str, place: str, said: str):
    with pytest.raises(Invalid) as problem:
        read_policy(text)
    assert problem.value.field == place
    assert said in problem.value.message
    assert problem.value.hint


@pytest.mark.parametrize(
    "text",
    ["require: [a", "a: 1\na: 2", '{"version": 1, "version": 1}', "a: &x 1\nb: *x", "- 1", "x" * 300_000,
     "!!python/object/apply:os.system ['true']"],
)  # fmt: skip
def test_what_is_no_proper_file_is_refused(text: str):
    with pytest.raises(Invalid):
        read_policy(text)


def test_a_policy_that_opens_too_many_brackets_is_refused_before_it_is_read():
    for text in ("{" * 100_000, "a: " + "[" * 100_000):
        began = time.thread_time()
        with pytest.raises(Invalid, match="brackets"):
            read_policy(text)
        assert time.thread_time() - began < 1


def test_a_policy_of_many_keys_is_read_in_a_moment():
    with pytest.raises(Invalid, match="given twice"):
        read_policy("a: 1\nb: 2\na: 3")
    with pytest.raises(Invalid, match="too many to name"):
        read_policy("\n".join(f"k{number}: 1" for number in range(3_000)))


def test_listing_a_host_implies_the_guarantee_that_only_it_is_reached():
    policy = read_policy(YAML)
    assert Guarantee.EGRESS_ALLOW_LIST in policy.required
    assert Guarantee.NO_NETWORK not in policy.required
    assert Guarantee.NO_NETWORK in Policy().required


# --- narrowing ------------------------------------------------------------------------------------


def test_narrowing_takes_the_smaller_of_everything():
    operator = parse_policy(
        {
            "require": ["no_network"],
            "filesystem_policy": {"read_only": ["/usr", "/opt"], "read_write": ["/srv/data"]},
            "process": {"env_allow": ["LANG", "TZ"]},
            "resources": {"cpu_seconds": 60, "memory_mb": 512},
        }
    )
    agent = parse_policy(
        {
            "require": ["memory_total"],
            "filesystem_policy": {
                "include_workdir": False,
                "read_only": ["/usr/bin", "/srv/data", "/home"],
                "read_write": ["/opt/own", "/etc"],
            },
            "process": {"env_allow": ["TZ", "EDITOR"]},
            "resources": {"cpu_seconds": 600, "memory_mb": 256},
        }
    )
    for policy in (narrow(operator, agent), narrow(agent, operator)):
        assert set(policy.require) == {Guarantee.NO_NETWORK, Guarantee.MEMORY_TOTAL}
        assert set(policy.filesystem_policy.read_only) == {"/usr/bin", "/srv/data", "/opt/own"}
        assert policy.filesystem_policy.read_write == ()
        assert not policy.filesystem_policy.include_workdir
        assert policy.process.env_allow == ("TZ",)
        assert (policy.resources.cpu_seconds, policy.resources.memory_mb) == (60, 256)
    assert narrow(operator, None) == operator


def hosts(*endpoints: dict[str, Any]) -> Policy:
    return parse_policy({"network_policies": {"x": {"endpoints": list(endpoints)}}})


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        ({"host": "*.example.org"}, {"host": "a.example.org"}, "a.example.org"),
        ({"host": "*.example.org"}, {"host": "*.b.example.org"}, "*.b.example.org"),
        ({"host": "*.example.org"}, {"host": "example.org"}, None),
        ({"host": "a.example.org"}, {"host": "b.example.org"}, None),
        ({"host": "a.example", "port": 80}, {"host": "a.example", "port": 443}, None),
        (
            {"host": "a.example", "methods": ["GET"]},
            {"host": "a.example", "methods": ["PUT"]},
            None,
        ),
    ],
)
def test_of_hosts_only_what_both_list_is_left(
    one: dict[str, Any], two: dict[str, Any], both: str | None
):
    for policy in (narrow(hosts(one), hosts(two)), narrow(hosts(two), hosts(one))):
        assert [endpoint.host for endpoint in policy.endpoints] == ([both] if both else [])
        if both is None:
            assert Guarantee.NO_NETWORK in policy.required


def test_methods_and_private_networks_are_narrowed_as_well():
    one = hosts({"host": "a.example", "methods": ["GET", "POST"], "allowed_ips": ["10.0.0.0/8"]})
    two = hosts({"host": "a.example", "methods": ["GET"], "allowed_ips": ["10.1.0.0/16"]})
    (endpoint,) = narrow(one, two).endpoints
    assert endpoint.methods == ("GET",)
    assert endpoint.allowed_ips == ("10.1.0.0/16",)
    (free,) = narrow(one, hosts({"host": "a.example"})).endpoints
    assert free.methods == ("GET", "POST")
    assert free.allowed_ips == ()


PATHS = ["/usr", "/usr/lib", "/opt", "/opt/a", "/opt/a/b", "/srv"]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    read_write = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=2))
    read_write = [
        p for p in read_write if not any(p != o and p.startswith(o + "/") for o in read_write)
    ]
    read_only = [
        path
        for path in draw(st.lists(st.sampled_from(PATHS), unique=True))
        if not any(path.startswith(outer + "/") for outer in read_write)
    ]
    return parse_policy(
        {
            "require": draw(st.lists(st.sampled_from(list(Guarantee)), unique=True)),
            "filesystem_policy": {"read_only": read_only, "read_write": read_write},
        }
    )


@given(policies(), policies(), st.sampled_from([*PATHS, "/opt/a/b/c", "/usr/x", "/etc"]))
def test_a_narrowed_policy_never_allows_what_one_of_them_does_not(
    one: Policy, two: Policy, path: str
):
    both = narrow(one, two)
    files = both.filesystem_policy
    assert _level(files, path) <= min(
        _level(one.filesystem_policy, path), _level(two.filesystem_policy, path)
    )
    assert both.required >= set(one.require) | set(two.require)
    assert both == narrow(one, two)


# --- refusals and choice --------------------------------------------------------------------------


class Fixed:
    """A backend that only answers its probe."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.name = capabilities.backend
        self._capabilities = capabilities

    async def probe(self) -> Capabilities:
        return self._capabilities


def fixed(name: str, *guarantees: Guarantee, **details) -> SandboxBackend:
    capabilities = Capabilities(name, available=True, guarantees=frozenset(guarantees), **details)
    return Fixed(capabilities)  # type: ignore[return-value]


def absent(name: str) -> SandboxBackend:
    capabilities = Capabilities(
        name, available=False, problem="the program “bwrap” is not installed", remedy="install it"
    )
    return Fixed(capabilities)  # type: ignore[return-value]


async def test_the_first_backend_that_promises_enough_is_chosen():
    policy = parse_policy({"require": ["no_network"]})
    good = fixed("good", Guarantee.NO_NETWORK)
    weak = fixed("weak", Guarantee.FS_READ_CONFINED)
    assert await choose([absent("gone"), weak, good], policy) is good


async def test_a_refusal_names_rule_reason_of_each_backend_and_remedy():
    policy = hosts({"host": "a.example"})
    held = (Guarantee.FS_WRITE_CONFINED, Guarantee.FS_READ_CONFINED)
    process = fixed(
        "process",
        *held,
        reasons={Guarantee.EGRESS_ALLOW_LIST: "Landlock knows ports but no hosts"},
    )
    with pytest.raises(Unavailable) as refusal:
        await choose([absent("bubblewrap"), process], policy)
    assert refusal.value.message == (
        "The command was not run: no sandbox of this server can hold the policy "
        "(its network_policies lists hosts).\n"
        "- bubblewrap: the program “bwrap” is not installed.\n"
        "- process: it cannot promise “egress_allow_list” (only the listed hosts can be reached), "
        "because Landlock knows ports but no hosts."
    )
    assert refusal.value.hint == (
        "For the operator: install it; or use the bubblewrap backend, or remove every host from "
        "network_policies. Trying the command again will not help; go on without it or tell the "
        "person."
    )
    assert refusal.value.code == "sandbox_refused"


async def test_a_refusal_for_a_required_guarantee_names_it():
    policy = parse_policy({"require": ["memory_total"]})
    with pytest.raises(Unavailable, match=r"its require lists “memory_total”"):
        await choose([fixed("process")], policy)


async def test_without_any_backend_the_refusal_says_so():
    with pytest.raises(Unavailable, match="no sandbox is configured"):
        await choose([], Policy())


async def test_the_backend_none_needs_both_the_setting_and_a_policy_that_requires_nothing():
    with pytest.raises(ValueError, match="explicit setting"):
        UnconfinedBackend(allowed=False)
    none = UnconfinedBackend(allowed=True)
    with pytest.raises(Unavailable, match="it confines nothing"):
        await choose([absent("bubblewrap")], Policy(), unconfined=none)
    free = parse_policy({"require": []})
    assert await choose([absent("bubblewrap")], free, unconfined=none) is none
    good = fixed("good")
    assert await choose([good], free, unconfined=none) is good


@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_each_guarantee_has_words_and_a_refusal_that_reads_well(guarantee: Guarantee):
    policy = Policy(require=(guarantee,))
    refusal = missing(policy, Capabilities("weak", available=True))
    assert refusal is not None
    assert MEANING[guarantee] in refusal.sentence()
    assert refusal.remedy
    assert missing(policy, Capabilities("good", True, frozenset({guarantee}))) is None


@pytest.mark.parametrize("name", ["a\ud800", "\udfff"])
def test_a_policy_can_be_kept_whatever_signs_are_in_it(name):
    endpoints = [{"host": "a.example", "ports": [443]}]
    text = json.dumps({"network_policies": {name: {"endpoints": endpoints}}})
    policy = read_policy(text)
    assert policy.digest
    assert all("\ufffd" in each for each in policy.network_policies)


@pytest.mark.parametrize(
    "text",
    [
        'version: !!int ""',
        "version: !!bool neither",
        f"version: 0x{'f' * 9_000}",
        f'{{"version": {"1" * 5_000}}}',
        "- " * 9_000,
    ],
)
def test_whatever_the_text_is_it_is_read_or_refused(text):
    with pytest.raises(Invalid):
        read_policy(text)
