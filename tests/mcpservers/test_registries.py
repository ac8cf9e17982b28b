"""Servers from a registry: searched, looked at, filled in and added at one version; and what registries may
not do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from audit.models import AuditEntry
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from mcpservers.actions.registry import (
    add_registered,
    offered_ways,
    read_registered,
    search_registry,
)
from mcpservers.models import McpServer
from mcpservers.packages import Installed
from mcpservers.registries import Unregistered
from mcpservers.secrets import headers_of
from mcpservers.serverjson import fill, read_server, ways_of
from tests.cast import ClientOf
from tests.standins.mcp_registry import REMOTE, Registry, registry_served
from tests.standins.mcp_server import Remote
from tools_app.packagetrees import RECORD

pytestmark = pytest.mark.django_db

PERSON = McpServer.Scope.PERSON


@pytest.fixture
def registry(settings: Any) -> Iterator[Registry]:
    with registry_served() as held:
        settings.AGENTSITE_MCP_REGISTRIES = [held.url]
        settings.AGENTSITE_MCP_PRIVATE_HOSTS += [held.url.removeprefix("http://")]
        yield held


@pytest.fixture
def at_remote(remote: Remote, registry: Registry, settings: Any) -> dict[str, Any]:
    """An entry at the stand-in of an MCP server."""
    places = {each.url.split("/")[2] for each in (remote, registry)}
    settings.AGENTSITE_MCP_PRIVATE_HOSTS = sorted(places)
    address = remote.url.replace("127.0.0.1", "{host}")
    entry = deepcopy(REMOTE)
    entry["remotes"][0]["url"] = address
    entry["remotes"][0]["variables"] = {"host": {"isRequired": True}}
    registry.servers = [entry]
    return entry


def package(**more: Any) -> dict[str, Any]:
    held = {"registryType": "pypi", "identifier": "mcp-notes", "version": "1.0.0"}
    return {
        "name": "com.example/notes",
        "version": "1.0.0",
        "packages": [{**held, "transport": {"type": "stdio"}, **more}],
    }


def test_a_registry_is_searched_a_page_at_a_time(
    alice: User, acme: Organisation, registry: Registry
):
    registry.servers = [{**REMOTE, "name": f"com.example/n{number:02}"} for number in range(45)]
    first = search_registry(actor=alice, organisation=acme, number=0, text="com.example")
    second = search_registry(
        actor=alice, organisation=acme, number=0, text="com.example", cursor=first.cursor
    )
    assert [len(first.servers), len(second.servers), second.cursor] == [30, 15, ""]
    assert registry.asked[0][1] == {"limit": "30", "version": "latest", "search": "com.example"}


def test_a_server_is_added_at_the_version_that_was_looked_at(
    client_of: ClientOf, alice: User, registry: Registry, at_remote: dict[str, Any], remote: Remote
):
    browser = client_of(alice)
    page = browser.get(reverse("mcpservers:registry"), {"search": "track"})
    assert "Tracks what is to be done." in page.content.decode()
    where = f"{reverse('mcpservers:registered')}?registry=0&name=com.example/tracker&version=1.2.0"
    shown = browser.get(where).content.decode()
    assert 'name="way0-header.Authorization.token"' in shown
    assert 'type="password"' in shown
    server = read_server(at_remote)
    form = {
        "way": "0",
        "digest": server.digest,
        "way0-called": "tracker",
        "way0-scope": "organisation",
        "way0-url.host": "127.0.0.1",
        "way0-header.Authorization.token": "alices-secret-token",
        "way0-header.X-Region": "us",
        "shown_organisation": Organisation.objects.get().uid,
    }
    missing = browser.post(where, {**form, "way0-header.Authorization.token": ""})
    assert missing.status_code == 422
    wrong = browser.post(where, {**form, "way0-header.Authorization.token": "alices-sécret"})
    assert wrong.status_code == 422
    assert "alices-s" not in wrong.content.decode()
    assert browser.post(where, form).status_code == 302
    added = McpServer.objects.get()
    assert (added.name, added.url, added.last_error) == ("tracker", remote.url, "")
    assert (added.published_name, added.published_version) == ("com.example/tracker", "1.2.0")
    noted = AuditEntry.objects.get(action="mcp_server_added").details
    assert (noted["registered_as"], noted["version"]) == ("com.example/tracker", "1.2.0")
    assert noted["registry"] == urlsplit(registry.url).netloc
    assert headers_of(added) == {"Authorization": "Bearer alices-secret-token", "X-Region": "us"}
    assert added.tools.get().remote_name == "echo"
    told = browser.get(reverse("mcpservers:server", args=[added.uid])).content.decode()
    assert "com.example/tracker 1.2.0" in told
    # What is published later is nobody's wish.
    at_remote["version"] = "1.3.0"
    added.refresh_from_db()
    assert added.published_version == "1.2.0"


def test_what_changed_since_somebody_looked_is_not_added(
    alice: User, acme: Organisation, registry: Registry, at_remote: dict[str, Any]
):
    seen = read_registered(
        actor=alice, organisation=acme, number=0, name="com.example/tracker", version="1.2.0"
    )
    at_remote["remotes"][0]["headers"].append({"name": "X-More", "isRequired": True})
    with pytest.raises(Conflict):
        add_registered(
            actor=alice,
            organisation=acme,
            scope=PERSON,
            number=0,
            name=seen.name,
            version=seen.version,
            digest=seen.digest,
            way=0,
            answers={},
        )


def test_who_may_add_it_is_whoever_may_add_any(
    client_of: ClientOf,
    bob: User,
    mallory: User,
    acme: Organisation,
    registry: Registry,
    at_remote: dict[str, Any],
    settings: Any,
):
    given: dict[str, Any] = {
        "number": 0,
        "name": "com.example/tracker",
        "version": "1.2.0",
        "digest": read_server(at_remote).digest,
        "way": 0,
        "answers": {"url.host": "127.0.0.1", "header.Authorization.token": "x"},
    }
    scope = McpServer.Scope.ORGANISATION
    with pytest.raises(Forbidden):
        add_registered(actor=bob, organisation=acme, scope=scope, **given)
    with pytest.raises(NotFound):
        add_registered(actor=mallory, organisation=acme, scope=PERSON, **given)
    settings.AGENTSITE_MCP_PERSONAL = False
    where = f"{reverse('mcpservers:registered')}?registry=0&name=com.example/tracker"
    assert "<form" not in client_of(bob).get(where).content.decode().partition("<main")[2]


def test_a_package_is_started_as_it_is_installed_and_else_says_how_it_comes(
    settings: Any, tmp_path: Path
):
    settings.AGENTSITE_MOUNT_ROOTS = [str(tmp_path)]
    server = read_server(
        package(
            environmentVariables=[{"name": "API_KEY", "isRequired": True, "isSecret": True}],
            packageArguments=[
                {"type": "named", "name": "--root", "isRequired": True},
                {"type": "positional", "valueHint": "folder"},
            ],
        )
    )
    (way,) = offered_ways(server)
    assert "mcp_package install pypi:mcp-notes==1.0.0" in way.hint
    place = tmp_path / "pypi-mcp-notes@1.0.0"
    place.mkdir()
    record = Installed(
        kind="pypi",
        name="mcp-notes",
        version="1.0.0",
        command="python3",
        arguments=("-I", str(place / "run.py")),
        parts=(),
        tree="",
    )
    (place / RECORD).write_text(record.model_dump_json())
    (way,) = offered_ways(server)
    assert (way.refusal, [each.key for each in way.questions]) == (
        "",
        ["variable.API_KEY", "argument.0", "argument.1"],
    )
    filled = fill(way, {"variable.API_KEY": "k", "argument.0": "/mnt", "argument.1": "notes"})
    assert filled.arguments == ("--root=/mnt", "notes")
    assert filled.variables == {"API_KEY": "k"}


def test_programs_search_look_and_add(
    alice: User, acme: Organisation, client: Client, registry: Registry, at_remote: dict[str, Any]
):
    def headers(*scopes: TokenScope) -> Any:
        made = create_token(actor=alice, organisation=acme, name="t", scopes=scopes)
        return {"Authorization": f"Bearer {made.secret}"}

    admin, where = headers(TokenScope.ADMIN), "/api/mcp-registry"
    found = client.get(where, {"search": "tracker"}, headers=admin).json()
    assert [each["name"] for each in found["servers"]] == ["com.example/tracker"]
    named = {"name": "com.example/tracker", "version": "1.2.0"}
    shown = client.get(f"{where}/server", named, headers=admin).json()
    (way,) = shown["ways"]
    assert [each["key"] for each in way["questions"] if each["is_secret"]] == [
        "header.Authorization.token"
    ]
    answers = {"url.host": "127.0.0.1", "header.Authorization.token": "x"}
    body = {**named, "digest": shown["digest"], "way": 0, "answers": answers}
    made = client.post(where, body, "application/json", headers=admin)
    assert (made.status_code, made.json()["published_version"]) == (201, "1.2.0")
    less = headers(TokenScope.CONVERSATIONS_WRITE)
    assert client.get(where, {"search": ""}, headers=less).status_code == 403
    assert client.get(where, {"registry": "7"}, headers=admin).status_code == 404
    assert client.get(where, {"surprise": "7"}, headers=admin).status_code == 422


# --- registries that mean no good -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"instead": b"<html>"}, "otherwise"),
        ({"instead": b"[]"}, "otherwise"),
        ({"instead": b'{"servers": 3}'}, "otherwise"),
        ({"instead": b'{"servers": []' + b" " * 3_000_000 + b"}"}, "longer"),
        ({"instead": b'{"a":' * 5_000 + b"1" + b"}" * 5_000}, "otherwise"),
        ({"instead": b"[" + b"1," * 100_000 + b"1]"}, "otherwise"),
        ({"status": 302, "headers": [(b"location", b"http://169.254.169.254/")]}, "elsewhere"),
        ({"status": 500}, "500"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_words(
    alice: User, acme: Organisation, registry: Registry, given: dict[str, Any], word: str
):
    for name, value in given.items():
        setattr(registry, name, value)
    with pytest.raises(Unregistered) as refused:
        search_registry(actor=alice, organisation=acme, number=0, text="")
    assert word in refused.value.words
    assert len(registry.asked) == 1


def test_a_cursor_that_leads_nowhere_ends_the_list(
    alice: User, acme: Organisation, registry: Registry
):
    registry.servers = [REMOTE]
    for cursor in ("0", "x" * 501, "a\nb"):
        registry.cursor = cursor
        found = search_registry(actor=alice, organisation=acme, number=0, text="", cursor="0")
        assert found.cursor == ""
    registry.servers, registry.cursor = [], "7"
    assert search_registry(actor=alice, organisation=acme, number=0, text="").cursor == ""


def test_a_page_that_is_too_full_and_entries_that_are_none_hide_nothing_else(
    alice: User, acme: Organisation, registry: Registry
):
    told = [{"server": {"name": "no name"}}, {"server": REMOTE}, 7, *[{"server": REMOTE}] * 100]
    registry.instead = json.dumps({"servers": told}).encode()
    found = search_registry(actor=alice, organisation=acme, number=0, text="")
    assert (len(found.servers), found.unreadable) == (28, 2)


def test_another_server_than_was_asked_for_is_refused(
    alice: User, acme: Organisation, registry: Registry
):
    registry.instead = json.dumps({"server": {**REMOTE, "name": "com.example/other"}}).encode()
    with pytest.raises(Unregistered):
        read_registered(
            actor=alice, organisation=acme, number=0, name="com.example/tracker", version="1.2.0"
        )


@pytest.mark.parametrize("name", ["../../admin", "a/b/../../c", "a/b?x=1", "", "a/ü", "a/b\n"])
def test_no_name_leads_to_another_address_of_the_registry(
    alice: User, acme: Organisation, registry: Registry, name: str
):
    with pytest.raises(NotFound):
        read_registered(actor=alice, organisation=acme, number=0, name=name, version="1.2.0")
    assert not registry.asked


def test_a_registry_that_nobody_lists_is_not_connected_to(
    alice: User, acme: Organisation, registry: Registry, settings: Any
):
    settings.AGENTSITE_MCP_PRIVATE_HOSTS = []
    with pytest.raises(Unregistered) as refused:
        search_registry(actor=alice, organisation=acme, number=0, text="")
    assert "AGENTSITE_MCP_PRIVATE_HOSTS" in refused.value.words
    assert not registry.asked
    with pytest.raises(NotFound):
        search_registry(actor=alice, organisation=acme, number=1, text="")


def test_a_secret_that_the_registry_gives_away_is_never_used(
    client_of: ClientOf, alice: User, registry: Registry
):
    secret = {"name": "X-Key", "isSecret": True, "default": "published-secret", "isRequired": True}
    entry = {
        **REMOTE,
        "remotes": [{"type": "sse", "url": "https://x.example/", "headers": [secret]}],
    }
    registry.servers = [entry]
    (way,) = ways_of(read_server(entry))
    with pytest.raises(Invalid):
        fill(way, {})
    where = f"{reverse('mcpservers:registered')}?registry=0&name=com.example/tracker"
    assert "published-secret" not in client_of(alice).get(where).content.decode()


def test_a_secret_that_stands_fixed_in_a_header_sends_nobodys_work_to_who_published_it():
    secret = {"name": "Authorization", "isSecret": True, "value": "Bearer published-secret"}
    remote = {"type": "sse", "url": "https://x.example/", "headers": [secret]}
    (way,) = ways_of(read_server({**REMOTE, "remotes": [remote]}))
    assert "everybody knows" in way.refusal


def test_what_stands_in_a_secret_header_is_asked_for_as_one_and_no_default_of_it_is_used():
    header = {
        "name": "Authorization",
        "isSecret": True,
        "isRequired": True,
        "value": "Bearer {token}",
        "variables": {"token": {"default": "published-secret", "isRequired": True}},
    }
    remote = {"type": "sse", "url": "https://x.example/", "headers": [header]}
    (way,) = ways_of(read_server({**REMOTE, "remotes": [remote]}))
    assert [each.input.is_secret for each in way.questions] == [True]
    with pytest.raises(Invalid):
        fill(way, {})


@pytest.mark.parametrize(
    "entry",
    [
        {
            **REMOTE,
            "remotes": [
                {
                    "type": "sse",
                    "url": "https://x.example/{key}/mcp",
                    "variables": {"key": {"isSecret": True}},
                }
            ],
        },
        package(packageArguments=[{"type": "named", "name": "--key", "isSecret": True}]),
        package(
            packageArguments=[
                {
                    "type": "positional",
                    "value": "key={key}",
                    "variables": {"key": {"isSecret": True}},
                }
            ]
        ),
    ],
)
def test_a_secret_that_would_be_stored_where_others_read_it_is_not_asked_for(entry: dict[str, Any]):
    (way,) = ways_of(read_server(entry))
    assert "others would see it" in way.refusal


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "PATH",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "BASH_ENV",
        "https_proxy",
        "SSL_CERT_FILE",
    ],
)
def test_no_variable_of_a_registry_decides_what_else_a_program_loads(name: str):
    variable = {"name": name, "value": "/mnt/session/workspace/mine"}
    (way,) = ways_of(read_server(package(environmentVariables=[variable])))
    assert "what else is loaded" in way.refusal


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "NODE_ENV", "PYTHONUNBUFFERED", "DB_OPTIONS"])
def test_other_variables_of_a_registry_are_asked_for(name: str):
    (way,) = ways_of(read_server(package(environmentVariables=[{"name": name}])))
    assert (way.refusal, [each.label for each in way.questions]) == ("", [name])


def test_what_a_registry_sets_without_asking_is_seen_before_it_is_added(
    client_of: ClientOf, alice: User, registry: Registry
):
    remote = {
        "type": "sse",
        "url": "https://x.example/",
        "headers": [{"name": "X-Mode", "value": "write-everything"}],
    }
    registry.servers = [{**REMOTE, "remotes": [remote]}]
    where = f"{reverse('mcpservers:registered')}?registry=0&name=com.example/tracker"
    assert "X-Mode: write-everything" in client_of(alice).get(where).content.decode()


@pytest.mark.parametrize(
    "argument",
    [
        {"type": "positional", "value": "--privileged"},
        {"type": "positional", "default": "-v"},
        {"type": "named", "name": "-v", "value": "--privileged"},
        {"type": "named", "name": "-v", "value": "{x}", "variables": {"x": {"default": "-x"}}},
    ],
)
def test_no_argument_smuggles_an_option(argument: dict[str, Any]):
    (way,) = ways_of(read_server(package(packageArguments=[argument])))
    with pytest.raises(Invalid) as refused:
        fill(way, {})
    assert "option" in refused.value.message


def test_what_a_person_types_is_no_option_either():
    entry = package(packageArguments=[{"type": "positional"}], runtimeArguments=[{"type": "x"}])
    (way,) = ways_of(read_server(entry))
    with pytest.raises(Invalid):
        fill(way, {"argument.0": "--config=/etc/passwd"})
    assert fill(way, {"argument.0": "notes"}).arguments == ("notes",)


@pytest.mark.parametrize(
    "entry",
    [
        package(registryType="mcpb"),
        package(registryType="oci", identifier="example/notes:latest"),
        package(version="latest"),
        package(version=""),
        package(transport={"type": "streamable-http", "url": "http://localhost:1/"}),
        package(environmentVariables=[{"name": "LD_PRELOAD=x"}]),
        package(packageArguments=[{"type": "named", "name": "--a b"}]),
        {**REMOTE, "remotes": [{"type": "websocket", "url": "https://x.example/"}]},
        {**REMOTE, "remotes": [{"type": "sse", "url": "file:///etc/passwd"}]},
        {**REMOTE, "remotes": [{"type": "sse", "url": "https://x.example/{un closed"}]},
    ],
)
def test_a_way_that_is_none_here_says_why(entry: dict[str, Any]):
    (way,) = ways_of(read_server(entry))
    assert way.refusal


def test_an_address_that_was_filled_in_is_judged_like_any(
    alice: User, acme: Organisation, registry: Registry
):
    registry.servers = [REMOTE]
    for tenant in ("169.254.169.254/x?", "user@evil.example/", "localhost:80#"):
        with pytest.raises(Invalid):
            add_registered(
                actor=alice,
                organisation=acme,
                scope=PERSON,
                number=0,
                name="com.example/tracker",
                version="1.2.0",
                digest=read_server(REMOTE).digest,
                way=0,
                answers={"url.tenant": tenant, "header.Authorization.token": "x"},
            )
    assert not McpServer.objects.exists()


def test_nobody_who_is_not_signed_in_asks_a_registry(client: Client, registry: Registry):
    assert client.get(reverse("mcpservers:registry"), {"search": "x"}).status_code == 302
    assert not registry.asked


def test_a_terminal_searches_looks_and_adds(
    alice: User,
    acme: Organisation,
    registry: Registry,
    at_remote: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    def agent(*words: str) -> str:
        call_command("agent", "registry", *words, "--user", "alice")
        return capsys.readouterr().out

    assert agent("search", "tracker").startswith("com.example/tracker 1.2.0  Tracks what")
    shown = agent("show", "com.example/tracker")
    assert "  header.Authorization.token  required secret  token" in shown
    told = json.loads(agent("show", "com.example/tracker", "--json"))
    named = (told["name"], told["version"], told["digest"])
    answers = tmp_path / "answers"
    answers.write_text('{"url.host": 7}')
    with pytest.raises(CommandError, match="An answer is a text"):
        agent("add", *named, "--answers", str(answers))
    answers.write_text('{"url.host": "127.0.0.1", "header.Authorization.token": "a-secret"}')
    added = agent("add", *named, "--answers", str(answers), "--called", "mine")
    server = McpServer.objects.get()
    assert added == f"{server.uid}  mine\n"
    assert (server.owner, headers_of(server)["Authorization"]) == (alice, "Bearer a-secret")


def test_a_terminal_adds_for_nobody_else(
    mallory: User, elsewhere: Organisation, registry: Registry, at_remote: dict[str, Any]
):
    digest = read_server(at_remote).digest
    named = ("com.example/tracker", "1.2.0", digest)
    for more in (("--scope", "deployment"), ("--scope", "organisation", "--organisation", "Acme")):
        with pytest.raises(CommandError):
            call_command("agent", "registry", "add", *named, *more, "--user", "mallory")
    assert not McpServer.objects.exists()
