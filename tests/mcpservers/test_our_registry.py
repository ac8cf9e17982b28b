"""Our own registry: what an organisation lists, in the open interface's shape, to whom it belongs and
nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from harness.errors import Forbidden, Invalid
from mcpservers.actions.servers import add_server, change_server
from mcpservers.models import McpServer
from mcpservers.serverjson import read_server, ways_of
from tests.cast import ClientOf

pytestmark = pytest.mark.django_db

WHERE = "/v0.1/servers"
SECRET = "secret-of-the-server"
Scope = McpServer.Scope


@pytest.fixture
def listed(alice: User, acme: Organisation, settings: Any) -> McpServer:
    settings.AGENTSITE_BASE_URL = "https://agents.example.com"
    server = add_server(
        actor=alice,
        organisation=acme,
        scope=Scope.ORGANISATION,
        name="tracker",
        url=f"https://mcp.example.org/mcp?key={SECRET}",
        headers={"Authorization": f"Bearer {SECRET}"},
        look=False,
    )
    return change_server(actor=alice, server=server, listed=True)


@pytest.fixture
def ask(client: Client) -> Any:
    def get(
        who: User, organisation: Organisation, path: str = "", *scopes: TokenScope, **query: str
    ) -> Any:
        wanted = scopes or (TokenScope.CONVERSATIONS_READ,)
        made = create_token(actor=who, organisation=organisation, name="t", scopes=wanted)
        headers: Any = {"Authorization": f"Bearer {made.secret}"}
        return client.get(f"{WHERE}{path}", query, headers=headers)

    return get


def test_members_find_what_is_listed_and_no_secret(
    ask: Any, bob: User, acme: Organisation, listed: McpServer
):
    answer = ask(bob, acme)
    (entry,) = answer.json()["servers"]
    assert answer.json()["metadata"] == {"count": 1}
    told = entry["server"]
    assert (told["name"], told["remotes"][0]["url"]) == (
        "com.example.agents/tracker",
        "https://mcp.example.org/mcp",
    )
    assert told["remotes"][0]["headers"] == [
        {"name": "Authorization", "isRequired": True, "isSecret": True}
    ]
    official = entry["_meta"]["io.modelcontextprotocol.registry/official"]
    assert (official["status"], official["isLatest"]) == ("active", True)
    assert SECRET not in answer.content.decode()
    # What we say can be read by whoever reads registries, ourselves among them.
    (way,) = ways_of(read_server(told))
    assert not way.refusal
    for version in ("latest", told["version"]):
        one = ask(bob, acme, f"/com.example.agents%2Ftracker/versions/{version}")
        assert one.json() == entry
    assert ask(bob, acme, "/com.example.agents%2Ftracker/versions").json()["servers"] == [entry]
    assert ask(bob, acme, "/com.example.agents%2Ftracker/versions/9.9.9").status_code == 404


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/s/3f9aK2mQ8xZ1pL7v/mcp", "/s/{key}/mcp"),
        ("/123e4567-e89b-12d3-a456-426614174000/sse", "/{key}/sse"),
        ("/token/hunter2/mcp", "/token/{key}/mcp"),
        ("/mcp/key=hunter2", "/mcp/{key}"),
        ("/a/AbCdEfGhIjKlMnOpQrStUv/b/sk-0123456789abcdef", "/a/{key}/b/{key2}"),
        ("/sk_live_4242abcd/mcp", "/{key}/mcp"),
        ("/access-tokens/abc/mcp", "/access-tokens/{key}/mcp"),
        ("/s/QWxhZGRpbjpvcGVu/mcp", "/s/{key}/mcp"),
        ("/s/123456789012345/mcp", "/s/{key}/mcp"),
        ("/internationalisation-service/v2025-11-25/mcp", None),
        ("/MyCompanyServer/skills/mcp", None),
    ],
)
def test_a_key_in_the_path_of_an_address_is_asked_of_whoever_adds_it(
    ask: Any,
    bob: User,
    alice: User,
    acme: Organisation,
    listed: McpServer,
    path: str,
    shown: str | None,
):
    url = f"https://keyed.example.org{path}"
    change_server(actor=alice, server=listed, url=url)
    change_server(actor=alice, server=listed, listed=True)
    (entry,) = ask(bob, acme).json()["servers"]
    (remote,) = entry["server"]["remotes"]
    assert remote["url"] == f"https://keyed.example.org{shown or path}"
    listed.refresh_from_db()
    assert listed.url == url
    # Where an address is seen by others no secret of it is taken, by whoever reads registries as we do.
    (way,) = ways_of(read_server(entry["server"]))
    assert bool(way.refusal) is (shown is not None)
    assert [each.input.is_secret for each in way.questions] == [True] * remote["url"].count("{")


def test_what_is_not_there_is_said_as_programs_read_it(ask: Any, client: Client):
    for path in ("/v0.1/nothing", "/v0.1/servers/one", "/v0.1/servers/"):
        for answer in (client.get(path), client.post(path)):
            assert (answer.status_code, answer["Content-Type"]) == (404, "application/json"), path
            assert answer.json()["error"]["code"] == "not_found"


def test_mallory_sees_nothing_and_nobody_without_a_token_does(
    ask: Any,
    client: Client,
    mallory: User,
    elsewhere: Organisation,
    bob: User,
    acme: Organisation,
    listed: McpServer,
):
    assert ask(mallory, elsewhere).json()["servers"] == []
    path = "/com.example.agents%2Ftracker/versions/latest"
    assert ask(mallory, elsewhere, path).status_code == 404
    assert client.get(WHERE).status_code == 401
    assert ask(bob, acme, "", TokenScope.AGENTS_MANAGE).status_code == 403


def test_only_what_is_in_use_and_marked_stands_there(
    ask: Any, alice: User, bob: User, staff: User, acme: Organisation, listed: McpServer
):
    given: dict[str, Any] = {"organisation": acme, "look": False}
    quiet = add_server(
        actor=alice, scope=Scope.ORGANISATION, name="quiet", url="https://q.example/", **given
    )
    own = add_server(actor=bob, scope=Scope.PERSON, name="own", url="https://o.example/", **given)
    everybodys = add_server(
        actor=staff, scope=Scope.DEPLOYMENT, name="all", url="https://a.example/", **given
    )

    def names() -> list[str]:
        return [each["server"]["title"] for each in ask(bob, acme).json()["servers"]]

    change_server(actor=staff, server=everybodys, listed=True)
    assert names() == ["all", "tracker"]
    with pytest.raises(Invalid):
        change_server(actor=bob, server=own, listed=True)
    with pytest.raises(Forbidden):
        change_server(actor=bob, server=quiet, listed=True)
    change_server(actor=alice, server=listed, enabled=False)
    assert names() == ["all"]
    # At another address it is another server, which somebody lists anew.
    change_server(actor=alice, server=listed, enabled=True, url="https://other.example.org/")
    assert names() == ["all"]


def test_a_program_that_was_put_there_by_hand_is_not_listed(alice: User, acme: Organisation):
    program = add_server(
        actor=alice,
        organisation=acme,
        scope=Scope.ORGANISATION,
        name="local",
        command="/opt/tools/server",
        look=False,
    )
    with pytest.raises(Invalid):
        change_server(actor=alice, server=program, listed=True)


def test_pages_searches_and_moments(
    ask: Any, alice: User, acme: Organisation, listed: McpServer, settings: Any
):
    for number in range(5):
        server = add_server(
            actor=alice,
            organisation=acme,
            scope=Scope.ORGANISATION,
            name=f"n{number}",
            url=f"https://n{number}.example/",
            look=False,
        )
        change_server(actor=alice, server=server, listed=True)
    names: list[str] = []
    query = {"limit": "4"}
    while True:
        page = ask(alice, acme, "", **query).json()
        names += [each["server"]["title"] for each in page["servers"]]
        if "nextCursor" not in page["metadata"]:
            break
        query["cursor"] = page["metadata"]["nextCursor"]
    assert names == ["n0", "n1", "n2", "n3", "n4", "tracker"]
    assert ask(alice, acme, "", search="TRACK").json()["metadata"]["count"] == 1
    assert ask(alice, acme, "", version="latest").json()["metadata"]["count"] == 6
    assert ask(alice, acme, "", version="0.0.1").json()["metadata"]["count"] == 0
    later = {"updated_since": "2100-01-01T00:00:00Z"}
    assert ask(alice, acme, "", **later).json()["servers"] == []
    for wrong in (
        {"updated_since": "yesterday"},
        {"cursor": "x"},
        {"limit": "0"},
        {"surprise": "1"},
    ):
        assert ask(alice, acme, "", **wrong).status_code == 422, wrong


def test_its_page_lists_it_and_takes_it_out_again(
    client_of: ClientOf, alice: User, bob: User, listed: McpServer
):
    switch = reverse("mcpservers:server-switch", args=[listed.uid])
    assert client_of(bob).post(switch, {"listed": "0"}).status_code == 403
    client_of(alice).post(switch, {"listed": "0"})
    listed.refresh_from_db()
    assert listed.listed is False
    page = client_of(alice).get(reverse("mcpservers:server", args=[listed.uid])).content.decode()
    assert 'name="listed" value="1"' in page
