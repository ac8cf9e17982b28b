"""What is unread, for whom, and how that ends."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agents.models import Environment
from conversations.actions.sharing import share_conversation
from conversations.log import append
from conversations.models import Conversation, ShareRole
from harness.content import Text
from harness.errors import NotFound
from harness.events import (
    RequiresAction,
    RetriesExhausted,
    SessionStatusIdle,
    SessionStatusRunning,
    StopReason,
    UserMessage,
)
from harness.history import Entry
from keeping.actions.many import change_many
from keeping.actions.seen import mark_as_seen
from keeping.models import SeenMark
from keeping.unread import is_unread, with_unread
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, many, talk


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment, title="Berths")


def unread(user: User) -> set[str]:
    rows = with_unread(Conversation.objects.visible_to(user), user)
    return {row.uid for row in rows if is_unread(row)}


def marked(client: Client, address: str) -> set[str]:
    """Ids of the conversations that a page marks."""
    html = client.get(address).content.decode()
    links = re.findall(r'(?:id="recent-|id="row-)(\w+)"(?:(?!</li>).)*?data-unread', html, re.S)
    return set(links)


@pytest.mark.parametrize(
    "reason", [RequiresAction(event_ids=("sevt_1",)), RetriesExhausted()], ids=lambda one: one.type
)
def test_a_question_and_a_failure_are_news_and_what_a_person_says_is_none(
    alice: User, conversation: Conversation, reason: StopReason
):
    append(conversation.pk, [Entry.of(UserMessage(content=(Text(text="Hi"),)))], actor=alice)
    append(conversation.pk, [Entry.of(SessionStatusRunning())])
    assert unread(alice) == set()
    append(conversation.pk, [Entry.of(SessionStatusIdle(stop_reason=reason))])
    assert unread(alice) == {conversation.uid}


def test_what_came_to_rest_is_unread_until_it_is_seen_and_again_after_the_next_answer(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    assert marked(client, "/") == set()
    talk(conversation, "How deep?", "Four metres.")
    for address in ("/", "/?q=metres", "/settings/"):
        assert marked(client, address) == {conversation.uid}, address
    assert "Unread:" in client.get("/").content.decode()
    conversation.refresh_from_db()
    mark_as_seen(actor=alice, conversation=conversation, seq=conversation.last_seq)
    assert marked(client, "/") == set()
    talk(conversation, "How wide?", "Nine.")
    assert marked(client, "/") == {conversation.uid}


def test_a_list_that_asks_again_hears_that_something_is_unread_no_more(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    talk(conversation, "How deep?", "Four metres.")
    client = client_of(alice)
    known = re.search(r"known=(\w+)", client.get("/recent/").content.decode())
    assert known is not None
    address = f"/recent/?known={known[1]}"
    assert client.get(address).status_code == 204
    mark_as_seen(actor=alice, conversation=conversation)
    assert client.get(address).status_code == 200


def test_a_mark_only_grows_and_never_beyond_the_log(alice: User, conversation: Conversation):
    talk(conversation, "How deep?", "Four metres.")
    assert mark_as_seen(actor=alice, conversation=conversation, seq=10**9) == 4
    assert mark_as_seen(actor=alice, conversation=conversation, seq=2) == 4
    talk(conversation, "How wide?", "Nine.")
    assert unread(alice) == {conversation.uid}
    assert SeenMark.objects.count() == 1


def test_who_reads_by_a_share_has_a_mark_of_her_own(
    alice: User, bob: User, conversation: Conversation, client_of: ClientOf
):
    talk(conversation, "How deep?", "Four metres.")
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    mark_as_seen(actor=alice, conversation=conversation)
    assert (unread(alice), unread(bob)) == (set(), {conversation.uid})
    assert marked(client_of(bob), "/?shared=1") == {conversation.uid}
    mark_as_seen(actor=bob, conversation=conversation)
    assert marked(client_of(bob), "/?shared=1") == set()


def test_the_first_page_says_how_much_is_shared_with_her(
    alice: User, bob: User, mallory: User, conversation: Conversation, client_of: ClientOf
):
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    said = 'Shared with me <span class="badge">1</span>'
    assert said in client_of(bob).get("/").content.decode()
    for other in (alice, mallory):
        assert said not in client_of(other).get("/").content.decode()


@pytest.mark.parametrize("name", ["bob", "mallory"])
def test_a_stranger_marks_nothing(
    name: str, request: pytest.FixtureRequest, conversation: Conversation, client_of: ClientOf
):
    stranger = request.getfixturevalue(name)
    talk(conversation, "How deep?", "Four metres.")
    with pytest.raises(NotFound):
        mark_as_seen(actor=stranger, conversation=conversation)
    address = f"/api/conversations/{conversation.uid}/seen"
    answer = client_of(stranger).post(address, {}, "application/json")
    assert answer.status_code in {401, 403, 404}
    assert not SeenMark.objects.exists()


def test_several_are_marked_as_seen_at_once(alice: User, conversation: Conversation):
    rows = many(conversation, 3, 0)
    for row in rows:
        talk(row, "How deep?", "Four metres.")
    change_many(actor=alice, uids=[row.uid for row in rows[:2]], act="seen")
    assert unread(alice) == {rows[2].uid}


def test_programs_read_and_set_the_mark(
    alice: User, acme: Organisation, conversation: Conversation
):
    scopes = [TokenScope.CONVERSATIONS_WRITE, TokenScope.CONVERSATIONS_READ]
    secret = create_token(actor=alice, organisation=acme, name="t", scopes=scopes).secret
    client = Client(headers={"authorization": f"Bearer {secret}"})
    talk(conversation, "How deep?", "Four metres.")

    def is_shown_unread() -> bool:
        (row,) = client.get("/api/conversations").json()
        return bool(row["unread"])

    address = f"/api/conversations/{conversation.uid}/seen"
    assert is_shown_unread()
    for given, seen in (({"seq": 1}, 1), ({}, 4)):
        answer = client.post(address, given, "application/json")
        assert (answer.status_code, answer.json()) == (200, {"seen_seq": seen})
    assert not is_shown_unread()
    assert client.post(address, {"seq": -1}, "application/json").status_code == 422


@pytest.mark.parametrize("address", ["/", "/?q=Number", "/recent/", "/api/conversations"])
def test_marks_take_no_query_more_for_more_conversations(
    alice: User, conversation: Conversation, client_of: ClientOf, address: str
):
    client = client_of(alice)

    def ask() -> int:
        with CaptureQueriesContext(connection) as found:
            assert client.get(address).status_code == 200
        return len(found)

    talk(many(conversation, 2, 0)[0], "How deep?", "Number four.")
    ask()
    few = ask()
    for row in many(conversation, 8, 0):
        talk(row, "How deep?", "Number four.")
    assert ask() == few
