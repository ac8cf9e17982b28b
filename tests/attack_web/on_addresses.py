"""Attacks that have the server connect where only it can, by every spelling at every door."""

from __future__ import annotations

import asyncio
from functools import partial
from ipaddress import ip_address

import httpx2
from cryptography.hazmat.primitives.asymmetric import ec

from accounts.actions.provider_keys import store_provider_key
from accounts.models import ProviderKey, Scope
from net.addresses import Sort, sort_of
from net.guarded import guarded_client
from net.lookups import judged_addresses
from notices.models import Device
from notices.pushkeys import public_text
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.inside import INNER
from tests.attack_web.world import World
from vaults.models import VaultCredential
from webhooks.models import WebhookEndpoint

SUBJECT = "addresses"
POINT = public_text(ec.generate_private_key(ec.SECP256R1()))
"""A browser's key, as a browser would give it."""
SPELLINGS = {
    "loopback": ("127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "localhost."),
    "numbers": ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "017700000001"),
    "IPv6 that is loopback": ("[::1]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]"),
    "IPv4 inside IPv6": ("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:7f00:1]"),
    "nowhere in particular": ("0.0.0.0", "[::]", "0", "255.255.255.255"),
    "metadata services": (
        *("169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "192.0.0.192"),
        *("169.254.170.2", "[::ffff:169.254.169.254]", "2852039166", "100.100.100.200"),
    ),
    "private networks": (
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "[fd00::1]",
        "[fec0::1]",
        "100.64.0.1",
    ),
    "signs that look like others": (
        "１２７.0.0.1",
        "127。0。0。1",
        "ⓛocalhost",
        "127.0.0.1%00.example.org",
    ),
    "a user before the host": ("example.org@127.0.0.1", "127.0.0.1#@example.org", "a:b@localhost"),
}


def _urls(world: World, spelling: str) -> list[str]:
    port = world.inside.port
    return [
        f"{scheme}://{host}:{port}/inside"
        for scheme in ("http", "https")
        for host in SPELLINGS[spelling]
    ]


def _verdict(world: World, shown: str) -> Got:
    if world.inside.visits:
        return f"the server called inside: {world.inside.visits[0][:80]}"
    return "what a service inside answers is shown" if INNER in shown else ""


def _provider_key(spelling: str, world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    shown, stored = "", []
    with world.browser(person, home) as browser:
        for url in _urls(world, spelling):
            values = world.shown(
                home, provider="anthropic", base_url=url, key="k" * 20, scope="user"
            )
            shown += browser.form("/settings/keys/", **values).text
            if ProviderKey.objects.filter(user=person).exists():
                stored.append(url)
                ProviderKey.objects.filter(user=person).delete()
    return _verdict(world, shown) or (f"stored: {stored}" if stored else "")


def _webhook(spelling: str, world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    shown, stored = "", []
    with world.program(world.token_of(person, home)) as program:
        for url in _urls(world, spelling):
            answer = program.post("/api/webhooks", json={"url": url, "event_types": ["*"]})
            shown += answer.text
            row = WebhookEndpoint.objects.filter(organisation=home).first()
            if row is not None:
                stored.append(url)
                program.post(f"/api/webhooks/{row.uid}/test", json={})
                world.until(lambda: world.inside.visits or True, "")
                program.delete(f"/api/webhooks/{row.uid}")
    return _verdict(world, shown) or (f"stored: {stored}" if stored else "")


def _credential(field: str, spelling: str, world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    shown, stored = "", []
    with world.program(world.token_of(person, home)) as program:
        vault = program.says("POST", "/v1/vaults", {"display_name": "Mine"})
        tried(vault and "id" in vault, f"no vault was made: {vault}")
        for url in _urls(world, spelling):
            auth = {
                "type": "mcp_oauth",
                "mcp_server_url": "https://mcp.example.invalid/a",
                "access_token": "t" * 24,
                "refresh": {
                    "token_endpoint": "https://mcp.example.invalid/token",
                    "client_id": "c",
                    "refresh_token": "r" * 24,
                    "token_endpoint_auth": {"type": "none"},
                },
            }
            (auth["refresh"] if field == "token_endpoint" else auth)[field] = url  # type: ignore[index]
            path = f"/v1/vaults/{vault['id']}/credentials"
            made = program.post(path, json={"auth": auth})
            shown += made.text
            if made.status_code < 300:
                uid = made.json()["id"]
                shown += program.post(f"{path}/{uid}/mcp_oauth_validate", json={}).text
                if world.inside.visits:
                    stored.append(url)
                VaultCredential.objects.filter(uid=uid).delete()
    return _verdict(world, shown) or (f"called: {stored}" if stored else "")


def _push(spelling: str, world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    shown, stored = "", []
    with world.browser(person, home) as browser:
        signs_up = "/settings/notifications/browsers/"
        values = {"endpoint": "https://push.example.org/a", "p256dh": POINT, "auth": "A" * 22}
        given = browser.form(signs_up, **values)
        tried(given.status_code == 204, f"no browser signs up: {given.text[:200]}")
        Device.objects.filter(user=person).delete()
        for url in _urls(world, spelling):
            shown += browser.form(signs_up, **{**values, "endpoint": url}).text
            row = Device.objects.filter(user=person).first()
            if row is not None:
                stored.append(url)
                browser.form(f"/settings/notifications/browsers/{row.uid}/test/")
                world.until(lambda: world.inside.visits or True, "")
                row.delete()
    return _verdict(world, shown) or (f"stored: {stored}" if stored else "")


for _spelling in SPELLINGS:
    for _door, _act in (
        ("provider key", _provider_key),
        ("webhook", _webhook),
        ("browser's push service", _push),
        ("vault's service", partial(_credential, "mcp_server_url")),
        ("vault's token endpoint", partial(_credential, "token_endpoint")),
    ):
        attack(
            SUBJECT,
            f"{_door}: {_spelling}",
            f"names a {_door} by {', '.join(SPELLINGS[_spelling][:3])}",
            quick=_door == "provider key" or _spelling == "loopback",
        )(partial(_act, _spelling))


def _schemes(world: World) -> Got:
    stored = []
    with world.program(world.token) as program:
        for url in (
            "file:///etc/passwd",
            "gopher://127.0.0.1:6379/_x",
            "ftp://127.0.0.1/",
            "//127.0.0.1/",
            "https:127.0.0.1",
        ):
            made = program.post("/api/webhooks", json={"url": url, "event_types": ["*"]})
            if made.status_code < 300:
                stored.append(url)
    return f"stored: {stored}" if stored else ""


attack(SUBJECT, "webhook: other schemes", "file, gopher and ftp addresses")(_schemes)


class Rebound:
    """A DNS that answers well when it is asked first and with loopback afterwards, or with both."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def __call__(self, host: str, port: int) -> list[str]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Refused(Exception):
    pass


def _judge(_host: str, address: object, _port: int) -> None:
    if sort_of(ip_address(str(address))) is not Sort.PUBLIC:
        raise _Refused


@attack(
    SUBJECT,
    "a name with a good and a bad address",
    "DNS answers with a public address and loopback",
)
def _mixed(world: World) -> Got:
    try:
        got = asyncio.run(
            judged_addresses(
                "x.example", 80, _judge, seconds=2, resolve=Rebound(["93.184.216.34", "127.0.0.1"])
            )
        )
    except _Refused:
        return ""
    return f"it would connect to {got}"


@attack(
    SUBJECT,
    "a redirect to inside",
    "a service that is allowed sends the server on to one that is not",
)
def _redirect(world: World) -> Got:
    world.inside.answer = lambda path: (
        302,
        {"Location": f"http://127.0.0.1:{world.inside.port}/second"},
        b"",
    )

    async def ask() -> httpx2.Response:
        async with guarded_client(lambda *_: None, timeout=httpx2.Timeout(5), seconds=5) as client:
            return await client.get(f"http://127.0.0.1:{world.inside.port}/first")

    tried(asyncio.run(ask()).status_code == 302, "the first answer did not come")
    return "it followed" if any("/second" in one for one in world.inside.visits) else ""


@attack(SUBJECT, "foreign words in an error", "a key for a service inside that the operator lists")
def _echo(world: World) -> Got:
    answered = f"<h1>{INNER} root:x:0:0</h1>".encode()
    world.listed.answer = lambda path: (418, {"Content-Type": "text/html"}, answered)
    owner = world.person()
    home = world.organisation(owner)
    store_provider_key(
        actor=owner,
        organisation=home,
        scope=Scope.USER,
        provider="openai_compatible",
        base_url=f"http://127.0.0.1:{world.listed.port}/v1",
        key="key-of-a-member-77",
    )
    agent = world.agent_of(home, owner, provider="openai_compatible", model="any")
    conversation = world.converse(owner, organisation=home, agent=agent)
    token = world.token_of(owner, home)
    world.turn(token, conversation)
    log = str(world.rested(conversation))
    page = world.browser(owner).get(f"/c/{conversation.uid}/").text
    tried(world.listed.visits, "the service was not asked")
    return "the service's words are shown" if INNER in log + page else ""


@control(SUBJECT, "a service that the operator listed", "is asked by a member's key, and answers")
def _listed(world: World) -> Got:
    person = world.person()
    home = world.organisation(person)
    url = f"http://127.0.0.1:{world.listed.port}/v1"
    with world.browser(person, home) as browser:
        values = world.shown(
            home, provider="openai_compatible", base_url=url, key="k" * 20, scope="user"
        )
        browser.form("/settings/keys/", **values)
    return "" if ProviderKey.objects.filter(user=person, base_url=url).exists() else "refused"


@control(SUBJECT, "a webhook to the public network", "is stored")
def _public(world: World) -> Got:
    with world.program(world.token) as program:
        made = program.post(
            "/api/webhooks", json={"url": "https://hooks.example.org/a", "event_types": ["*"]}
        )
    WebhookEndpoint.objects.filter(url="https://hooks.example.org/a").delete()
    return "" if made.status_code < 300 else f"refused: {made.text[:200]}"
