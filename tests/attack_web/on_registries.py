"""Attacks by registries of MCP servers, on ours, and by servers that programs bring along."""

from __future__ import annotations

import itertools
import json
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from accounts.models import Organisation, User
from conversations.models import Conversation
from mcpservers.models import McpServer
from mcpservers.serverjson import read_server
from tests.attack_web.case import Got, attack, control, tried
from tests.attack_web.inside import INNER
from tests.attack_web.on_addresses import SPELLINGS
from tests.attack_web.world import MARK, World

SUBJECT = "registries"
NAME = "com.example/tracker"
SECRET = "token-of-the-server-5127"
BETA = {"anthropic-beta": "managed-agents-2026-04-01"}
_numbers = itertools.count(1)


@cache
def home(world: World) -> tuple[Organisation, User, str]:
    owner = world.person()
    organisation = world.organisation(owner)
    return organisation, owner, world.token_of(owner, organisation)


def told(world: World, **ways: Any) -> dict[str, Any]:
    """Has the registry that the operator named tell of one server, by these ways."""
    entry: dict[str, Any] = {"server": {"name": NAME, "version": "1.0.0", **ways}}

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        whole = entry if "/versions/" in path else {"servers": [entry], "metadata": {"count": 1}}
        known = path.startswith("/v0.1/")
        return 200 if known else 404, {}, json.dumps(whole if known else {}).encode()

    world.listed.answer = answer
    server: dict[str, Any] = entry["server"]
    return server


def remote(url: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "streamable-http", "url": url, **more}]


def added(world: World, by: str = "", **more: Any) -> Any:
    """The answer to adding it by its first way, as it is told now. `by`: another's token."""
    with world.program(home(world)[2]) as program:
        shown = program.get("/api/mcp-registry/server", params={"name": NAME})
        tried(shown.status_code == 200, f"it is not shown: {shown.text[:200]}")
    with world.program(by or home(world)[2]) as program:
        body = {
            "name": NAME,
            "version": "1.0.0",
            "digest": shown.json()["digest"],
            "way": 0,
            "scope": "organisation",
            "called": f"r{next(_numbers)}",
            **more,
        }
        return program.post("/api/mcp-registry", json=body)


def here(world: World) -> str:
    return f"http://127.0.0.1:{world.listed.port}/mcp{next(_numbers)}"


@control(SUBJECT, "a registry", "a server of it is found, filled in and added")
def _works(world: World) -> Got:
    told(world, remotes=remote(here(world).replace("127.0.0.1", "{host}")))
    with world.program(home(world)[2]) as program:
        found = program.get("/api/mcp-registry", params={"search": "tracker"})
    answer = added(world, answers={"url.host": "127.0.0.1"})
    well = NAME in found.text and answer.status_code == 201
    return "" if well else f"{found.text[:200]} {answer.text[:200]}"


# --- what a registry says -------------------------------------------------------------------------


def _inside(spelling: str, world: World) -> Got:
    shown = ""
    for host in SPELLINGS[spelling]:
        address = f"{host}:{world.inside.port}"
        told(world, remotes=remote(f"http://{address}/mcp"))
        shown += added(world).text
        told(world, remotes=remote("http://{place}/mcp"))
        shown += added(world, answers={"url.place": address}).text
    if world.inside.visits:
        return f"the server called inside: {world.inside.visits[0][:80]}"
    return "what a service inside answers is shown" if INNER in shown else ""


for _spelling in SPELLINGS:
    attack(
        SUBJECT,
        f"a server at {_spelling}",
        "a registry tells of one there, or of one whose address a person completes so",
        quick=_spelling in {"loopback", "metadata services"},
    )(partial(_inside, _spelling))


@attack(SUBJECT, "a redirect", "the registry sends the server to what is inside")
def _redirects(world: World) -> Got:
    place = f"http://127.0.0.1:{world.inside.port}/"
    world.listed.answer = lambda _path: (302, {"Location": place}, b"")
    with world.program(home(world)[2]) as program:
        shown = program.get("/api/mcp-registry", params={"search": "x"}).text
        shown += program.get("/api/mcp-registry/server", params={"name": NAME}).text
    tried(world.listed.visits, "the registry was not asked")
    return "it was followed" if world.inside.visits or INNER in shown else ""


@attack(
    SUBJECT, "a name that is a path", "a server's name leads to other addresses of the registry"
)
def _leads(world: World) -> Got:
    told(world)
    with world.program(home(world)[2]) as program:
        for name in (
            "../../admin",
            "a/../../../admin",
            "a/b?x=1",
            "a/b#",
            "a%2fb/c",
            "a/b\r\nX: y",
        ):
            for version in ("1.0.0", "../../admin"):
                program.get("/api/mcp-registry/server", params={"name": name, "version": version})
    return f"it was asked: {world.listed.visits[0][:80]}" if world.listed.visits else ""


