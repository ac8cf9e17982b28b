"""What the protocol says of requests at `/mcp`, by both eras: headers, codes, cursors, batches."""

from __future__ import annotations

import json

import pytest
from django.test import Client as Browser

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from conversations.models import Conversation
from tests.mcpdoor.posting import META, MODERN, Post, code_of, envelope, modern, posting, request

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def post(client: Browser, alice: User, acme: Organisation) -> Post:
    scopes = [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
    return posting(
        client, create_token(actor=alice, organisation=acme, name="t", scopes=scopes).secret
    )


def test_requests_of_the_latest_revision_are_answered_as_it_says(post: Post):
    told = post(request("server/discover", meta=envelope()), modern("server/discover"))
    found = json.loads(told.content)["result"]
    assert found["supportedVersions"] == [MODERN]
    assert f"{META}tasks" in found["capabilities"]["extensions"]
    assert found["_meta"][f"{META}serverInfo"]["name"] == "Agentsite"
    listed = post(request("tools/list", meta=envelope()), modern("tools/list"))
    assert json.loads(listed.content)["result"]["cacheScope"] == "private"
    for method, params, headers, status, code in (
        ("ping", {}, modern("ping"), 404, -32601),
        ("tasks/list", {}, modern("tasks/list"), 404, -32601),
        ("tools/list", {}, modern("tools/call"), 400, -32020),
        ("tools/list", {"cursor": "x"}, modern("tools/list"), 400, -32602),
        ("resources/list", {"cursor": "x"}, modern("resources/list"), 400, -32602),
        ("tools/call", {"name": "none"}, modern("tools/call", "none"), 400, -32602),
        ("tools/call", {"name": "none"}, modern("tools/call", "other"), 400, -32020),
        ("resources/read", {"uri": "a:b"}, modern("resources/read", "a:b"), 400, -32602),
        ("tasks/get", {"taskId": "t"}, modern("tasks/get", "t"), 400, -32021),
        ("tools/list", {}, {}, 400, -32020),
        ("tools/list", {}, {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        ("tools/list", {}, {**modern("tools/list"), "MCP-Protocol-Version": "1.0"}, 400, -32020),
    ):
        answer = post(request(method, params, envelope()), headers)
        assert code_of(answer, status) == code, (method, headers)
    unknown = {f"{META}protocolVersion": "1.0", f"{META}clientCapabilities": {}}
    asked = {**modern("tools/list"), "MCP-Protocol-Version": "1.0"}
    answer = post(request("tools/list", meta=unknown), asked)
    assert code_of(answer, 400) == -32022
    assert json.loads(answer.content)["error"]["data"]["supported"] == [MODERN]
    tasks = envelope(extensions={f"{META}tasks": {}})
    for named, code in (("t", -32602), ("other", -32020), ("", -32020)):
        asked = modern("tasks/get", named)
        assert code_of(post(request("tasks/get", {"taskId": "t"}, tasks), asked), 400) == code


def test_requests_of_the_revisions_before_are_answered_as_they_say(post: Post):
    about = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    met = json.loads(post(request("initialize", about)).content)["result"]
    assert met["protocolVersion"] == "2025-03-26"
    assert met["serverInfo"]["name"] == "Agentsite"
    assert json.loads(post(request("ping")).content)["result"] == {}
    for method, params, code in (
        ("nothing/here", {}, -32601),
        ("tasks/get", {"taskId": "t"}, -32601),
        ("tools/list", {"cursor": "x"}, -32602),
        ("resources/read", {"uri": "agentsite://conversations/none"}, -32002),
    ):
        assert code_of(post(request(method, params)), 200) == code, method
    said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for headers in (
        {},
        {"MCP-Protocol-Version": "2025-06-18"},
        modern("notifications/initialized"),
    ):
        answer = post(said, headers)
        assert (answer.status_code, answer.content) == (202, b"")
    for refused in (
        [request("ping"), request("ping")],
        {"jsonrpc": "1.0", "id": 7, "method": "ping"},
    ):
        assert post(refused).status_code == 400
    assert post(request("ping"), {"MCP-Protocol-Version": "1.0"}).status_code == 400
    call = post(request("tools/call", {"name": "list_agents", "arguments": {}}))
    assert call["Content-Type"].startswith("text/event-stream")
    plain = post(
        request("tools/call", {"name": "list_agents", "arguments": {}}),
        {"Accept": "application/json"},
    )
    assert json.loads(plain.content)["result"]["structuredContent"] == {"agents": []}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "start_conversation", "arguments": {"text": "a\0b"}}),
        ("tools/call", {"name": "start_conversation", "arguments": {"text": "a", "agent": "\0"}}),
        ("tools/call", {"name": "read_conversation", "arguments": {"conversation_id": "\0"}}),
        ("tools/call", {"name": "read_conversation", "arguments": {"\0": "a"}}),
        ("prompts/get", {"name": "a\0", "arguments": {"b": "c"}}),
        ("prompts/get", {"name": "a", "arguments": {"b": ["\0"]}}),
        ("resources/read", {"uri": "agentsite://conversations/\0"}),
    ],
)
def test_a_text_with_a_nul_comes_to_no_part_of_the_server(post: Post, method, params):
    """PostgreSQL neither holds nor looks for one; what it would say is no answer to a client."""
    told = post(request(method, params), {"Accept": "application/json"})
    assert code_of(told, 200) == -32602
    assert not Conversation.objects.exists()
