"""Search over titles and messages."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.actions.conversations import delete_conversation, rename_conversation
from conversations.log import append
from conversations.models import Conversation, Event, SearchEntry
from conversations.search import (
    ENTRY_LIMIT,
    QUERY_LIMIT,
    hits,
    index_event,
    marked,
    matching,
    words_of,
)
from harness.content import Text
from harness.errors import Invalid
from harness.events import MessageEdited, UserMessage
from harness.history import Entry
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, talk
from tests.properties import examples

HOSTILE = [
    '"',
    "'",
    "*",
    '"*',
    "OR",
    "a OR",
    "NEAR(",
    "a AND NOT b",
    "title: x",
    "{text} : a",
    "^a",
    "a + b",
    "-",
    "()",
    "%",
    "_",
    "\\",
    "a\0b",
    "😀",
    "👩‍👩‍👧",
    "\ud800",
    "'; DROP TABLE conversations_searchentry; --",
    ":*",
    "a:*",
    "&|!",
]


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent(), environment, title="Émile’s résumé")


def found(user: User, text: str) -> list[Conversation]:
    return list(matching(Conversation.objects.visible_to(user), words_of(text)))


def test_words_are_found_in_titles_questions_and_answers(alice: User, conversation: Conversation):
    talk(conversation, "Where is the harbour?", "Behind the lighthouse.")
    for text in ("résumé", "harbour", "lighthouse", "HARBOUR", "where the"):
        assert found(alice, text) == [conversation], text
    assert found(alice, "harbour lighthouse") == [], "both must stand in one message"
    assert found(alice, "airport") == []


def test_the_beginning_of_a_word_is_enough_and_accents_do_not_matter(
    alice: User, conversation: Conversation
):
    for text in ("resu", "émi", "emile"):
        assert found(alice, text) == [conversation], text


def test_words_of_scripts_without_spaces_are_found_in_the_middle(
    alice: User, conversation: Conversation
):
    talk(conversation, "日本語のドキュメントを要約する", "ภาษาไทย")
    for text in ("ドキュメント", "要約", "ไทย"):
        assert found(alice, text) == [conversation], text


def test_signs_are_found_as_they_stand(alice: User, conversation: Conversation):
    talk(conversation, "Ship it 🚀 now", "foo-bar c++ a_b")
    for text in ("🚀", "foo-bar", "c++", "a_b", "ship 🚀"):
        assert found(alice, text) == [conversation], text
    assert found(alice, "🛰") == []


DEAR = {
    "marks in the wrong order": "\u0301" * 50_000 + "\u0323" * 49_000,
    "words in a row": "a_" * 49_500,
    "homes": "~/" * 49_500,
    "comments without an end": "<!--" * 24_700,
}
"""PostgreSQL takes a minute for each, if it is given them."""


@pytest.mark.parametrize("name", DEAR)
def test_a_text_that_is_dear_to_read_is_kept_and_found_like_any_other(
    name: str, alice: User, conversation: Conversation
):
    began = time.monotonic()
    talk(conversation, f"harbour {DEAR[name]}", "yes")
    assert time.monotonic() - began < 10
    assert found(alice, "harbour") == [conversation]


@pytest.mark.parametrize("text", ["path/to", "to/file", "a_b", "example", "b@example.org", "flag"])
def test_words_between_signs_are_found(text: str, alice: User, conversation: Conversation):
    talk(conversation, "Look into /path/to/file.txt for a_b@example.org, --flag=1", "yes")
    assert found(alice, text) == [conversation]


def test_nothing_to_look_for_finds_everything(alice: User, conversation: Conversation):
    for text in ("", "  ", "\0", "\n\t"):
        assert found(alice, text) == [conversation]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_query_syntax_is_an_error(text: str, alice: User, conversation: Conversation):
    talk(conversation, "a plain question", "a plain answer")
    found(alice, text)
    hits([conversation], words_of(text))


def test_operators_are_words(alice: User, conversation: Conversation):
    talk(conversation, "apples", "pears")
    assert found(alice, "apples OR nothing") == []
    assert found(alice, "apples NOT pears") == []


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.text(max_size=QUERY_LIMIT))
def test_whatever_is_typed_is_answered(text: str, alice: User, conversation: Conversation):
    found(alice, text)
    hits([conversation], words_of(text))


def test_a_search_may_be_as_long_as_the_limit_and_not_one_more(
    alice: User, conversation: Conversation
):
    assert found(alice, "x" * QUERY_LIMIT) == []
    with pytest.raises(Invalid) as refused:
        found(alice, "x" * (QUERY_LIMIT + 1))
    assert refused.value.field == "q"


def test_a_former_title_is_no_longer_found(alice: User, conversation: Conversation):
    rename_conversation(actor=alice, conversation=conversation, title="Curriculum")
    assert found(alice, "curriculum") == [conversation]
    assert found(alice, "résumé") == []


def test_mallory_and_bob_find_nothing_of_alices(
    bob: User, mallory: User, conversation: Conversation
):
    talk(conversation, "secret harbour", "yes")
    assert found(bob, "harbour") == []
    assert found(mallory, "harbour") == []


def test_deleting_a_conversation_takes_it_out_of_the_index(alice: User, conversation: Conversation):
    talk(conversation, "harbour", "lighthouse")
    delete_conversation(actor=alice, conversation=conversation)
    assert not SearchEntry.objects.exists()
    assert found(alice, "harbour") == []


def test_an_edited_message_is_found_by_its_new_text_only(alice: User, conversation: Conversation):
    message = Entry.of(UserMessage(content=(Text(text="harbour"),)))
    append(conversation.pk, [message], actor=alice)
    append(
        conversation.pk,
        [Entry.of(MessageEdited(event_id=message.uid, content=(Text(text="airport"),)))],
        actor=alice,
    )
    assert found(alice, "airport") == [conversation]
    assert found(alice, "harbour") == []


def test_the_same_event_twice_is_one_entry(conversation: Conversation):
    talk(conversation, "harbour", "lighthouse")
    before = SearchEntry.objects.count()
    for event in Event.objects.filter(conversation=conversation):
        index_event(event)
    assert SearchEntry.objects.count() == before


def test_only_the_beginning_of_a_huge_message_is_searched(alice: User, conversation: Conversation):
    talk(conversation, "early " + "x " * (ENTRY_LIMIT // 2) + "late", "ok")
    assert found(alice, "early") == [conversation]
    assert found(alice, "late") == []


def test_a_snippet_shows_the_first_place_in_a_message(alice: User, conversation: Conversation):
    talk(conversation, "one " * 60 + "harbour " + "two " * 60, "no")
    pieces = hits([conversation], ["harbour"])[conversation.pk].pieces
    assert [piece.text for piece in pieces if piece.found] == ["harbour"]
    text = "".join(piece.text for piece in pieces)
    assert text.startswith("… one")
    assert text.endswith("…")
    assert len(text) < 200


def test_a_title_that_matches_alone_has_no_snippet(alice: User, conversation: Conversation):
    talk(conversation, "harbour", "lighthouse")
    assert hits([conversation], ["résumé"]) == {}


def test_places_in_many_conversations_take_three_queries_at_most(
    alice: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    django_assert_max_num_queries,
):
    agent = make_agent()
    rows = [begin(alice, acme, agent, environment) for _ in range(10)]
    for row in rows:
        talk(row, "harbour", "harbour")
    with django_assert_max_num_queries(3):
        assert len(hits(rows, ["harbour"])) == 10


def test_what_is_found_is_marked_and_the_text_stays_whole():
    pieces = marked("Harbour (harbour)", words_of("harbour ("))
    assert "".join(piece.text for piece in pieces) == "Harbour (harbour)"
    assert [piece.text for piece in pieces if piece.found] == ["Harbour", "(", "harbour"]
