"""What may be done inside a sandbox, as data: files, processes, network, resources, guarantees.

The schema stays close to OpenShell's (`version`, `filesystem_policy`, `process`, `network_policies`),
so that one file maps across. Whether a backend can hold a policy is decided in
`sandbox.refusals`; how several policies narrow each other in `sandbox.narrowing`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from harness.errors import Invalid
from harness.faults import MOST_FAULTS
from harness.modelfaults import faults_of
from reading.foreignjson import GivenTwice, Unreadable, read_json
from reading.foreignyaml import Loader, read_yaml
from reading.hostnames import ascii_name

from .guarantees import Guarantee

FILE_LIMIT = 256 * 1024
"""Bytes of a policy file."""
MOST_BRACKETS = 5_000
"""That open in one policy: for each one inside others the reader looks at all of those again."""
KEPT = 200
"""Policies that stay read: reading YAML costs milliseconds."""
SYSTEM_FOLDERS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"),
    *(
        "/etc/ca-certificates",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/etc/mime.types",
        "/etc/gitconfig",
    ),
    *("/etc/host.conf", "/etc/protocols", "/etc/services"),
)
"""What programs need to run, and nothing that holds a secret. Missing ones are passed over."""
ENVIRONMENT = ("LANG", "LC_ALL", "TERM", "TZ")
"""Variables taken over from the server unless the policy says otherwise. PATH, HOME, TMPDIR and
USER are set to the sandbox's own values."""
METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
FORBIDDEN_ROOTS = ("/proc", "/sys", "/dev", "/run", "/var/run")
"""Folders of the running system; no policy opens them."""

EVERY_HOST = "*"
"""The host of an entry that opens whatever is public, by name or address."""

