"""Attacks on the secrets in vaults: where they are sent, who uses them, what comes back of them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from django.test.utils import override_settings

from accounts.models import Organisation, User
from conversations.actions.lending import lend_vaults
from conversations.bearers import find_bearer
from conversations.models import SessionVault
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.inside import INNER
from tests.attack_web.waits import Memory, Waits
from tests.attack_web.world import World
from vaults.auth import secrets_of
from vaults.models import Vault, VaultCredential
from webhooks.requests import post

SUBJECT = "vaults"
OLD, NEW = "old-access-token-of-hers-1", "new-access-token-of-hers-2"
REFRESH = "refresh-token-of-hers-3"
CLIENT_SECRET = "client-secret-of-hers-4"
SECRETS = (OLD, NEW, REFRESH, CLIENT_SECRET)
PUBLIC = "93.184.216.34"


class _Hers:
    """Somebody with a vault whose credential belongs to a service that the operator listed."""

    def __init__(self, world: World, owner: User | None = None) -> None:
        self.world = world
        self.owner = owner or world.person()
        self.home: Organisation = world.organisation(self.owner)
        self.token = world.token_of(self.owner, self.home)
        said = self.says("/v1/vaults", {"display_name": "Mine"})
        tried(said and "id" in said, f"no vault was made: {said}")
        self.vault = said["id"]
        self.service = f"http://127.0.0.1:{world.listed.port}"
        said = self.says(
            f"/v1/vaults/{self.vault}/credentials",
            {
                "auth": {
                    "type": "mcp_oauth",
                    "mcp_server_url": f"{self.service}/mcp",
                    "access_token": OLD,
                    "refresh": {
                        "token_endpoint": f"{self.service}/token",
                        "client_id": "client",
                        "refresh_token": REFRESH,
                        "token_endpoint_auth": {
                            "type": "client_secret_post",
                            "client_secret": CLIENT_SECRET,
                        },
                    },
                }
            },
        )
        tried(said and "id" in said, f"no credential was stored: {said}")
        self.credential = said["id"]

    @property
    def path(self) -> str:
        return f"/v1/vaults/{self.vault}/credentials/{self.credential}"

    @property
    def row(self) -> VaultCredential:
        return VaultCredential.objects.select_related("vault").get(uid=self.credential)

    def says(self, path: str, body: Any = None) -> Any:
        with self.world.program(self.token) as program:
            return program.says("POST", path, body)

    def validated(self) -> Any:
        return self.says(f"{self.path}/mcp_oauth_validate", {})


Answer = tuple[int, dict[str, str], bytes]


def _speaks(world: World, **more: Answer) -> None:
    """The listed service takes the new token and no other; its token endpoint gives it for the old one."""

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        if path in more:
            return more[path]
        if path == "/token":
            given = {"access_token": NEW, "expires_in": 3600}
            return 200, {"Content-Type": "application/json"}, json.dumps(given).encode()
        if f"Bearer {NEW}" in world.listed.visits[-1]:
            return (
                200,
                {"Content-Type": "application/json"},
                b'{"jsonrpc":"2.0","id":1,"result":{}}',
            )
        return 401, {}, b"no"

    world.listed.answer = answer


def _shown(world: World, hers: _Hers, said: Any) -> Got:
    text = json.dumps(said)
    if world.inside.visits:
        return f"the server went inside: {world.inside.visits[0][:80]}"
    if INNER in text:
        return "what is inside is shown"
    return next((f"{one} is shown" for one in SECRETS if one in text), "")


@control(
    SUBJECT, "renewing a token", "an old token is exchanged at the service's own endpoint and used"
)
def _renewed(world: World) -> Got:
    hers = _Hers(world)
    _speaks(world)
    said = hers.validated()
    is_new = secrets_of(hers.row).token == NEW
    works = is_new and said["status"] == "valid" and said["refresh"]["status"] == "succeeded"
    return "" if works else f"{said}"


@control(SUBJECT, "a token for its service", "goes to the service's own address and below it")
def _own_address(world: World) -> Got:
    found = _bearers(world, "https://mcp.example.org/team", ["https://mcp.example.org/team/tools"])
    return "" if found else "no token went there"


# --- where it is sent -----------------------------------------------------------------------------


def _redirected(place: str, status: int, world: World) -> Got:
    hers = _Hers(world)
    inner = {"Location": f"http://127.0.0.1:{world.inside.port}/stolen"}
    _speaks(world, **{place: (status, inner, b"")})
    said = hers.validated()
    tried(any(f" {place} " in one for one in world.listed.visits), "the service was not asked")
    return _shown(world, hers, said)


for _place in ("/mcp", "/token"):
    for _status in (302, 307, 308):
        attack(
            SUBJECT,
            f"{_place} leads inside by {_status}",
            "a service that may be asked sends the server with its secrets to one inside",
            quick=_status == 307,
        )(partial(_redirected, _place, _status))


@contextmanager
def _rebinding(answers: list[list[str]]) -> Iterator[list[str]]:
    """The names of this process's internet: one that changes with every question."""
    real = socket.getaddrinfo
    asked: list[str] = []

    def changing(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **options)
        found = answers[min(len(asked), len(answers) - 1)]
        asked.append(str(host))
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (one, int(port or 0))) for one in found]

    socket.getaddrinfo = changing
    try:
        yield asked
    finally:
        socket.getaddrinfo = real


