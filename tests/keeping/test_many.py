"""Tags, and what is done with several conversations at once."""

from __future__ import annotations

import re

import pytest
from django.contrib.messages import get_messages
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.models import Conversation
from harness.errors import Invalid, NotFound
from keeping.actions import many as acts
from keeping.actions import tags as tagging
from keeping.actions.many import change_many
from keeping.actions.tags import tag_conversation
from keeping.models import Pin, Tag
from keeping.tags import tags_in
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, many

HTMX = {"HX-Request": "true"}


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment, title="Berths")


def told(response) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def test_tags_are_words_of_a_person_and_the_same_in_other_letters_is_one(
    alice: User, acme: Organisation, conversation: Conversation
):
    def tag(*words: str, **more) -> list[str]:
        return tag_conversation(actor=alice, conversation=conversation, words=words, **more)

    assert tag(" Tax  2026 ", "harbour", "HARBOUR", "") == ["harbour", "Tax 2026"]
    assert tag("tax 2026", "straße") == ["harbour", "straße", "Tax 2026"]
    assert tag("STRASSE", replace=True) == ["STRASSE"]
    assert [shown.query for shown in tags_in(alice, acme)] == ["q=tag%3ASTRASSE"]
    assert tag(replace=True) == []
    assert not Tag.objects.exists()


def test_too_many_tags_and_impossible_ones_are_refused_and_nothing_is_lost(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    tag_conversation(actor=alice, conversation=conversation, words=["kept"])
    client = client_of(alice)
    address = f"/c/{conversation.uid}/tags/"
    for words, reason in (
        (["x" * 51], "at most 50"),
        (['say "x"'], "neither quotes"),
        ([f"t{number}" for number in range(tagging.MOST + 1)], "at most 20"),
    ):
        response = client.post(address, {"tags": ", ".join(words)}, headers=HTMX)
        assert response.status_code == 422
        html = response.content.decode()
        assert reason in html
        assert words[0].replace('"', "&quot;") in html
    assert [tag.word for tag in Tag.objects.all()] == ["kept"]
    assert "<html" not in client.get(address, headers=HTMX).content.decode()
    assert client.post(address, {"tags": "a b, c"}, headers=HTMX).status_code == 204
    html = client.get("/", {"q": 'tag:"A B"'}).content.decode()
    assert f"row-{conversation.uid}" in html
    assert 'href="/?q=tag%3Ac"' in html
    assert f"row-{conversation.uid}" not in client.get("/", {"q": "tag:kept"}).content.decode()


@pytest.mark.parametrize("name", ["bob", "mallory"])
def test_nobody_tags_or_changes_anothers_and_sees_no_tag_of_hers(
    name: str,
    request: pytest.FixtureRequest,
    alice: User,
    acme: Organisation,
    conversation: Conversation,
    client_of: ClientOf,
):
    tag_conversation(actor=alice, conversation=conversation, words=["secret"])
    stranger = request.getfixturevalue(name)
    with pytest.raises(NotFound):
        tag_conversation(actor=stranger, conversation=conversation, words=["mine"])
    client = client_of(stranger)
    assert client.get(f"/c/{conversation.uid}/tags/").status_code == 404
    assert client.post(f"/c/{conversation.uid}/tags/", {"tags": "x"}).status_code == 404
    for act in ("archive", "bring-back", "pin", "unpin", "seen", "tag", "delete"):
        outcome = change_many(actor=stranger, uids=[conversation.uid], act=act, value="mine")
        assert (outcome.done, outcome.refused, outcome.missing) == (0, [], 1), act
    question = client.post("/selected/", {"act": "delete", "chosen": conversation.uid})
    assert "Berths" not in question.content.decode()
    assert "None of these can be deleted now" in question.content.decode()
    # Also not where a row of hers still names it.
    Tag.objects.create(user=stranger, conversation=conversation, word="old", folded="old")
    assert tags_in(stranger, acme) == []
    html = client.get("/", {"q": "tag:old"}).content.decode()
    assert conversation.uid not in html
    conversation.refresh_from_db()
    assert conversation.archived_at is None
    assert set(Tag.objects.filter(user=alice).values_list("word", flat=True)) == {"secret"}


def test_several_are_archived_tagged_and_brought_back_at_once(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    rows = many(conversation, 3, 0)
    uids = [row.uid for row in rows]
    client = client_of(alice)
    response = client.post(
        "/selected/", {"act": "tag", "tag": "spring, two words", "chosen": uids, "next": "/?q=x"}
    )
    assert response["Location"] == "/?q=x"
    assert told(response) == ["3 tagged."]
    assert Tag.objects.filter(user=alice).count() == 6
    response = client.post("/selected/", {"act": "archive", "chosen": [*uids[:2], "sesn_x"]})
    assert told(response)[-2:] == ["2 archived.", "1 conversation was not found."]
    html = client.get("/?archived=1").content.decode()
    assert set(re.findall(r'id="row-(\w+)"', html)) == set(uids[:2])
    client.post("/selected/", {"act": "bring-back", "chosen": uids[:2]})
    assert not Conversation.objects.exclude(archived_at=None).exists()
    change_many(actor=alice, uids=uids[:2], act="pin")
    change_many(actor=alice, uids=uids[:1], act="unpin")
    assert [pin.conversation_id for pin in Pin.objects.all()] == [rows[1].pk]


def test_deleting_several_asks_names_how_many_and_says_what_stays(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    rows = many(conversation, 3, 0)
    rows[2].runs.create(worker="w", lease_until=timezone.now())
    client = client_of(alice)
    given = {"act": "delete", "chosen": [row.uid for row in rows]}
    html = client.post("/selected/", given).content.decode()
    assert "Delete 2 conversations?" in html
    assert "These are at work and stay" in html
    assert Conversation.objects.count() == 4
    # What began to work in between is left, and said.
    response = client.post("/selected/", {**given, "confirmed": "1"})
    assert told(response) == [
        "2 deleted.",
        "Number 2: This conversation is at work. Stop it first, then delete it.",
    ]
    assert set(Conversation.objects.values_list("pk", flat=True)) == {conversation.pk, rows[2].pk}


def test_what_cannot_be_meant_changes_nothing(
    alice: User, conversation: Conversation, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
):
    client = client_of(alice)
    for given, reason in (
        ({"act": "archive"}, "No conversation is chosen"),
        ({"act": "burn", "chosen": conversation.uid}, "Nothing is known"),
        ({"act": "tag", "tag": " , ", "chosen": conversation.uid}, "No tag is written"),
    ):
        response = client.post("/selected/", given)
        assert response["Location"] == "/"
        assert reason in told(response)[-1]
    monkeypatch.setattr(acts, "MOST", 1)
    with pytest.raises(Invalid):
        change_many(actor=alice, uids=["a", "b"], act="archive")
    assert client.get("/selected/").status_code == 405


def test_rows_show_their_tags_and_boxes_in_as_many_queries_for_many_as_for_one(
    alice: User, conversation: Conversation, client_of: ClientOf, django_assert_max_num_queries
):
    rows = many(conversation, 20, 0)
    for row in rows:
        tag_conversation(actor=alice, conversation=row, words=["spring"])
    client = client_of(alice)
    with django_assert_max_num_queries(12):
        html = client.get("/", {"q": "tag:spring"}).content.decode()
    assert html.count('name="chosen"') == 20
    assert html.count(">spring</a>") == 20