_HOST = re.compile(
    r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SECRET = re.compile(r"(?i)(secret|token|passw|credential|api_?key|private_?key|database_url|dsn$)")


def _absolute(path: str) -> str:
    parsed = PurePosixPath(path)
    if not parsed.is_absolute() or ".." in parsed.parts or "\0" in path:
        raise ValueError("a path is absolute and has no “..”")
    clean = "/" + "/".join(parsed.parts[1:])
    if clean == "/":
        raise ValueError("the whole file system cannot be opened; name the folders that are needed")
    for root in FORBIDDEN_ROOTS:
        if clean == root or clean.startswith(f"{root}/"):
            raise ValueError(f"“{root}” belongs to the running system and cannot be opened")
    return clean


AbsolutePath = Annotated[str, Field(max_length=1_024), AfterValidator(_absolute)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FilesystemPolicy(Part):
    include_workdir: bool = True
    """The workspace may be written; otherwise it is read-only."""
    read_only: tuple[AbsolutePath, ...] = SYSTEM_FOLDERS
    read_write: tuple[AbsolutePath, ...] = ()

    @model_validator(mode="after")
    def _side_by_side(self) -> FilesystemPolicy:
        for outer in self.read_write:
            for inner in (*self.read_only, *self.read_write):
                if inner.startswith(f"{outer}/"):
                    raise ValueError(
                        f"“{inner}” lies inside the writable “{outer}”, where a command could put "
                        "something else in its place"
                    )
        return self


class ProcessPolicy(Part):
    env_allow: tuple[str, ...] = ENVIRONMENT
    """Names of the server's variables that are taken over, as far as the operator lists them
    (`tools_app.reach`). Nothing else of its environment is."""
    new_privileges: Literal[False] = False
    """No program gains rights; there is no other choice."""

    @field_validator("env_allow")
    @classmethod
    def _variables(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"“{name[:64]}” is not the name of an environment variable")
            if name.startswith(("ANTHROPIC_", "OPENAI_", "AGENTSITE_", "DJANGO_", "LD_", "AWS_")):
                raise ValueError(f"“{name}” is the server's own and is never handed to a command")
            if _SECRET.search(name):
                raise ValueError(f"“{name}” looks like a secret; a command never sees one")
        return names


class Endpoint(Part):
    host: str = Field(max_length=253)
    """A name, `*.` before a name for everything below it, an address, or `*`: every public host."""
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = (443,)
    methods: tuple[str, ...] = ()
    """Empty: every method. What travels through an encrypted tunnel cannot be looked into, so
    tunnels need CONNECT in the list, and then every method works inside them."""
    allowed_ips: tuple[str, ...] = ()
    """Private networks in which the host may lie. Loopback, link-local and metadata addresses are
    never reached."""

    @model_validator(mode="before")
    @classmethod
    def _one_port(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "port" in data:
            if "ports" in data:
                raise ValueError("say either port or ports")
            data = {**data, "ports": [data["port"]]}
            del data["port"]
        return data

    @field_validator("host")
    @classmethod
    def _host(cls, host: str) -> str:
        if host == EVERY_HOST:
            return host
        name = host.rstrip(".").lower()
        try:
            name = ascii_name(name)
        except ValueError as problem:
            raise ValueError(f"“{host[:100]}” is not a host name") from problem
        if is_address(name.strip("[]")):
            return name.strip("[]")
        if not _HOST.fullmatch(name):
            raise ValueError(f"“{host[:100]}” is not a host name, “*.” before one, or an address")
        if name.startswith("*.") and name.count(".") < 2:
            raise ValueError(f"“{host[:100]}” would open a whole top-level domain")
        return name

    @field_validator("methods")
    @classmethod
    def _methods(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for method in methods:
            if method not in METHODS:
                raise ValueError(f"“{method[:30]}” is none of {', '.join(sorted(METHODS))}")
        return tuple(sorted(set(methods)))

    @field_validator("ports")
    @classmethod
    def _some_port(cls, ports: tuple[int, ...]) -> tuple[int, ...]:
        if not ports:
            raise ValueError("at least one port is needed")
        return tuple(sorted(set(ports)))

    @field_validator("allowed_ips")
    @classmethod
    def _networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ip_network(network)) for network in networks)

    @model_validator(mode="after")
    def _public_alone(self) -> Endpoint:
        if self.host == EVERY_HOST and self.allowed_ips:
            raise ValueError("“*” opens public hosts alone; list a private one by its own name")
        return self

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(network) for network in self.allowed_ips)

    def covers(self, host: str) -> bool:
        """Is `host`, in lower case and without a closing dot, meant by this entry?"""
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return self.host in {host, EVERY_HOST}


def is_address(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return "/" not in text


class NetworkPolicy(Part):
    name: str = ""
    endpoints: tuple[Endpoint, ...] = Field(min_length=1)


class Resources(Part):
    cpu_seconds: int = Field(60, ge=1, le=86_400)
    """Of each process."""
    wall_seconds: int = Field(600, ge=1, le=86_400)
    memory_mb: int = Field(1_024, ge=64, le=1_048_576)
    """Of all processes together, where a control group can be used; of each otherwise."""
    pids: int = Field(128, ge=8, le=32_768)
    file_mb: int = Field(100, ge=1, le=1_048_576)
    open_files: int = Field(256, ge=32, le=65_536)
    output_kb: int = Field(256, ge=1, le=65_536)
    """Of each stream."""
    scratch_mb: int = Field(256, ge=1, le=65_536)
    """Of each temporary folder."""
    workspace_mb: int = Field(2_048, ge=1, le=1_048_576)
    workspace_files: int = Field(100_000, ge=100, le=10_000_000)


class Policy(Part):
    version: Literal[1] = 1
    require: tuple[Guarantee, ...] = (
        Guarantee.FS_WRITE_CONFINED,
        Guarantee.FS_READ_CONFINED,
        Guarantee.NO_NETWORK,
    )
    """Without these nothing runs. `no_network` gives way to `egress_allow_list` as soon as a host is
    listed."""
    filesystem_policy: FilesystemPolicy = FilesystemPolicy()
    process: ProcessPolicy = ProcessPolicy()
    network_policies: Mapping[str, NetworkPolicy] = Field(default_factory=dict)
    resources: Resources = Resources()

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(
            endpoint for rule in self.network_policies.values() for endpoint in rule.endpoints
        )

    @property
    def unrestricted(self) -> bool:
        """Whether some entry opens every public host."""
        return any(endpoint.host == EVERY_HOST for endpoint in self.endpoints)

    @property
    def required(self) -> frozenset[Guarantee]:
        """What a backend must promise: what is required, and what the rules themselves imply."""
        needed = set(self.require)
        if self.endpoints:
            needed.discard(Guarantee.NO_NETWORK)
            needed.add(Guarantee.EGRESS_ALLOW_LIST)
        if self.unrestricted:
            needed.add(Guarantee.EGRESS_PUBLIC_ONLY)
        return frozenset(needed)

    @property
    def digest(self) -> str:
        """The same for two texts that say the same: SHA-256 of what is allowed, in hexadecimal."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def parse_policy(data: Any) -> Policy:
    """A policy from plain data. Raises `Invalid` naming each place that breaks the schema."""
    try:
        return Policy.model_validate(data)
    except ValidationError as problem:
        found = faults_of(problem, Policy, data)[:MOST_FAULTS]
        places = " ".join(f"{each.field or 'policy'}: {each.rule} {each.remedy}" for each in found)
        raise Invalid(
            f"The sandbox policy is not valid: {places}",
            field=found[0].field or "policy",
            hint="Correct these places. Unknown keys are refused, so that no rule is overlooked.",
        ) from problem


@lru_cache(maxsize=KEPT)
def read_policy(text: str) -> Policy:
    """A policy from YAML, of which JSON is a part; of the same text the same object. Raises `Invalid`, also
    for a key given twice."""
    if len(text.encode()) > FILE_LIMIT:
        raise Invalid(
            f"The sandbox policy is larger than {FILE_LIMIT:,} bytes.", hint="Shorten it."
        )
    if text.count("{") + text.count("[") > MOST_BRACKETS:
        raise Invalid(
            f"The sandbox policy opens more than {MOST_BRACKETS:,} brackets.", hint="Shorten it."
        )
    try:
        is_json = text.lstrip().startswith("{")
        data = read_json(text, limit=FILE_LIMIT, once=True) if is_json else None
    except GivenTwice as problem:
        raise Invalid(
            f"The sandbox policy is not valid: the key “{problem.key}” is given twice.",
            field=problem.key,
            hint="Keep one of them.",
        ) from None
    except Unreadable:
        data = None
    if data is None:
        try:
            data = read_yaml(text, _Loader)
        except yaml.YAMLError as problem:
            place = getattr(problem, "problem_mark", None)
            where = f" in line {place.line + 1}" if place else ""
            what = getattr(problem, "problem", None) or str(problem) or "it cannot be read"
            raise Invalid(
                f"The sandbox policy is not valid YAML{where}: {what}.", hint="Correct it."
            ) from problem
    return parse_policy({} if data is None else data)


class _Loader(Loader):
    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        known: set[str] = set()
        for key, _value in node.value:
            if str(key.value) in known:
                raise yaml.MarkedYAMLError(
                    problem=f"the key “{key.value}” is given twice", problem_mark=node.start_mark
                )
            known.add(str(key.value))
        return super().construct_mapping(node, deep)