def _rebound(answers: list[list[str]], world: World) -> Got:
    url = f"http://rebind.example:{world.inside.port}/token"

    async def ask() -> str:
        return (await post(url, b"refresh_token=" + REFRESH.encode(), {}, most=1_000)).body

    with _rebinding(answers) as asked, override_settings(AGENTSITE_WEBHOOK_TIMEOUT=1):
        shown = asyncio.run(ask())
    tried(asked, "the name was not even looked up")
    if world.inside.visits:
        return f"it went inside: {world.inside.visits[0][:80]}"
    return "what is inside is shown" if INNER in shown else ""


for _label, _answers in {
    "at the time it is used": [["127.0.0.1"]],
    "between judging and connecting": [[PUBLIC], ["127.0.0.1"]],
    "to a good and a bad one at once": [[PUBLIC, "127.0.0.1"]],
}.items():
    attack(
        SUBJECT,
        f"a token endpoint whose name changes {_label}",
        "a name that was public when it was stored leads to this machine",
    )(partial(_rebound, _answers))


def _bearers(world: World, service: str, addresses: list[str]) -> list[str]:
    """To which of the addresses a conversation's request would carry the token of `service`."""
    conversation = world.converse(
        world.olga, organisation=world.home, agent=world.agent_of(world.home, world.olga)
    )
    with world.program(world.olgas) as program:
        vault = program.says("POST", "/v1/vaults", {"display_name": f"Vault {world.number()}"})
        auth = {"type": "static_bearer", "mcp_server_url": service, "token": OLD}
        made = program.says("POST", f"/v1/vaults/{vault['id']}/credentials", {"auth": auth})
    tried("id" in made, f"it was not stored: {made}")
    lend_vaults(actor=world.olga, conversation=conversation, vault_uids=[vault["id"]])
    found = []
    for address in addresses:
        try:
            bearer = find_bearer(conversation.pk, address)
        except (ValueError, UnicodeError):
            continue
        if bearer is not None and bearer.token:
            found.append(address)
    return found


@attack(
    SUBJECT,
    "a token for a neighbour's address",
    "hosts, ports and paths that begin like the service's",
)
def _neighbours(world: World) -> Got:
    service = "https://mcp.example.org/team"
    found = _bearers(
        world,
        service,
        [
            *(
                "https://mcp.example.org.evil.example/team",
                "https://mcp.example.org@evil.example/team",
            ),
            *("https://evil.example/https://mcp.example.org/team", "http://mcp.example.org/team"),
            *("https://mcp.example.org:8443/team", "https://mcp.example.org/teammates"),
            *("https://mcp.example.org/team/../admin", "https://mcp.example.org/team/%2e%2e/admin"),
            *("https://mcp.example.org/team/..;/admin", "https://mcp.example.org/team\\..\\admin"),
            *("https://mcp.example.org/team/%252e%252e/x", "https://mcp.example.org/TEAM/x"),
            *(
                "https://mcp.example.org\\@evil.example/team",
                "https://mcp.example.org%2eevil.example/team",
            ),
            *("https://mcp.example.org#@evil.example/team", "https://sub.mcp.example.org/team"),
            *(
                "//mcp.example.org/team",
                "https://ｍcp.example.org.evil.example/team",
                "https:///team",
            ),
        ],
    )
    return f"the token goes to {found}" if found else ""


