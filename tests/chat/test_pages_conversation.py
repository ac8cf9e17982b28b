"""The conversation's own page, and what it offers to a browser without script."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from agents.models import Environment
from chat.presentation import frames
from chat.urls import of_conversation
from conversations.actions import messages
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from harness.content import Text
from harness.events import (
    EndTurn,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionUpdated,
    UserMessage,
)
from tests.cast import ClientOf
from tests.chat.drawing import before_query, record
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, fill, talk

GET_ONLY = {
    "conversation",
    "older",
    "file-names",
    "commands",
    "context",
    "files",
    "file",
    "download",
    "changes",
    "change",
    "file-picture",
    "file-page",
    "export-markdown",
    "export-json",
    "rename",
    "delete",
}


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment, title="Harbour plans")


def address(name: str, conversation: Conversation) -> str:
    about_an_event = {
        "withdraw", "edit-message", "steer-message", "set-aside",
        "resend", "regenerate", "rewind", "branch", "feedback", "fork", "redact", "unshare",
    }  # fmt: skip
    extra = ["sevt_1"] if name in about_an_event else []
    return reverse(f"conversations:{name}", args=[conversation.uid, *extra])


NAMES = sorted({str(route.name) for route in of_conversation})


@pytest.mark.parametrize("person", ["mallory", "bob"])
def test_anothers_conversation_is_not_found_whatever_is_asked_of_it(
    person: str,
    request: pytest.FixtureRequest,
    conversation: Conversation,
    client_of: ClientOf,
):
    client = client_of(request.getfixturevalue(person))
    strip = re.compile(r'value="[^"]{64}"')  # the form's token is new each time

    def shown(method: str, place: str) -> str:
        """What stands there, but for the address."""
        answer = client.generic(method, place)
        assert answer.status_code == 404, (method, place)
        return strip.sub("", re.sub(f"{conversation.uid}|sesn_none", "", answer.content.decode()))

    for name in NAMES:
        place = address(name, conversation)
        methods = ["GET"] if name in GET_ONLY else []
        methods += ["POST"] if name not in GET_ONLY or name in {"rename", "delete"} else []
        for method in methods:
            missing = place.replace(conversation.uid, "sesn_none")
            assert shown(method, place) == shown(method, missing), (method, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_stranger_is_asked_to_sign_in(name: str, conversation: Conversation, client: Client):
    place = address(name, conversation)
    answer = client.get(place) if name in GET_ONLY else client.post(place)
    assert answer.status_code == 302
    assert reverse("account_login") in answer["Location"]


def test_the_page_shows_what_was_said_and_where_to_go_on(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    talk(conversation, "Where do ships sleep?", "At the *quay*.")
    html = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    assert "Where do ships sleep?" in html
    assert "<em>quay</em>" in html
    conversation.refresh_from_db()
    assert f'data-seq="{conversation.last_seq}"' in html
    assert f'data-socket="/ws/conversations/{conversation.uid}/"' in html
    for part in ("log", "queue", "composer", "panel-status", "panel-todos", "panel-meter", "jump"):
        assert f'id="{part}"' in html
    assert html.count("<h1") == 1


@pytest.mark.parametrize("query", range(30))
def test_a_page_is_nowhere_older_than_the_place_its_socket_follows_from(
    query: int, alice: User, conversation: Conversation, client_of: ClientOf
):
    post_message(actor=alice, conversation=conversation, text="Where do ships sleep?")
    record(conversation, SessionStatusRunning())

    def end() -> None:
        changed = SessionUpdated(title="The quay", features={"plan_mode": True})
        record(conversation, changed, SessionStatusIdle(stop_reason=EndTurn()))

    hers = client_of(alice)
    with before_query(query, end):
        html = hers.get(conversation.get_absolute_url()).content.decode()

    conversation.refresh_from_db()
    found = re.search(r'data-seq="(\d+)"', html)
    assert found
    if int(found[1]) == conversation.last_seq:
        assert 'data-status="running"' not in html
        assert "Harbour plans</h1>" not in html
        assert re.search(r'data-feature="plan_mode"[^>]* checked', html)
    else:
        told = frames.changes(conversation, int(found[1])).panels
        assert {"status", "title", "features"} <= told.keys()


def test_queued_messages_stand_in_the_queue(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    row = post_message(actor=alice, conversation=conversation, text="And one more thing")
    html = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    queue = html.partition('id="queue"')[2]
    assert f'id="u-{row.uid}"' in queue
    assert f'id="u-{row.uid}"' not in html.partition('id="queue"')[0]


def test_a_page_of_2000_events_takes_a_bounded_number_of_queries(
    alice: User, conversation: Conversation, client_of: ClientOf, django_assert_max_num_queries
):
    fill(conversation, 2_000)
    Conversation.objects.filter(pk=conversation.pk).update(last_seq=2_000)
    client = client_of(alice)
    with django_assert_max_num_queries(30):
        html = client.get(conversation.get_absolute_url()).content.decode()
    assert 'data-has-older="true"' in html
    assert "answer 1996" in html
    assert "answer 1000" not in html


def test_older_pages_lead_back_to_the_first_event_without_gap_or_repetition(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    fill(conversation, 1_000)
    Conversation.objects.filter(pk=conversation.pk).update(last_seq=1_000)
    client = client_of(alice)
    html = client.get(conversation.get_absolute_url()).content.decode()
    units = re.findall(r'id="(u-[^"]+)"', html)
    before = re.search(r'data-first-seq="(\d+)"', html)
    assert before is not None
    first_seq, has_older = before[1], "true"
    while has_older == "true":
        answer = client.get(address("older", conversation), {"before": first_seq})
        assert answer.status_code == 200
        assert int(answer["X-First-Seq"]) < int(first_seq)
        units = re.findall(r'id="(u-[^"]+)"', answer.content.decode()) + units
        first_seq, has_older = answer["X-First-Seq"], answer["X-Has-Older"]
    said = Event.objects.filter(
        conversation=conversation, type__in=["user.message", "agent.message"]
    ).count()
    assert len(units) == len(set(units)) == said


def test_without_script_a_link_leads_to_the_older_messages(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    fill(conversation, 500)
    Conversation.objects.filter(pk=conversation.pk).update(last_seq=500)
    client = client_of(alice)
    html = client.get(conversation.get_absolute_url()).content.decode()
    link = re.search(r'href="(\?before=\d+)"', html)
    assert link is not None
    older = client.get(conversation.get_absolute_url() + link[1]).content.decode()
    assert "answer 396" in older
    assert "answer 496" not in older
    assert "chat.js" not in older, "it would mix the newest with the oldest"


@pytest.mark.parametrize("before", ["", "x", "-1", "1.5", "9" * 19, "٣"])
def test_a_place_that_is_none_is_refused(
    before: str, alice: User, conversation: Conversation, client_of: ClientOf
):
    answer = client_of(alice).get(address("older", conversation), {"before": before})
    assert answer.status_code == 400


def test_a_message_can_be_posted_without_script(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    answer = client_of(alice).post(address("message", conversation), {"content": "Ahoy"})
    assert answer.status_code == 302
    row = Event.objects.get(conversation=conversation, type="user.message")
    assert row.value == UserMessage(content=(Text(text="Ahoy"),))
    assert row.actor == alice


def test_a_refused_message_comes_back_with_its_text(
    alice: User, conversation: Conversation, client_of: ClientOf, settings
):
    settings.AGENTSITE_MESSAGE_CHARACTERS = 10
    client = client_of(alice)
    answer = client.post(address("message", conversation), {"content": "far too long a text"})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "far too long a text</textarea>" in html
    assert "at most 10" in html
    assert client.post(address("message", conversation), {"content": "x" * 10}).status_code == 302


def test_a_queued_message_can_be_withdrawn_and_nothing_stopped_without_script(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    row = post_message(actor=alice, conversation=conversation, text="Ahoy")
    client = client_of(alice)
    withdraw = reverse("conversations:withdraw", args=[conversation.uid, row.uid])
    assert client.post(withdraw).status_code == 302
    assert client.post(withdraw).status_code == 409
    assert client.post(address("stop", conversation)).status_code == 302
    assert client.post(address("retry", conversation)).status_code == 409


def test_a_queued_message_can_be_edited_and_steered_without_script(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    row = post_message(actor=alice, conversation=conversation, text="Ahoi")
    client = client_of(alice)
    edit = reverse("conversations:edit-message", args=[conversation.uid, row.uid])
    steer = reverse("conversations:steer-message", args=[conversation.uid, row.uid])
    assert client.post(edit, {"content": "Ahoy there"}).status_code == 302
    for _twice in range(2):
        assert client.post(steer).status_code == 302
    steered = Event.objects.filter(conversation=conversation, type="x.message_steered")
    assert steered.count() == 1
    shown = client.get(conversation.get_absolute_url()).content.decode()
    assert "Ahoy there" in shown
    assert "Ahoi" not in shown
    assert "Joins the current answer" in shown


def test_an_edit_that_is_refused_keeps_what_was_typed(
    alice: User, conversation: Conversation, client_of: ClientOf, settings, monkeypatch
):
    row = post_message(actor=alice, conversation=conversation, text="Ahoy")
    client = client_of(alice)
    edit = reverse("conversations:edit-message", args=[conversation.uid, row.uid])
    monkeypatch.setattr(messages, "MOST_EDITS", 1)
    assert client.post(edit, {"content": "Hi"}).status_code == 302
    often = client.post(edit, {"content": "Hi!"})
    assert (often.status_code, often.context["draft"]) == (422, "Hi!")
    monkeypatch.undo()
    settings.AGENTSITE_MESSAGE_CHARACTERS = 10
    answer = client.post(edit, {"content": "Ahoy, everybody"})
    assert answer.status_code == 422
    assert answer.context["draft"] == "Ahoy, everybody"
    assert client.post(edit, {"content": " "}).status_code == 422
    withdraw = reverse("conversations:withdraw", args=[conversation.uid, row.uid])
    assert client.post(withdraw).status_code == 302
    late = client.post(edit, {"content": "Too late"})
    assert (late.status_code, late.context["draft"]) == (422, "Too late")
    steer = reverse("conversations:steer-message", args=[conversation.uid, row.uid])
    assert client.post(steer).status_code == 409


def test_switches_can_be_turned_without_script(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    client = client_of(alice)
    place = address("feature", conversation)
    assert client.post(place, {"feature": "plan_mode", "enabled": "1"}).status_code == 302
    assert Conversation.objects.get(pk=conversation.pk).features.plan_mode
    assert client.post(place, {"feature": "plan_mode"}).status_code == 302
    assert not Conversation.objects.get(pk=conversation.pk).features.plan_mode
    assert client.post(place, {"feature": "turbo", "enabled": "1"}).status_code == 400


def test_the_details_name_agent_version_and_the_service_in_use(
    alice: User, conversation: Conversation, client_of: ClientOf
):
    html = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    details = html.partition('id="details-title"')[2]
    assert "Coding" in details
    assert "v1" in details
    assert "Demo" in details
    assert "Own workspace" in details


@pytest.mark.parametrize("place", ["/", "/new/", "/settings/", "conversation", "files"])
def test_no_page_needs_more_than_the_strict_policy_allows(
    place: str, alice: User, conversation: Conversation, client_of: ClientOf
):
    talk(conversation, "hello", "hi")
    if not place.startswith("/"):
        place = address(place, conversation)
    response = client_of(alice).get(place)
    html = response.content.decode()
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\son[a-z]+=|\shx-on|\sstyle=|<style|javascript:", html)
