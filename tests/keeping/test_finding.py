"""A person finds her conversations again: words, phrases and filters typed into one box."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations.actions.conversations import archive_conversation
from conversations.actions.files import Upload, add_files
from conversations.models import Conversation, Event
from conversations.search import index_title
from harness.errors import Conflict, Invalid, NotFound
from keeping.actions import pins
from keeping.actions.pins import pin_conversation
from keeping.finding import understand
from keeping.models import Pin
from keeping.words import read
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, many, talk

NAMES = {"agent", "tag", "before"}


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Harbour master")


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> Conversation:
    row = begin(alice, acme, agent, environment, title="Berths")
    talk(row, "Where do ships sleep?", "At the <b>old quay</b>, behind the lighthouse.")
    return row


def found(user: User, organisation: Organisation, text: str) -> list[str]:
    rows = understand(user, organisation, text).among(
        Conversation.objects.visible_to(user), organisation
    )
    return sorted(row.title for row in rows)


@pytest.mark.parametrize(
    ("text", "words", "filters"),
    [
        ("old quay", ["old", "quay"], []),
        ('"old quay" x', ["old quay", "x"], []),
        ('tag:"two words" x', ["x"], [("tag", "two words")]),
        ("TAG:Tax tag:y", [], [("tag", "Tax"), ("tag", "y")]),
        ("https://example.org a:b", ["https://example.org", "a:b"], []),
        ('"tag:tax"', ["tag:tax"], []),
        ('tag:"open end', ["end"], [("tag", "open")]),
        ('"', ['"'], []),
        ('""', ['""'], []),
        ('" "', [], []),
        ("tag:", [], [("tag", "")]),
        (":tag a:tag:b", [":tag", "a:tag:b"], []),
    ],
)
def test_what_is_typed_is_read_as_words_phrases_and_filters(text, words, filters):
    typed = read(text, NAMES)
    assert (typed.words, typed.filters) == (words, filters)


def test_a_phrase_stands_as_it_is_written(alice: User, acme: Organisation, conversation):
    for text in ('"old quay"', '"OLD QUAY"', '"ships sleep" where', "quay old", "qua"):
        assert found(alice, acme, text) == ["Berths"], text
    for text in ('"quay old"', '"old qua"', '"sleep old"', '"old quay" airport'):
        assert found(alice, acme, text) == [], text


def test_filters_narrow_and_go_together(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent, conversation
):
    other = begin(alice, acme, make_agent("Clerk"), environment, title="Invoices")
    talk(other, "Pay the quay", "Paid.")
    add_files(
        actor=alice, conversation=other, uploads=[Upload("bill.txt", 3, [b"abc"])], folder="uploads"
    )
    pin_conversation(actor=alice, conversation=conversation, pinned=True)
    long_ago = datetime(2025, 3, 1, 12, tzinfo=UTC)
    Event.objects.filter(conversation=other).update(created_at=long_ago)
    Conversation.objects.filter(pk=other.pk).update(active_at=long_ago)
    for text, titles in {
        "quay": ["Berths", "Invoices"],
        "agent:clerk": ["Invoices"],
        'agent:"harbour m" quay': ["Berths"],
        "has:file": ["Invoices"],
        "is:pinned": ["Berths"],
        "is:pinned has:file": [],
        "before:2025-03-02": ["Invoices"],
        "before:2025-03-01": [],
        "after:2025-03-01 before:2025-03-02 quay": ["Invoices"],
        "after:2025-03-02 quay": ["Berths"],
        "after:2025-03-02 invoices": [],
    }.items():
        assert found(alice, acme, text) == titles, text
    archive_conversation(actor=alice, conversation=other, archived=True)
    assert found(alice, acme, "quay") == ["Berths"]
    assert found(alice, acme, "quay is:archived") == ["Invoices"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("before:yesterday", "is not a day"),
        ("after:2026-02-31", "is not a day"),
        ("before:٢٠٢٦-01-01", "is not a day"),
        ("after:0001-01-01", "is not a day"),
        ("before:9999-12-31", "is not a day"),
        ("before:8999-12-31", ""),
        ("has:wings", "Choose from: has:file."),
        ("is:new", "is:archived, is:pinned"),
        ("agent:nobody", "Choose from: Harbour master."),
        ("tag:", "without a value"),
        ('quay agent:""', "without a value"),
    ],
)
def test_a_filter_that_cannot_be_says_so_and_loses_nothing(
    text: str, words: str, alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    response = client.get("/", {"q": text})
    html = response.content.decode()
    assert response.status_code == (422 if words else 200)
    assert f'value="{text.replace(chr(34), "&quot;")}"' in html
    assert words.replace('"', "&quot;") in html
    answer = client.get("/api/conversations", {"q": text})
    assert answer.status_code == (422 if words else 200)
    if words:
        assert answer.json()["error"]["field"] == "q"


def test_a_result_shows_where_and_opens_there(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    answer = Event.objects.get(conversation=conversation, type="agent.message")
    html = client.get("/", {"q": '"old quay"'}).content.decode()
    assert "<mark>old quay</mark>" in html
    assert "&lt;b&gt;" in html
    address = f"{conversation.get_absolute_url()}?at={answer.subject}#u-{answer.subject}"
    assert f'href="{address}"' in html
    assert f'id="u-{answer.subject}"' in client.get(address).content.decode()
    go = client.get("/go/", {"q": "lighthouse"}).content.decode()
    assert f'href="{address}"' in go
    (row,) = client.get("/api/conversations", {"q": "lighthouse"}).json()
    assert (row["id"], row["match"]["event_id"]) == (conversation.uid, answer.uid)
    assert "behind the lighthouse" in row["match"]["text"]
    (row,) = client.get("/api/conversations", {"q": "Berths"}).json()
    assert row["match"] is None


def test_results_are_paged_without_gap_or_repetition(
    alice: User, acme: Organisation, conversation: Conversation, client_of: ClientOf
):
    rows = many(conversation, 45, 0)
    for row in rows:
        index_title(row.pk, row.title)
    pin_conversation(actor=alice, conversation=rows[7], pinned=True)
    client, address = client_of(alice), "/?q=number"
    seen: list[str] = []
    while address:
        html = client.get(address).content.decode()
        assert not seen or "Unpin" not in html
        seen += re.findall(r'id="row-(\w+)"', html)
        more = re.search(r'href="(/\?q=number&amp;after=[^"]+)"', html)
        address = more[1].replace("&amp;", "&") if more else ""
    assert seen[0] == rows[7].uid
    assert len(seen) == len(set(seen)) == len(found(alice, acme, "number"))


@pytest.mark.parametrize("name", ["bob", "mallory"])
@pytest.mark.parametrize(
    "text", ["quay", "is:pinned", "agent:harbour", "has:file", "before:2099-01-01"]
)
def test_nobody_finds_anything_of_anothers(
    name: str,
    text: str,
    request: pytest.FixtureRequest,
    alice: User,
    conversation: Conversation,
    client_of: ClientOf,
):
    pin_conversation(actor=alice, conversation=conversation, pinned=True)
    add_files(actor=alice, conversation=conversation, uploads=[Upload("a.txt", 1, [b"a"])])
    assert found(alice, conversation.organisation, text) == ["Berths"]
    client = client_of(request.getfixturevalue(name))
    for address in ("/", "/go/", "/api/conversations"):
        content = client.get(address, {"q": text}).content.decode()
        assert conversation.uid not in content
        assert "Harbour master" not in content or address == "/"


def test_names_of_agents_in_a_refusal_are_those_of_her_own_conversations(
    bob: User, conversation: Conversation
):
    with pytest.raises(Invalid) as refused:
        understand(bob, conversation.organisation, "agent:x")
    assert "Harbour" not in refused.value.hint


def test_pins_are_a_persons_own_and_pinning_again_moves_nothing(
    alice: User, bob: User, mallory: User, conversation: Conversation
):
    first = pin_conversation(actor=alice, conversation=conversation, pinned=True)
    assert first is not None
    assert pin_conversation(actor=alice, conversation=conversation, pinned=True) == first
    for stranger in (bob, mallory):
        for pinned in (True, False):
            with pytest.raises(NotFound):
                pin_conversation(actor=stranger, conversation=conversation, pinned=pinned)
    # A pin of hers from a time when she might see it shows her nothing.
    Pin.objects.create(user=bob, conversation=conversation, pinned_at=timezone.now())
    assert found(bob, conversation.organisation, "is:pinned") == []
    pin_conversation(actor=alice, conversation=conversation, pinned=False)
    assert not Pin.objects.filter(user=alice).exists()


def test_more_pins_than_a_first_page_takes_are_refused(
    alice: User, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pins, "MOST", 2)
    rows = many(conversation, 3, 0)
    for row in rows[:2]:
        pin_conversation(actor=alice, conversation=row, pinned=True)
    with pytest.raises(Conflict):
        pin_conversation(actor=alice, conversation=rows[2], pinned=True)
    pin_conversation(actor=alice, conversation=rows[1], pinned=True)


def test_a_phrase_of_signs_is_marked_in_time_that_grows_with_the_text_alone(
    alice: User, conversation: Conversation
):
    talk(conversation, "-" * 50_000 + " a " * 10_000, "ok")
    began = datetime.now(UTC)
    for text in ('"' + "- " * 90 + 'b"', '"' + "a " * 90 + 'b"', '"' + "a " * 90 + '"'):
        search = understand(alice, conversation.organisation, text)
        search.hits([conversation])
    assert datetime.now(UTC) - began < timedelta(seconds=5)


def test_the_sidebar_shows_pinned_ones_first(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    rows = many(conversation, 3, 0)
    pin_conversation(actor=alice, conversation=conversation, pinned=True)
    client: Client = client_of(alice)
    html = client.get("/new/").content.decode()
    listed = re.findall(r'<a [^>]*?href="/c/(\w+)/"', html[html.index('class="recent"') :])
    assert listed[0] == conversation.uid
    assert set(listed) >= {row.uid for row in rows}