@attack(
    SUBJECT, "another address for a stored secret", "changes where a secret goes without knowing it"
)
def _moved(world: World) -> Got:
    hers = _Hers(world)
    before = hers.row
    evil = f"http://127.0.0.1:{world.listed.port}/evil"
    for change in (
        {"mcp_server_url": evil},
        {"url": evil},
        {"refresh": {"token_endpoint": evil}},
        {"refresh": {"token_endpoint": evil, "client_id": "evil"}},
        {"refresh": {"resource": evil}},
        {"type": "static_bearer", "mcp_server_url": evil},
    ):
        hers.says(hers.path, {"auth": {"type": "mcp_oauth", **change}})
    with world.browser(hers.owner, hers.home) as visitor:
        visitor.form(
            f"/settings/vaults/{hers.vault}/credentials/{hers.credential}/replace/",
            **world.shown(hers.home, mcp_server_url=evil, token=""),
        )
    after = hers.row
    moved = (after.url, after.key, after.details) != (before.url, before.key, before.details)
    return f"it now goes to {after.url}, {after.details}" if moved else ""


# --- what comes back ------------------------------------------------------------------------------


@attack(SUBJECT, "secrets in what a service answers", "a service that repeats what it was sent")
def _repeated(world: World) -> Got:
    hers = _Hers(world)

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        sent = world.listed.visits[-1].encode()
        return 401, {"Content-Type": f"text/{OLD}"}, b"you sent: " + sent

    world.listed.answer = answer
    said = hers.validated()
    tried(len(world.listed.visits) >= 2, "the service was not asked")
    return _shown(world, hers, said)


@attack(
    SUBJECT, "secrets where they are listed", "reads every page and list that tells of a credential"
)
def _listed(world: World) -> Got:
    hers = _Hers(world)
    texts = []
    with world.program(hers.token) as program:
        for path in (
            *("/v1/vaults", f"/v1/vaults/{hers.vault}", f"/v1/vaults/{hers.vault}/credentials"),
            hers.path,
        ):
            answer = program.get(path)
            tried(answer.status_code == 200, f"{path}: {answer.status_code}")
            texts.append(answer.text)
    with world.browser(hers.owner, hers.home) as visitor:
        for path in (
            "/settings/vaults/",
            f"/settings/vaults/{hers.vault}/",
            "/approvals/audit/export/",
        ):
            texts.append(visitor.get(path).text)
    with world.browser(world.staff) as visitor:
        for path in (
            "/admin/vaults/vault/",
            f"/admin/vaults/vaultcredential/{hers.row.pk}/change/",
        ):
            texts.append(visitor.get(path).text)
    return next((f"{one} is shown" for one in SECRETS if one in "".join(texts)), "")


def _odd(answer: tuple[int, dict[str, str], bytes], world: World) -> Got:
    """What the token endpoint says is odd; the old token must stay, and nobody may wait."""
    hers = _Hers(world)
    _speaks(world, **{"/token": answer})
    with Memory(world.site.pid) as taken, Waits(world) as waits:
        hers.validated()
    tried(any(" /token " in one for one in world.listed.visits), "the endpoint was not asked")
    secrets = secrets_of(hers.row)
    if secrets.token != OLD:
        return f"stored as a token: {secrets.token[:60]!r}"
    if taken.grown > 150_000_000:
        return f"the server took {taken.grown} bytes"
    return waits.got


_JSON = {"Content-Type": "application/json"}
for _label, _answer in {
    "with a line end in it": (200, _JSON, b'{"access_token": "a\\r\\nX-Evil: 1"}'),
    "that is an object": (200, _JSON, b'{"access_token": {"a": 1}}'),
    "without a measure": (200, _JSON, b'{"access_token": "' + b"a" * 30_000_000 + b'"}'),
    "of a hundred thousand levels": (200, _JSON, b"[" * 100_000),
    "that unfolds": (200, {**_JSON, "Content-Encoding": "gzip"}, b"\x1f\x8b\x08" + b"\0" * 1_000),
}.items():
    attack(
        SUBJECT,
        f"a new token {_label}",
        "a token endpoint whose answer is not what one stores",
        quick=_label == "with a line end in it",
    )(partial(_odd, _answer))


