"""`/api/memories`: a program does what the memory page does, and never says yes in its person's place."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from conversations.actions.messages import post_message
from memory.access import Author
from memory.actions.remembering import Source, own_store, remember
from memory.actions.stores import ORGANIZATION, create_store
from memory.models import AuthorKind, Memory, MemoryVersion
from memory.searching import search_memories, stores_of
from providers.scripted import reply
from recall.models import MemoryOff
from tests.conversations.conftest import rested

pytestmark = pytest.mark.django_db
READ, WRITE, DECIDE = (
    TokenScope.CONVERSATIONS_READ,
    TokenScope.CONVERSATIONS_WRITE,
    TokenScope.APPROVALS_DECIDE,
)


class Program:
    def __init__(self, user, organisation, *scopes: TokenScope) -> None:
        issued = create_token(
            actor=user, organisation=organisation, name="Program", scopes=scopes or (READ, WRITE)
        )
        self.token = issued.token
        self._client = Client(headers={"Authorization": f"Bearer {issued.secret}"})

    def __call__(self, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        data = "" if body is None else json.dumps(body)
        answer = self._client.generic(
            method, f"/api/memories{path}", data, content_type="application/json"
        )
        return answer.status_code, json.loads(answer.content)

    def lines(self, path: str) -> list[Any]:
        answer = self._client.get(f"/api/memories{path}")
        assert answer["Content-Type"] == "application/x-ndjson"
        return [json.loads(line) for line in b"".join(answer).splitlines()]


@pytest.fixture
def program(alice, acme) -> Program:
    return Program(alice, acme)


@pytest.fixture
def strangers(alice, acme) -> Memory:
    """What an agent learned where strangers wrote; it waits for a yes."""
    return remember(
        actor=alice,
        store=own_store(actor=alice, organisation=acme),
        text="Coffee is paid for by everybody.",
        source=Source(untrusted=True),
        author=Author(AuthorKind.SESSION, "sesn_1"),
    ).memory


def agents_find(user, question: str) -> list[str]:
    found = search_memories(user, question, stores_of(user), for_agents=True)
    return [hit.memory.content for hit in found.hits]


def test_something_is_remembered_once_found_put_right_and_forgotten(program, alice):
    body = {"text": "The office of Acme is in Lisbon.", "key": "office"}
    status, made = program("POST", "", body)
    assert (status, made["new"], made["superseded"]) == (201, True, None)
    assert program("POST", "", body) == (200, {**made, "new": False})
    one = f"/{made['memory']['id']}"

    status, found = program("GET", "/search?q=Where+is+the+office+of+Acme%3F")
    assert status == 200
    assert [hit["memory"]["id"] for hit in found["hits"]] == [made["memory"]["id"]]
    assert "offic" in " ".join(found["hits"][0]["words"])
    assert found["hits"][0]["likeness"] is None
    assert not found["low_confidence"]

    status, moved = program("POST", "", {"text": "The office is in Oslo.", "key": "office"})
    assert (status, moved["superseded"]) == (201, made["memory"]["id"])
    assert program("GET", one)[1]["superseded_by"] == moved["memory"]["id"]
    assert program("GET", one)[1]["valid_until"] is not None

    status, right = program("PATCH", one, {"text": "It was in Porto.", "pinned": True})
    assert (status, right["content"], right["pinned"]) == (200, "It was in Porto.", True)
    assert [version["operation"] for version in right["versions"]] == ["modified", "created"]
    assert {version["by"] for version in right["versions"]} == {f"api_actor:{program.token.uid}"}

    assert program("DELETE", one) == (200, {"forgotten": 1})
    assert program("GET", one)[0] == 404
    assert not MemoryVersion.objects.filter(content__contains="Porto").exists()
    assert program("DELETE", one)[0] == 404


def test_lists_are_pages_that_words_and_a_store_narrow(program, alice, acme):
    shared = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    names = ("Berths", "Cranes", "Ferries")
    ids = [program("POST", "", {"text": f"{name} are at the quay."})[1] for name in names]
    ids = [made["memory"]["id"] for made in ids]
    program("POST", "", {"text": "The quay is closed on Sunday.", "store_id": shared.uid})
    client = program._client
    first = client.get("/api/memories?q=quay&limit=3")
    second = client.get(first["Link"].split(">")[0][1:])
    listed = [each["id"] for each in (*first.json(), *second.json())]
    assert (len(listed), listed[1:]) == (4, ids[::-1])
    assert "Link" not in second
    assert [each["id"] for each in program("GET", "?q=cranes")[1]] == [ids[1]]
    (ours,) = program("GET", f"?store_id={shared.uid}")[1]
    assert (ours["scope"], ours["store"]) == ("organization", shared.uid)
    stores = program("GET", "/stores")[1]
    assert [(each["scope"], each["memories"]) for each in stores] == [
        ("person", 3),
        ("organization", 1),
    ]


def test_everything_of_ones_own_is_exported_and_forgotten_and_what_is_shared_stays(
    program, alice, acme
):
    shared = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    mine = program("POST", "", {"text": "I write short."})[1]["memory"]
    program("POST", "", {"text": "We write short.", "store_id": shared.uid})
    (row,) = program.lines("/export")
    assert (row["id"], row["versions"][0]["content"]) == (mine["id"], "I write short.")
    assert program("POST", "/forget", {"all": True}) == (200, {"forgotten": 1})
    assert program.lines("/export") == []
    assert Memory.objects.get().store == shared


def test_of_several_all_are_forgotten_or_none(program):
    made = [program("POST", "", {"text": text})[1]["memory"]["id"] for text in ("Tea", "Coffee")]
    assert program("POST", "/forget", {"ids": [*made, "mem_1"]})[0] == 404
    assert Memory.objects.count() == 2
    assert program("POST", "/forget", {"ids": [*made, made[0]]}) == (200, {"forgotten": 2})


def test_a_program_confirms_only_where_it_may_decide(program, strangers, alice, acme):
    one = f"/{strangers.uid}"
    assert program("GET", one)[1]["waits"]
    assert program("POST", f"{one}/confirm")[0] == 403
    assert program("PATCH", one, {"text": "Coffee is free."})[1]["waits"]
    assert agents_find(alice, "coffee") == []
    decider = Program(alice, acme, DECIDE)
    read = program("GET", one)[1]["version_uid"]
    status, refused = decider("POST", f"{one}/confirm", {"version_uid": strangers.version_uid})
    assert (status, refused["error"]["code"]) == (409, "memory_changed")
    assert decider("POST", f"{one}/confirm", {})[0] == 422
    assert decider("POST", f"{one}/confirm", {"version_uid": read})[1]["waits"] is False
    assert agents_find(alice, "coffee") == ["Coffee is free."]


def test_a_service_account_never_confirms_not_even_by_putting_right(alice, acme):
    account = create_service_account(actor=alice, organisation=acme, name="Robot")
    waiting = remember(
        actor=account,
        store=own_store(actor=account, organisation=acme),
        text="Coffee is paid for.",
        source=Source(untrusted=True),
        author=Author(AuthorKind.SESSION, "sesn_1"),
    ).memory
    issued = create_token(
        actor=alice,
        organisation=acme,
        name="Robot",
        scopes=(READ, WRITE, DECIDE),
        user=account,
    )
    client = Client(headers={"Authorization": f"Bearer {issued.secret}"})
    one = f"/api/memories/{waiting.uid}"
    body = {"version_uid": waiting.version_uid}
    said = client.post(f"{one}/confirm", body, content_type="application/json")
    assert said.status_code == 403
    right = client.patch(one, {"text": "Coffee is free."}, content_type="application/json")
    assert right.json()["waits"]
    waiting.refresh_from_db()
    assert waiting.confirmed_at is None


def test_memory_is_switched_off_and_on(program, alice):
    assert program("GET", "/switch") == (200, {"on": True})
    assert program("PUT", "/switch", {"on": False}) == (200, {"on": False})
    assert MemoryOff.objects.filter(user=alice).exists()
    assert program("PUT", "/switch", {"on": True}) == (200, {"on": True})


@pytest.mark.django_db(transaction=True)
def test_why_something_was_recalled_is_told_to_its_owner_and_left_out_on_her_word(
    converse, program, alice, bob, acme
):
    program("POST", "", {"text": "The office of Acme is in Lisbon."})
    conversation, _script = converse([reply("In Lisbon.")])
    post_message(actor=alice, conversation=conversation, text="Where is the office of Acme?")
    rested(conversation)
    path = f"/api/conversations/{conversation.uid}/recalled"
    (told,) = program._client.get(path).json()
    assert told["hits"][0]["memory"]["content"] == "The office of Acme is in Lisbon."
    assert told["hits"][0]["words"]
    assert (told["hits"][0]["likeness"], told["passages"]) == (None, [])
    assert Program(bob, acme)._client.get(path).status_code == 404
    assert program._client.delete(path).json() == {"forgotten": 0}
    conversation.refresh_from_db()
    assert not conversation.features.memory


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "", {}, "text"),
        ("POST", "", {"text": " "}, "text"),
        ("POST", "", {"text": "x", "kind": "rumour"}, "kind"),
        ("POST", "", {"text": "x", "store_id": "memstore_1"}, "store_id"),
        ("POST", "", {"text": "x", "colour": "red"}, "colour"),
        ("GET", "?store_id=memstore_1", None, "store_id"),
        ("GET", "?limit=0", None, "limit"),
        ("GET", "/search", None, "q"),
        ("GET", "/search?q=" + "x" * 501, None, "q"),
        ("GET", "/search?q=tea&at=yesterday", None, "at"),
        ("GET", "/search?q=tea&at=2026-01-31", None, "at"),
        ("POST", "/forget", {}, "ids"),
        ("POST", "/forget", {"ids": ["mem_1"], "all": True}, "ids"),
        ("PUT", "/switch", {"on": "off"}, "on"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_lost(program, method, path, body, field):
    program("POST", "", {"text": "Tea is green."})
    status, refused = program(method, path, body)
    assert (status, refused["error"]["field"]) == (422, field)
    assert Memory.objects.count() == 1


def test_what_was_true_then_is_found_as_well_as_what_is_true_now(program):
    for city in ("Lisbon", "Oslo"):
        body = {"text": f"The office of Acme is in {city}.", "key": "office"}
        assert program("POST", "", body)[0] == 201
    before, now = Memory.objects.order_by("pk")
    assert now.valid_from
    moment = now.valid_from - timedelta(microseconds=1)
    asked = f"/search?q=Where+is+the+office+of+Acme%3F&at={quote(moment.isoformat())}"
    (hit,) = program("GET", asked)[1]["hits"]
    assert (hit["memory"]["id"], hit["memory"]["valid_until"] is None) == (before.uid, False)
    every = program("GET", "/search?q=office+of+Acme")[1]["hits"]
    assert [each["memory"]["id"] for each in every] == [now.uid, before.uid]


def test_a_secret_is_not_remembered(program):
    status, refused = program("POST", "", {"text": "password=hunter2-hunter2"})
    assert (status, refused["error"]["code"]) == (422, "holds_secret")


def test_mallory_and_bob_reach_nothing_of_alices(program, alice, bob, mallory, acme, elsewhere):
    made = program("POST", "", {"text": "The office of Acme is in Lisbon."})[1]["memory"]
    one, store = f"/{made['id']}", made["store"]
    for user, organisation in ((bob, acme), (mallory, elsewhere)):
        other = Program(user, organisation, READ, WRITE, DECIDE)
        assert other("GET") == (200, [])
        assert other("GET", "/search?q=office+of+Acme")[1]["hits"] == []
        assert store not in json.dumps(other("GET", "/stores")[1])
        assert other("GET", f"?store_id={store}")[0] == 422
        for method, path, body in (
            ("GET", one, None),
            ("PATCH", one, {"text": "Mine."}),
            ("DELETE", one, None),
            ("POST", f"{one}/confirm", None),
            ("POST", "/forget", {"ids": [made["id"]]}),
        ):
            assert other(method, path, body)[0] == 404
        assert other("POST", "", {"text": "x", "store_id": store})[0] == 422
        assert other("POST", "/forget", {"all": True}) == (200, {"forgotten": 0})
        assert other.lines("/export") == []
    assert Memory.objects.get().content == "The office of Acme is in Lisbon."


def test_bob_reads_what_is_shared_and_may_not_change_it(program, alice, bob, acme):
    shared = create_store(actor=alice, organisation=acme, name="Ours", scope=ORGANIZATION)
    made = program("POST", "", {"text": "The quay is closed.", "store_id": shared.uid})[1]["memory"]
    his = Program(bob, acme)
    assert his("GET", f"/{made['id']}")[1]["may_write"] is False
    assert his("PATCH", f"/{made['id']}", {"pinned": True})[0] == 403
    assert his("DELETE", f"/{made['id']}")[0] == 403
    assert his("POST", "/forget", {"all": True}) == (200, {"forgotten": 0})