@attack(SUBJECT, "another server meanwhile", "it tells of another address once she has looked")
def _changes(world: World) -> Got:
    first, second = here(world), here(world)
    visits = itertools.count()

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        if not path.startswith("/v0.1/"):
            return 404, {}, b"{}"
        url = first if next(visits) == 0 else second
        server = {"name": NAME, "version": "1.0.0", "remotes": remote(url)}
        return 200, {}, json.dumps({"server": server}).encode()

    world.listed.answer = answer
    added(world)
    return "it was added" if McpServer.objects.filter(url=second).exists() else ""


_IMAGE = f"tools.example/notes@sha256:{'0' * 64}"
_PACKAGES: dict[str, dict[str, Any]] = {
    "a tag": {"identifier": "tools.example/notes:latest"},
    "an option for an image": {"identifier": f"--privileged@sha256:{'0' * 64}"},
    "options behind an image": {"identifier": f"{_IMAGE} --network host"},
    "an option in an argument's place": {
        "packageArguments": [{"type": "positional", "value": "--volume=/:/host"}]
    },
    "a variable that loads": {
        "environmentVariables": [{"name": "LD_PRELOAD", "value": "/mnt/session/workspace/x.so"}]
    },
    "a variable's name that is two": {
        "environmentVariables": [{"name": "A=b\nDOCKER_HOST", "value": "tcp://evil.example:1"}]
    },
    "a secret in an argument": {
        "packageArguments": [{"type": "named", "name": "--key", "isSecret": True}]
    },
}


def _smuggled(what: str, world: World) -> Got:
    package = {"registryType": "oci", "identifier": _IMAGE, **_PACKAGES[what]}
    told(world, packages=[package])
    answer = added(world, answers={"argument.0": "x"})
    return f"it was added: {answer.text[:200]}" if answer.status_code == 201 else ""


for _what in _PACKAGES:
    attack(SUBJECT, _what, "a registry's package brings it along", quick=False)(
        partial(_smuggled, _what)
    )


@attack(SUBJECT, "for others", "a member adds one for the organisation, mallory for everybody")
def _for_others(world: World) -> Got:
    organisation, _owner, _token = home(world)
    member = world.member(organisation)
    token = world.token_of(member, organisation)
    for who, scope in (
        (token, "organisation"),
        (token, "deployment"),
        (world.mallorys, "deployment"),
        (token, "agent"),
        (token, "conversation"),
    ):
        server = told(world, remotes=remote(here(world)))
        added(world, who, scope=scope)
    digest = read_server(server).digest
    for person, where in ((member, organisation), (world.mallory, world.elsewhere)):
        for scope in ("organisation", "deployment"):
            values = world.shown(where, way="0", digest=digest)
            values |= {"way0-called": f"r{next(_numbers)}", "way0-scope": scope}
            with world.browser(person, where) as browser:
                browser.form(f"/settings/mcp-registry/server/?name={NAME}", **values)
    theirs = McpServer.objects.filter(created_by__in=[member, world.mallory], owner=None)
    got = theirs.exclude(organisation=world.elsewhere)
    return f"{list(got)}" if got.exists() else ""


# --- ours -----------------------------------------------------------------------------------------


def _listed(world: World) -> dict[str, Any]:
    """One that the organisation lists, with secrets in its headers and address."""
    _organisation, _owner, token = home(world)
    body = {
        "name": f"l{next(_numbers)}",
        "url": f"https://{MARK}.example.org/mcp{next(_numbers)}?key={SECRET}",
        "scope": "organisation",
        "headers": {"Authorization": f"Bearer {SECRET}"},
    }
    with world.program(token) as program:
        made = program.post("/api/mcp-servers", json=body).json()
        program.patch(f"/api/mcp-servers/{made['id']}", json={"listed": True})
        whole = program.get("/v0.1/servers").json()
    (found,) = [one["server"] for one in whole["servers"] if one["server"]["title"] == made["name"]]
    tried(MARK in found["remotes"][0]["url"], "it is not listed")
    entry: dict[str, Any] = found
    return entry


@attack(
    SUBJECT, "what another organisation lists", "by list, name, cursor and cookie, and by nobody"
)
def _reads(world: World) -> Got:
    name = quote(_listed(world)["name"], safe="")
    for path in (
        "/v0.1/servers?limit=1",
        "/v0.1/servers?search=.&version=latest",
        f"/v0.1/servers/{name}/versions",
        f"/v0.1/servers/{name}/versions/latest",
    ):
        for each in (world.program(world.mallorys), world.browser(world.mallory), world.browser()):
            with each as visitor:
                if MARK in visitor.get(path).text:
                    return f"{path} shows it"
    with world.program(home(world)[2]) as program:
        said = program.get("/v0.1/servers?limit=1").json()["metadata"]
    cursor = said.get("nextCursor", "")
    with world.program(world.mallorys) as program:
        if MARK in program.get("/v0.1/servers", params={"cursor": cursor}).text:
            return "another's cursor opens it"
    return ""


