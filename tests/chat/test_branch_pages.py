"""Branches by way of pages and frames: each button has its address, and links lead to their places."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from chat.presentation import frames
from conversations.actions.branching import regenerate, rewind, switch_branch
from conversations.actions.messages import post_message
from conversations.actions.sharing import share_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.events import SessionStatusRunning
from harness.history import Entry
from providers.scripted import reply
from tests.conversations.conftest import rested, still, types
from tests.conversations.scenes import fill

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk(alice, converse):
    conversation, _scripted = converse([reply(each) for each in ("first", "second", "third")])
    row = post_message(actor=alice, conversation=conversation, text="one")
    settle(conversation, 1)
    return conversation, row


def settle(conversation, times):
    rested(conversation, times)
    still()
    conversation.refresh_from_db()


def address(name, conversation, uid):
    return reverse(f"conversations:{name}", args=[conversation.uid, uid])


def log_of(conversation) -> str:
    return "".join(frames.page(conversation).units)


def test_each_button_has_an_address_for_browsers_without_script(alice, talk, client_of):
    conversation, row = talk
    client = client_of(alice)
    client.post(address("regenerate", conversation, row.uid))
    settle(conversation, 2)
    assert "second" in log_of(conversation)
    assert "first" not in log_of(conversation)
    first = Event.objects.filter(conversation=conversation, type="agent.message").first()
    assert client.post(address("branch", conversation, first.uid)).status_code == 302
    conversation.refresh_from_db()
    assert "first" in log_of(conversation)
    assert client.post(address("rewind", conversation, row.uid)).status_code == 302
    assert (
        client.post(address("resend", conversation, row.uid), {"content": "x"}).status_code == 422
    )
    assert types(conversation).count("x.rewound") == 3


def test_a_message_is_said_anew_without_script_and_a_refused_one_stays_in_the_box(
    alice, talk, client_of
):
    conversation, row = talk
    client = client_of(alice)
    refused = client.post(address("resend", conversation, row.uid), {"content": " "})
    assert refused.status_code == 422
    assert (
        client.post(address("resend", conversation, row.uid), {"content": "1"}).status_code == 302
    )
    settle(conversation, 2)
    append(conversation.pk, [Entry.of(SessionStatusRunning())])
    uid = Event.objects.filter(conversation=conversation, type="user.message").last().uid
    refused = client.post(address("resend", conversation, uid), {"content": "keep me"})
    assert refused.status_code == 422
    assert "keep me" in refused.content.decode()


def test_what_is_said_anew_too_often_stays_in_the_box(alice, talk, client_of, settings):
    conversation, row = talk
    client = client_of(alice)
    place = address("resend", conversation, row.uid)
    settings.AGENTSITE_MESSAGES_PER_MINUTE = 1
    assert client.post(place, {"content": "one\r\ntwo"}).status_code == 302
    settle(conversation, 2)
    said = Event.objects.filter(conversation=conversation, type="user.message").last()
    assert said.payload["content"][0]["text"] == "one\ntwo"
    refused = client.post(address("resend", conversation, said.uid), {"content": "keep me"})
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert "keep me" in refused.content.decode()


def test_the_page_of_an_event_is_its_owners_alone(alice, bob, mallory, talk, client_of):
    _, row = talk
    place = reverse("conversations:event", args=[row.uid])
    page = client_of(alice).get(place).content.decode()
    assert f"at={row.uid}#u-{row.uid}" in page
    for person in (bob, mallory):
        assert client_of(person).get(place).status_code == 404


def test_who_only_reads_along_is_offered_nothing_that_would_be_refused(
    alice, bob, acme, talk, client_of
):
    conversation, row = talk
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role="viewer")
    place = reverse("conversations:event", args=[row.uid])
    for person, offered in ((alice, True), (bob, False)):
        html = client_of(person).get(place).content.decode()
        for name in ("regenerate", "rewind"):
            assert (address(name, conversation, row.uid) in html) is offered
        assert address("fork", conversation, row.uid) in html


def test_who_only_reads_goes_on_in_a_copy_of_her_own(alice, bob, mallory, acme, talk, client_of):
    conversation, _row = talk
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role="viewer")
    html = client_of(bob).get(reverse("conversations:conversation", args=[conversation.uid]))
    (place,) = re.findall(r'action="(/c/\w+/copy/)"', html.content.decode())
    assert client_of(mallory).post(place).status_code == 404
    answer = client_of(bob).post(place)
    copy = Conversation.objects.get(owner=bob)
    assert answer["Location"] == copy.get_absolute_url()
    assert copy.origin == conversation
    assert client_of(alice).get(copy.get_absolute_url()).status_code == 404


def test_a_link_opens_at_what_is_older_than_a_page(alice, talk, client_of):
    conversation, row = talk
    fill(conversation, 400, first_seq=conversation.last_seq + 1)
    conversation.last_seq += 400
    conversation.save(update_fields=["last_seq"])
    client = client_of(alice)
    assert f"u-{row.uid}" not in client.get(conversation.get_absolute_url()).content.decode()
    page = client.get(f"{conversation.get_absolute_url()}?at={row.uid}").content.decode()
    assert f'id="u-{row.uid}"' in page
    assert 'id="composer"' in page


def test_a_link_to_what_is_far_away_opens_a_page_of_its_own_there(alice, talk, client_of):
    conversation, row = talk
    fill(conversation, 1_200, first_seq=conversation.last_seq + 1)
    conversation.last_seq += 1_200
    conversation.save(update_fields=["last_seq"])
    client = client_of(alice)
    page = client.get(f"{conversation.get_absolute_url()}?at={row.uid}").content.decode()
    assert f'id="u-{row.uid}"' in page
    assert 'id="composer"' not in page


def test_a_link_to_another_branch_or_to_nothing_says_so(alice, talk, client_of):
    conversation, row = talk
    first = Event.objects.filter(conversation=conversation, type="agent.message").first()
    regenerate(actor=alice, conversation=conversation, event_uid=row.uid)
    settle(conversation, 2)
    client = client_of(alice)
    there = client.get(f"{conversation.get_absolute_url()}?at={first.uid}").content.decode()
    assert "stands on another branch" in there
    nothing = client.get(f"{conversation.get_absolute_url()}?at=sevt_none").content.decode()
    assert "not in this conversation" in nothing


def test_a_branch_with_much_on_it_has_the_page_load_anew(alice, talk):
    conversation, row = talk
    fill(conversation, 400, first_seq=conversation.last_seq + 1)
    conversation.last_seq += 400
    conversation.save(update_fields=["last_seq"])
    last = conversation.last_seq
    rewind(actor=alice, conversation=conversation, event_uid=row.uid)
    conversation.refresh_from_db()
    assert frames.changes(conversation, last).cut == 0
    second = Event.objects.get(conversation=conversation, seq=last)
    seen = conversation.last_seq
    switch_branch(actor=alice, conversation=conversation, event_uid=second.uid)
    conversation.refresh_from_db()
    assert frames.changes(conversation, seen).reload
