"""How policies of operator, organisation and agent come to one: what all of them allow.

Whoever stands below can only take away. The order therefore does not matter.
"""

from __future__ import annotations

from functools import reduce
from ipaddress import ip_network
from pathlib import PurePosixPath

from .guarantees import Guarantee
from .policy import (
    EVERY_HOST,
    Endpoint,
    FilesystemPolicy,
    NetworkPolicy,
    Policy,
    ProcessPolicy,
    Resources,
)

_NONE, _READ, _WRITE = range(3)


def narrow(operator: Policy, *others: Policy | None) -> Policy:
    """The policy that allows only what `operator` and every one of `others` allow."""
    return reduce(_meet, (policy for policy in others if policy is not None), operator)


def narrow_where_said(operator: Policy, *others: Policy | None) -> Policy:
    """`narrow` for policies that name only what they want stricter: what one of them does not
    mention stays as the operator has it."""
    return narrow(operator, *(_completed(policy, operator) for policy in others if policy))


def _completed(policy: Policy, operator: Policy) -> Policy:
    given: dict[str, object] = {} if "require" in policy.model_fields_set else {"require": ()}
    for name in ("filesystem_policy", "process", "resources"):
        part, basis = getattr(policy, name), getattr(operator, name)
        said = {field: getattr(part, field) for field in part.model_fields_set}
        # Read and write lists are one statement: whoever gives one of them means both.
        if name == "filesystem_policy" and said.keys() & {"read_only", "read_write"}:
            said = {"read_only": part.read_only, "read_write": part.read_write, **said}
        given[name] = basis.model_copy(update=said)
    if "network_policies" not in policy.model_fields_set:
        given["network_policies"] = operator.network_policies
    return policy.model_copy(update=given)


def _meet(one: Policy, two: Policy) -> Policy:
    required = set(one.require) | set(two.require)
    network = _network(one, two)
    if (one.endpoints or two.endpoints) and not network:
        # Nothing is left that both would reach, so there is no network.
        required.add(Guarantee.NO_NETWORK)
    return Policy(
        require=tuple(guarantee for guarantee in Guarantee if guarantee in required),
        filesystem_policy=_files(one.filesystem_policy, two.filesystem_policy),
        process=ProcessPolicy(
            env_allow=tuple(n for n in one.process.env_allow if n in two.process.env_allow)
        ),
        network_policies=network,
        resources=Resources(
            **{
                name: min(getattr(one.resources, name), getattr(two.resources, name))
                for name in Resources.model_fields
            }
        ),
    )


def _level(policy: FilesystemPolicy, path: str) -> int:
    """What `policy` allows at `path`: the rule of the nearest folder above decides."""
    best, level = -1, _NONE
    for allowed, paths in ((_READ, policy.read_only), (_WRITE, policy.read_write)):
        for rule in paths:
            depth = len(PurePosixPath(rule).parts)
            # Of two rules for the same folder the stricter holds.
            if depth > best and PurePosixPath(path).is_relative_to(rule):
                best, level = depth, allowed
    return level


def _files(one: FilesystemPolicy, two: FilesystemPolicy) -> FilesystemPolicy:
    named = dict.fromkeys((*one.read_only, *one.read_write, *two.read_only, *two.read_write))
    levels = {path: min(_level(one, path), _level(two, path)) for path in named}
    return FilesystemPolicy(
        include_workdir=one.include_workdir and two.include_workdir,
        read_only=tuple(path for path, level in levels.items() if level == _READ),
        read_write=tuple(path for path, level in levels.items() if level == _WRITE),
    )


def _network(one: Policy, two: Policy) -> dict[str, NetworkPolicy]:
    met: dict[str, NetworkPolicy] = {}
    for name, left in one.network_policies.items():
        for other, right in two.network_policies.items():
            endpoints = tuple(
                endpoint
                for a in left.endpoints
                for b in right.endpoints
                if (endpoint := _endpoint(a, b)) is not None
            )
            if endpoints:
                key = name if name == other else f"{name}+{other}"
                met[key] = NetworkPolicy(name=left.name or right.name, endpoints=endpoints)
    return met


def _endpoint(one: Endpoint, two: Endpoint) -> Endpoint | None:
    host = _host(one, two)
    ports = tuple(port for port in one.ports if port in two.ports)
    if host is None or not ports:
        return None
    if one.methods and two.methods:
        methods = tuple(method for method in one.methods if method in two.methods)
        if not methods:
            return None
    else:
        methods = one.methods or two.methods
    networks = [
        network
        for network in (*one.allowed_ips, *two.allowed_ips)
        if _within(network, one.allowed_ips) and _within(network, two.allowed_ips)
    ]
    return Endpoint(
        host=host, ports=ports, methods=methods, allowed_ips=tuple(dict.fromkeys(networks))
    )


def _host(one: Endpoint, two: Endpoint) -> str | None:
    """The narrower of two hosts of which one lies in the other."""
    if _narrower(one, two):
        return one.host
    return two.host if _narrower(two, one) else None


def _narrower(one: Endpoint, two: Endpoint) -> bool:
    """Does everything that `one` means lie in what `two` means?"""
    if two.host in {one.host, EVERY_HOST}:
        return True
    if one.host.startswith("*."):
        return two.host.startswith("*.") and one.host[1:].endswith(two.host[1:])
    return two.covers(one.host)


def _within(network: str, others: tuple[str, ...]) -> bool:
    inner = ip_network(network)
    return any(
        inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]
        for outer in map(ip_network, others)
    )