@attack(SUBJECT, "secrets of what is listed", "a member reads them where it is listed")
def _secrets(world: World) -> Got:
    name = quote(_listed(world)["name"], safe="")
    organisation, _owner, _token = home(world)
    token = world.token_of(world.member(organisation), organisation)
    with world.program(token) as program:
        shown = program.get("/v0.1/servers").text
        shown += program.get(f"/v0.1/servers/{name}/versions/latest").text
    tried(MARK in shown, "she does not see it")
    return "they are shown" if SECRET in shown else ""


@attack(SUBJECT, "listing what is not hers", "a member and mallory list it, or a person's own")
def _lists(world: World) -> Got:
    organisation, _owner, token = home(world)
    member = world.member(organisation)
    body = {"name": f"q{next(_numbers)}", "url": here(world), "scope": "organisation"}
    with world.program(token) as program:
        quiet = program.post("/api/mcp-servers", json=body).json()["id"]
        own = {**body, "name": f"q{next(_numbers)}", "url": here(world), "scope": "person"}
        hers = program.post("/api/mcp-servers", json=own).json()["id"]
        program.patch(f"/api/mcp-servers/{hers}", json={"listed": True})
    for who, where in ((member, organisation), (world.mallory, world.elsewhere)):
        with world.program(world.token_of(who, where)) as program:
            program.patch(f"/api/mcp-servers/{quiet}", json={"listed": True})
        with world.browser(who, where) as browser:
            browser.form(f"/settings/mcp-servers/{quiet}/switch/", listed="1")
    listed = McpServer.objects.filter(uid__in=[quiet, hers], listed=True)
    return f"{list(listed)} is listed" if listed.exists() else ""


# --- servers that programs bring along ------------------------------------------------------------


def _brought(url: str, name: str = "mine") -> dict[str, Any]:
    return {
        "mcp_servers": [{"type": "url", "name": name, "url": url}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": name}],
    }


@control(SUBJECT, "a session's server", "its owner brings one, which is looked at")
def _brings(world: World) -> Got:
    organisation, owner, token = home(world)
    agent = world.agent_of(organisation, owner)
    conversation = world.converse(owner, organisation=organisation, agent=agent)
    with world.program(token) as program:
        body = {"agent": _brought(here(world))}
        answer = program.post(f"/v1/sessions/{conversation.uid}", json=body, headers=BETA)
    there = McpServer.objects.filter(conversation=conversation).exists()
    return "" if there and world.listed.visits else f"{answer.text[:200]}"


def _to_session(world: World, conversation: Conversation, token: str, url: str) -> None:
    with world.program(token) as program:
        body = {"agent": _brought(url)}
        program.post(f"/v1/sessions/{conversation.uid}", json=body, headers=BETA)


@attack(SUBJECT, "a server for another's session", "a reader of it, and mallory, bring it one")
def _for_anothers(world: World) -> Got:
    organisation, owner, token = home(world)
    member = world.member(organisation)
    agent = world.agent_of(organisation, owner)
    conversation = world.converse(owner, organisation=organisation, agent=agent)
    with world.program(token) as program:
        shared = program.post(
            f"/api/conversations/{conversation.uid}/shares",
            json={"user_id": member.uid, "role": "writer"},
        )
    tried(shared.status_code < 300, f"it is not shared: {shared.text[:200]}")
    for who in (world.token_of(member, organisation), world.mallorys):
        _to_session(world, conversation, who, here(world))
    if world.listed.visits:
        return f"it was looked at: {world.listed.visits[0][:80]}"
    there = McpServer.objects.filter(conversation=conversation).exists()
    return "it is the session's" if there else ""


@attack(SUBJECT, "what is inside, by a session", "a session and a front end's run bring addresses")
def _inside_by_session(world: World) -> Got:
    organisation, owner, token = home(world)
    agent = world.agent_of(organisation, owner)
    conversation = world.converse(owner, organisation=organisation, agent=agent)
    for hosts in SPELLINGS.values():
        for host in hosts:
            url = f"http://{host}:{world.inside.port}/mcp"
            _to_session(world, conversation, token, url)
            body = {
                "threadId": f"t{next(_numbers)}",
                "runId": "r1",
                "messages": [],
                "forwardedProps": {"mcpServers": [{"name": "mine", "url": url}]},
            }
            with world.program(token) as program:
                program.post("/agui", json=body)
    return f"it was called: {world.inside.visits[0][:80]}" if world.inside.visits else ""


@attack(SUBJECT, "a server for an agent of others", "a member and mallory name it one at /v1")
def _for_agent(world: World) -> Got:
    organisation, owner, _token = home(world)
    agent = world.agent_of(organisation, owner)
    member = world.member(organisation)
    for who in (world.token_of(member, organisation), world.mallorys):
        with world.program(who) as program:
            body = {"version": 1, **_brought(here(world))}
            program.post(f"/v1/agents/{agent.uid}", json=body, headers=BETA)
    there = McpServer.objects.filter(agent=agent)
    return f"{list(there)}" if there.exists() else ""
