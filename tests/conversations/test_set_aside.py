"""A message or result that a model service refuses is set aside, and its conversation goes on."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from api import commands, incoming
from chat.presentation.frames import page
from conversations.actions.answers import answer_custom_tool
from conversations.actions.messages import post_message, request_retry
from conversations.actions.setaside import set_aside
from conversations.models import Event
from harness.agentconfig import CustomTool
from harness.content import Base64Source, Image, Text
from harness.errors import BadRequest, Conflict, NotFound
from providers.scripted import call, reply
from tests.conversations.conftest import rested, still, types
from tests.pictures import GOOD

REFUSED = BadRequest("messages.0.content.1: Could not process image", status=400)
PICTURE = Image(source=Base64Source(media_type="image/png", data=GOOD))

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stuck(alice, converse):
    """A conversation whose first message is refused for ever."""
    conversation, scripted = converse([REFUSED, reply("Hello."), reply("Bye.")])
    row = post_message(
        actor=alice, conversation=conversation, text="What is this?", attachments=[PICTURE]
    )
    rested(conversation)
    still()
    conversation.refresh_from_db()
    return conversation, row, scripted


def test_the_person_is_told_which_message_and_what_to_do(stuck):
    conversation, row, _ = stuck
    error = Event.objects.get(conversation=conversation, type="session.error").value.error
    assert error.event_ids == (row.uid,)
    assert "set it aside" in error.hint


def test_without_the_message_the_conversation_goes_on_and_its_text_is_kept(alice, stuck):
    conversation, row, scripted = stuck
    aside = set_aside(actor=alice, conversation=conversation, event_uid=row.uid).value
    assert aside.reason == REFUSED.message
    assert set_aside(actor=alice, conversation=conversation, event_uid=row.uid).value == aside
    with pytest.raises(Conflict):  # nothing is left that was not answered
        request_retry(actor=alice, conversation=conversation)
    post_message(actor=alice, conversation=conversation, text="Hello?")
    rested(conversation, 2)
    (message,) = scripted.requests[-1].messages
    assert message.parts == (Text(text="Hello?"),)
    assert types(conversation).count("x.content_set_aside") == 1
    assert Event.objects.get(uid=row.uid).value.content[0].text == "What is this?"


def test_what_waited_because_of_the_failure_goes_on(alice, converse):
    conversation, scripted = converse([REFUSED, reply("Hello.")])
    first = post_message(actor=alice, conversation=conversation, text="Look", attachments=[PICTURE])
    rested(conversation)
    still()
    set_aside(actor=alice, conversation=conversation, event_uid=first.uid)
    post_message(actor=alice, conversation=conversation, text="And now?")
    rested(conversation, 2)
    assert scripted.requests[-1].messages[-1].parts == (Text(text="And now?"),)


def test_a_result_is_set_aside_by_its_own_id_and_the_turn_can_go_on(alice, converse):
    tool = CustomTool(name="camera", description="Takes a picture.")
    script = [reply(call("camera")), REFUSED, reply("I see nothing.")]
    conversation, scripted = converse(script, custom_tools=(tool,))
    post_message(actor=alice, conversation=conversation, text="Go")
    rested(conversation)
    use = Event.objects.get(conversation=conversation, type="agent.custom_tool_use")
    result = answer_custom_tool(
        actor=alice, conversation=conversation, call_uid=use.uid, content=(PICTURE,)
    )
    rested(conversation, 2)
    still()
    error = Event.objects.get(conversation=conversation, type="session.error").value.error
    assert error.event_ids == (use.uid,)
    row = set_aside(actor=alice, conversation=conversation, event_uid=result.uid)
    assert row.value.event_id == use.uid
    request_retry(actor=alice, conversation=conversation)
    rested(conversation, 3)
    answer = scripted.requests[-1].messages[-1].parts[0]
    assert "set aside" in answer.content[0].text


def test_nothing_is_set_aside_where_nothing_failed_or_is_not_a_message(alice, converse, stuck):
    conversation, row, _ = stuck
    for uid in ("sevt_none", "\0"):
        with pytest.raises(NotFound):
            set_aside(actor=alice, conversation=conversation, event_uid=uid)
    rest = Event.objects.get(conversation=conversation, type="session.status_idle")
    with pytest.raises(Conflict):
        set_aside(actor=alice, conversation=conversation, event_uid=rest.uid)
    well, _ = converse([reply("Hello.")])
    said = post_message(actor=alice, conversation=well, text="Hi")
    rested(well)
    still()
    with pytest.raises(Conflict):
        set_aside(actor=alice, conversation=well, event_uid=said.uid)
    with pytest.raises(NotFound):  # another conversation's message
        set_aside(actor=alice, conversation=well, event_uid=row.uid)


def test_mallory_and_bob_set_nothing_aside(mallory, bob, stuck):
    conversation, row, _ = stuck
    for person in (mallory, bob):
        with pytest.raises(NotFound):
            set_aside(actor=person, conversation=conversation, event_uid=row.uid)
    assert "x.content_set_aside" not in types(conversation)


# --- doors ----------------------------------------------------------------------------------------


def by_page(alice, acme, conversation, uid):
    browser = Client()
    browser.force_login(alice)
    return browser.post(reverse("conversations:set-aside", args=[conversation.uid, uid]))


def by_v1(alice, acme, conversation, uid):
    scopes = TokenScope.values
    secret = create_token(actor=alice, organisation=acme, name="p", scopes=scopes).secret
    address = f"/v1/sessions/{conversation.uid}/x_set_aside"
    answer = Client(headers={"x-api-key": secret}).post(
        address, {"event_id": uid}, "application/json"
    )
    assert answer.status_code == 200, answer.content
    return answer


def by_api(alice, acme, conversation, uid):
    frame = incoming.parse(json.dumps({"type": "set_aside", "event_id": uid}))
    (answer,) = commands.act(frame, actor=alice, conversation=conversation)
    assert answer["type"] == "accepted"


def by_command(alice, acme, conversation, uid):
    call_command("agent", "set-aside", conversation.uid, uid, "--user", alice.username)


@pytest.mark.parametrize("door", [by_page, by_v1, by_api, by_command])
def test_every_door_sets_aside(alice, acme, stuck, door):
    conversation, row, _ = stuck
    door(alice, acme, conversation, row.uid)
    assert types(conversation).count("x.content_set_aside") == 1
    drawn = "".join(page(conversation).units)
    assert "What is this?" in drawn
    assert "set aside" in drawn


def test_the_answer_to_a_frame_names_the_fields_that_had_no_effect(alice, stuck):
    conversation, row, _ = stuck
    sent = {"type": "set_aside", "event_id": row.uid, "colour": "red", "key": "k"}
    frame = incoming.parse(json.dumps(sent))

    (answer,) = commands.act(frame, actor=alice, conversation=conversation)

    assert (answer["type"], answer["ignored"], answer["key"]) == ("accepted", ["colour"], "k")
