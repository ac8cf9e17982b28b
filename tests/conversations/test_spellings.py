"""A conversation's id in the spelling that the public API also takes (`wire.ids`) means it at every door."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.api.authentication import caller_with
from accounts.models import TokenScope
from agui.following import find_or_begin
from harness.errors import NotFound
from mcpdoor.tools import Principal, find
from mcpservers.models import McpServer
from terminal.local import LocalDoor
from tests.architecture.sources import PRODUCT, nodes_of
from wire.ids import OTHER, SESSION

DOORS = ("api/", "v1/", "agui/", "mcpdoor/", "terminal/")
ANSWERED = {
    "api/consumers.py": "spelled anew as the socket opens",
    "v1/streams.py": "of a thread, which has two spellings more",
    "agui/below.py": "an id that an event holds",
}
"""Who looks for an id otherwise, and why that does."""


@pytest.fixture
def secret(alice, acme) -> str:
    scopes = TokenScope.values
    return create_token(actor=alice, organisation=acme, name="t", scopes=scopes).secret


@pytest.fixture
def spelled(converse) -> Any:
    conversation, _script = converse()
    return SimpleNamespace(row=conversation, uid=OTHER + conversation.uid.removeprefix(SESSION))


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/v1/sessions/{uid}", "/api/conversations/{uid}"])
def test_the_doors_over_http_know_it(secret, spelled, address):
    answer = Client(headers={"x-api-key": secret}).get(address.format(uid=spelled.uid))
    assert answer.json()["id"] == spelled.row.uid


@pytest.mark.django_db
def test_a_conversations_own_servers_are_listed_by_it(secret, alice, acme, spelled):
    McpServer.objects.create(
        organisation=acme, conversation=spelled.row, name="own", url="https://mcp.example.org/"
    )
    query = {"conversation_id": spelled.uid}
    answer = Client(headers={"x-api-key": secret}).get("/api/mcp-servers", query)
    assert [one["name"] for one in answer.json()] == ["own"]


@pytest.mark.django_db
def test_clients_of_mcp_and_front_ends_know_it(secret, alice, acme, spelled):
    assert find(Principal(alice, acme), spelled.uid) == spelled.row
    caller = caller_with(secret)
    assert caller is not None
    assert find_or_begin(caller, spelled.uid, "", "") == spelled.row
    begun = find_or_begin(caller, f"{OTHER}of-a-front-end", "", "")
    assert begun != spelled.row
    assert find_or_begin(caller, f"{OTHER}of-a-front-end", "", "") == begun


@pytest.mark.django_db
def test_the_command_line_knows_it(alice, acme, spelled, capsys):
    assert list(LocalDoor(alice, acme).export(spelled.uid, "markdown"))
    call_command("agent", "receipt", "make", spelled.uid, "--user", alice.username)
    assert spelled.row.uid in capsys.readouterr().out
    with pytest.raises(NotFound):
        LocalDoor(alice, acme).export(f"{OTHER}nobodys", "markdown")


def test_no_door_looks_for_it_in_one_spelling_alone():
    found = {
        path.as_posix()
        for path in PRODUCT
        if path.as_posix().startswith(DOORS)
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and ast.unparse(node).startswith("Conversation.objects")
        and any(keyword.arg == "uid" for keyword in node.keywords)
    }
    assert found == set(ANSWERED), "use Conversation.objects.named"