@attack(SUBJECT, "one refresh token twice", "six programs renew the same token at the same moment")
def _at_once(world: World) -> Got:
    hers = _Hers(world)
    used: list[str] = []

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        visit = world.listed.visits[-1]
        if path == "/token":
            used.extend(parse_qs(visit.rpartition("} ")[2]).get("refresh_token", []))
            time.sleep(0.3)
            new = {"access_token": NEW, "refresh_token": f"{REFRESH}-{len(used)}"}
            return 200, _JSON, json.dumps(new).encode()
        return (200, _JSON, b"{}") if NEW in visit else (401, {}, b"")

    world.listed.answer = answer
    threads = [threading.Thread(target=hers.validated) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    tried(used, "nothing was renewed")
    return f"used {len(used)} times" if len(used) != len(set(used)) else ""


# --- whose it is ----------------------------------------------------------------------------------


def _foreign(who: str, world: World) -> Got:
    """Everything that can be done with a credential, by somebody else, by every path to it."""
    hers = _Hers(world)
    _speaks(world)
    other = world.member(hers.home) if who == "a colleague" else world.mallory
    home = hers.home if who == "a colleague" else world.elsewhere
    agent = world.agent_of(home, hers.owner if who == "a colleague" else world.mallory)
    before, texts = (hers.row.sealed, hers.row.updated_at), []
    with world.program(world.token_of(other, home)) as program:
        own = program.says("POST", "/v1/vaults", {"display_name": "Theirs"})
        session = program.says(
            "POST", "/v1/sessions", {"agent": agent.uid, "environment_id": world.environment.uid}
        )
        tried("id" in own and "id" in session, f"not even their own: {own} {session}")
        for vault in (hers.vault, own["id"]):
            path = f"/v1/vaults/{vault}/credentials/{hers.credential}"
            change = {"auth": {"type": "mcp_oauth", "access_token": "x" * 20}}
            for method, more, body in (
                ("GET", "", None),
                ("POST", "", change),
                ("POST", "/mcp_oauth_validate", {}),
                ("POST", "/archive", {}),
                ("DELETE", "", None),
            ):
                texts.append(program.request(method, path + more, json=body).text)
        program.post(f"/v1/vaults/{hers.vault}/archive", json={})
        program.delete(f"/v1/vaults/{hers.vault}")
        for name in ("vault_ids", "x_vault_ids"):
            lent = {name: [hers.vault]}
            program.post(f"/v1/sessions/{session['id']}", json=lent)
            program.post(
                "/v1/sessions",
                json={"agent": agent.uid, "environment_id": world.environment.uid, **lent},
            )
    if world.listed.visits:
        return "her secret was sent for somebody else"
    if SessionVault.objects.filter(vault__uid=hers.vault).exists():
        return "her vault was lent"
    if not Vault.objects.filter(uid=hers.vault, archived_at=None).exists():
        return "her vault is gone"
    if (hers.row.sealed, hers.row.updated_at) != before:
        return "her secret is another one"
    return "it is shown" if "mcp_server_url" in "".join(texts) else ""


for _who in ("a colleague", "mallory"):
    attack(SUBJECT, f"a foreign vault by {_who}", "reads, changes, tries, lends and deletes hers")(
        partial(_foreign, _who)
    )


@attack(
    SUBJECT,
    "forged posts to a vault",
    "a foreign page replaces and deletes secrets with her cookie",
)
def _forged(world: World) -> Got:
    hers = _Hers(world)
    before = (hers.row.sealed, Vault.objects.filter(owner=hers.owner).count())
    of_credential = f"/settings/vaults/{hers.vault}/credentials/{hers.credential}"
    with world.browser(hers.owner, hers.home, forge=True) as victim:
        victim.headers.update({"Origin": "https://evil.example"})
        for path, values in (
            (f"{of_credential}/replace/", {"token": "x" * 20}),
            (f"{of_credential}/archive/", {}),
            (f"{of_credential}/delete/", {}),
            (f"/settings/vaults/{hers.vault}/delete/", {}),
            (f"/settings/vaults/{hers.vault}/archive/", {}),
            ("/settings/vaults/", {"display_name": "Evil"}),
        ):
            victim.post(path, data=world.shown(hers.home, **values))
    gone = not VaultCredential.objects.filter(uid=hers.credential, archived_at=None).exists()
    if gone or (hers.row.sealed, Vault.objects.filter(owner=hers.owner).count()) != before:
        return "her vault is changed"
    return ""


@attack(
    SUBJECT,
    "secrets by a token that only reads",
    "stores, replaces and tries with conversations:write",
)
def _scopes(world: World) -> Got:
    hers = _Hers(world)
    _speaks(world)
    before = hers.row.sealed
    token = world.token_of(hers.owner, hers.home, "conversations:read", "conversations:write")
    with world.program(token) as program:
        program.post(hers.path, json={"auth": {"type": "mcp_oauth", "access_token": "x" * 20}})
        program.post(f"{hers.path}/mcp_oauth_validate", json={})
        program.delete(hers.path)
    rows = VaultCredential.objects.filter(uid=hers.credential, sealed=before)
    if world.listed.visits:
        return "the secret was sent"
    return "" if rows.exists() else "the secret is another one"
