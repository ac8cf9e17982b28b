"""The list of conversations."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations.actions.conversations import archive_conversation
from conversations.actions.preferences import put_away_first_steps
from conversations.models import Conversation
from harness.errors import Invalid
from keeping.actions.pins import pin_conversation
from keeping.listing import PAGE_SIZE, list_page
from keeping.models import Pin
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, many, talk

LIST = "/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    return make_agent("Coding")


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, agent: Agent, environment: Environment
) -> Conversation:
    return begin(alice, acme, agent, environment, title="Harbour plans")


def titles(html: str) -> list[str]:
    links = re.findall(r'class="row-link"[^>]*>(.*?)</a>', html, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", link).strip() for link in links]


def page_of(client: Client, address: str = LIST, headers: dict[str, str] | None = None) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def test_the_first_page_asks_a_stranger_to_sign_in(client: Client):
    response = client.get(LIST)
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("account_login"))


def test_an_empty_list_says_how_to_begin(alice: User, acme: Organisation, client_of: ClientOf):
    html = page_of(client_of(alice))
    assert "No conversations yet" in html
    assert reverse("conversations:new") in html


def test_the_list_is_newest_first_with_pinned_ones_before(
    alice: User, acme: Organisation, agent: Agent, environment: Environment, client_of: ClientOf
):
    rows = [begin(alice, acme, agent, environment, title=name) for name in ("a", "b", "c", "d")]
    for age, row in enumerate(rows):
        Conversation.objects.filter(pk=row.pk).update(
            active_at=timezone.now() - timedelta(hours=age)
        )
    pin_conversation(actor=alice, conversation=rows[2], pinned=True)
    pin_conversation(actor=alice, conversation=rows[3], pinned=True)
    assert titles(page_of(client_of(alice))) == ["d", "c", "a", "b"]


def test_a_row_shows_agent_status_and_what_waits(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    talk(conversation, "hello", "hi")
    client = client_of(alice)
    html = page_of(client)
    assert "Coding" in html
    assert "2 messages" in html
    for fields, words in (
        ({"status": "running"}, "running"),
        ({"status": "idle", "stop_reason": "requires_action"}, "waits for you"),
        ({"stop_reason": "budget_reached"}, "stopped short"),
        ({"queued_count": 2}, "2 queued"),
    ):
        Conversation.objects.filter(pk=conversation.pk).update(**fields)
        assert words in page_of(client)


def test_others_conversations_are_not_in_the_list(
    bob: User, mallory: User, conversation: Conversation, client_of: ClientOf
):
    for person in (bob, mallory):
        assert titles(page_of(client_of(person))) == []
        assert titles(page_of(client_of(person), "/?q=harbour")) == []


def test_the_archive_holds_what_the_list_no_longer_shows(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    archive_conversation(actor=alice, conversation=conversation, archived=True)
    assert titles(page_of(client)) == []
    assert titles(page_of(client, "/?archived=1")) == ["Harbour plans"]


def test_child_conversations_are_not_listed(alice: User, conversation: Conversation, client_of):
    child = begin(
        alice,
        conversation.organisation,
        conversation.agent_version.agent,
        conversation.environment,
        title="Child",
    )
    Conversation.objects.filter(pk=child.pk).update(parent=conversation)
    assert titles(page_of(client_of(alice))) == ["Harbour plans"]


def test_pages_cover_the_list_without_gap_or_repetition_while_it_moves(
    alice: User, conversation: Conversation
):
    rows = many(conversation, 100, 0)
    for row in rows[40:45]:
        pin_conversation(actor=alice, conversation=row, pinned=True)
    same = timezone.now() - timedelta(days=1)
    Conversation.objects.filter(pk__in=[row.pk for row in rows[50:80]]).update(active_at=same)
    listed = Conversation.objects.visible_to(alice)
    pinned = [row.pk for row in reversed(rows[40:45])]
    expected = [*pinned, *(row.pk for row in listed.in_list_order() if row.pk not in pinned)]
    seen: list[int] = []
    cursor = ""
    while True:
        page = list_page(listed, alice, cursor, size=7)
        seen += [row.pk for row in page.conversations]
        cursor = page.next_cursor
        if not cursor:
            break
    assert seen == expected


@pytest.mark.parametrize(
    "cursor",
    ["1", "-", "a.b", "1.1.1", "-.1", "1" * 300, "99.-1", "٣.٣", f"{'9' * 18}.1"],
)
def test_a_cursor_nobody_made_is_refused(cursor: str, alice: User, conversation: Conversation):
    with pytest.raises(Invalid) as refused:
        list_page(Conversation.objects.all(), alice, cursor)
    assert refused.value.field == "after"


def test_a_cursor_of_the_far_future_leads_to_the_first_page(
    alice: User, conversation: Conversation
):
    page = list_page(Conversation.objects.all(), alice, f"{'9' * 17}.1")
    assert page.conversations == [conversation]


def test_the_next_page_is_a_link_that_htmx_follows_in_place(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    many(conversation, PAGE_SIZE + 5, 0)
    client = client_of(alice)
    first = page_of(client)
    address = re.search(r'href="(/\?after=[^"]+)"', first)
    assert address is not None
    assert len(titles(first)) == PAGE_SIZE
    assert len(titles(page_of(client, address[1]))) == 6
    fragment = page_of(client, address[1], headers=HTMX)
    assert len(titles(fragment)) == 6
    assert "<html" not in fragment


def test_search_looks_at_titles_and_messages_and_shows_where(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    talk(conversation, "Where do ships sleep?", "At the <b>quay</b>.")
    client = client_of(alice)
    assert titles(page_of(client, "/?q=harb")) == ["Harbour plans"]
    html = page_of(client, "/?q=quay")
    assert "<mark>quay</mark>" in html
    assert "<b>" not in html
    nothing = page_of(client, "/?q=airport")
    assert "Nothing found" in nothing
    assert 'value="airport"' in nothing


def test_a_search_that_is_too_long_keeps_what_was_typed(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    text = "x" * 201
    response = client_of(alice).get("/", {"q": text})
    assert response.status_code == 422
    assert f'value="{text}"' in response.content.decode()
    assert "longer than 200" in response.content.decode()


def test_hostile_searches_are_answered(alice: User, conversation: Conversation, client_of):
    client = client_of(alice)
    for text in ('"', "*", "OR", "😀", "'--", "<script>"):
        response = client.get("/", {"q": text})
        assert response.status_code == 200
        assert "<script>alert" not in response.content.decode()
    assert client.get("/", {"q": "\0"}).status_code == 400


def test_the_first_page_leads_to_every_place_that_the_others_lead_to(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    elsewhere, first = (
        set(re.findall(r'<li><a href="([^"]+)"', html.partition("<main")[0]))
        for html in (page_of(client, "/settings/"), page_of(client))
    )
    assert {"/schedules/", "/tasks/", "/brief/", "/agents/", "/folders/"} <= elsewhere
    assert first == elsewhere


def test_many_conversations_are_listed_in_a_bounded_number_of_queries(
    alice: User,
    conversation: Conversation,
    client_of: ClientOf,
    django_assert_max_num_queries,
    django_assert_num_queries,
):
    many(conversation, 2 * PAGE_SIZE, 4)
    client = client_of(alice)
    # Ten of them for the form in which another begins, five for pins, tags and folders.
    put_away_first_steps(actor=alice)
    with django_assert_max_num_queries(25):
        html = page_of(client)
    assert len(titles(html)) == PAGE_SIZE
    with django_assert_max_num_queries(10):
        page_of(client, "/?q=number")


def test_actions_work_without_script_and_come_back_to_where_they_were_asked(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    pin = reverse("conversations:pin", args=[conversation.uid])
    response = client.post(pin, {"pinned": "1", "next": "/?archived=1"})
    assert response.status_code == 302
    assert response["Location"] == "/?archived=1"
    assert Pin.objects.filter(user=alice, conversation=conversation).exists()
    response = client.post(pin, {"pinned": "0", "next": "https://evil.example/"})
    assert response["Location"] == "/"


def test_htmx_gets_an_event_instead_of_a_page(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    archive = reverse("conversations:archive", args=[conversation.uid])
    response = client_of(alice).post(archive, {"archived": "1"}, headers=HTMX)
    assert response.status_code == 204
    assert "conversations-changed" in response["HX-Trigger"]
    conversation.refresh_from_db()
    assert conversation.archived_at is not None


def test_deleting_asks_first(alice: User, conversation: Conversation, client_of: ClientOf):
    client = client_of(alice)
    delete = reverse("conversations:delete", args=[conversation.uid])
    assert "Delete this conversation?" in page_of(client, delete)
    assert "<html" not in page_of(client, delete, headers=HTMX)
    assert Conversation.objects.filter(pk=conversation.pk).exists()
    assert client.post(delete).status_code == 302
    assert not Conversation.objects.filter(pk=conversation.pk).exists()


def test_a_refused_deletion_says_why_in_the_form_each_asker_shows(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    conversation.runs.create(worker="w", lease_until=timezone.now())
    client = client_of(alice)
    delete = reverse("conversations:delete", args=[conversation.uid])
    response = client.post(delete)
    assert response.status_code == 409
    assert "Stop it first" in response.content.decode()
    response = client.post(delete, headers=HTMX)
    assert response.status_code == 409
    assert response["HX-Retarget"] == "#notices"
    assert "<html" not in response.content.decode()
    response = client.post(delete, headers={"Accept": "application/json"})
    assert response.json()["error"]["code"] == "conflict"


def test_a_refused_title_comes_back_with_what_was_typed(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    rename = reverse("conversations:rename", args=[conversation.uid])
    title = "y" * 201
    response = client.post(rename, {"title": title})
    assert response.status_code == 422
    assert title in response.content.decode()
    assert client.post(rename, {"title": "Quay"}).status_code == 302
    conversation.refresh_from_db()
    assert conversation.title == "Quay"


def test_the_menu_of_a_row_is_named_by_words_where_nobody_gave_a_title(
    alice: User,
    acme: Organisation,
    agent: Agent,
    environment: Environment,
    client_of: ClientOf,
):
    untitled = begin(alice, acme, agent, environment, title="")
    html = page_of(client_of(alice))
    assert "Actions for Untitled" in html
    assert f"Actions for {untitled.uid}" not in html


def test_lists_that_ask_again_are_answered_where_they_would_look_different(
    alice: User,
    mallory: User,
    acme: Organisation,
    environment: Environment,
    make_agent: MakeAgent,
    client_of: ClientOf,
):
    conversation = begin(alice, acme, make_agent(), environment, "Harbour")
    client = client_of(alice)
    page = client.get("/agents/").content.decode()
    for address in re.findall(r'hx-get="(/recent/[^"]*)"', page) + re.findall(
        r'hx-get="(/\?known=[^"]*)"', client.get("/").content.decode()
    ):
        address = address.replace("&amp;", "&")
        again = {"HX-Request": "true"}
        Conversation.objects.update(status="idle", title="Harbour")
        assert client.get(address, headers=again).status_code == 204
        Conversation.objects.update(status="running", title="Pier")
        answer = client.get(address, headers=again).content.decode()
        assert "Pier" in answer
        assert "dot running" in answer
        assert conversation.uid in answer
        strange = client_of(mallory).get(address, headers=again).content.decode()
        assert conversation.uid not in strange
