"""A picture or document that no model could open is refused at every door, and nothing is stored: kept,
it would be in every prompt of its conversation from then on."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from conversations.actions.answers import answer_custom_tool
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from harness.agentconfig import CustomTool
from harness.content import Base64Source, Block, Image, Text, as_blocks
from harness.errors import Busy, Invalid
from harness.events import Event as AnyEvent
from harness.events import UserCustomToolResult, UserMessage
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from programs.actions.sending import send_events
from programs.actions.sessions import begin_session
from providers.scripted import call, reply
from spending.actions.budgets import set_budget
from spending.models import Budget
from tests.conversations.conftest import rested, still
from tests.pictures import BROKEN, GOOD, coded, paper
from tools_app import catalogue, media

BAD = Image(source=Base64Source(media_type="image/png", data=BROKEN))
WIRE = {"type": "base64", "media_type": "image/png", "data": BROKEN}

MAY_HOLD_MEDIA = {
    "user.message": "post_message, begin_session",
    "x.message_edited": "text alone",
    "user.custom_tool_result": "answer_custom_tool",
    "user.tool_result": "give_tool_result",
    "agent.tool_result": "the kit's `admit`",
    "agent.mcp_tool_result": "the kit's `admit`",
}
"""Each type of event whose content may hold a picture, and what looks at it before it is stored."""


def test_every_event_that_may_hold_media_has_its_gate():
    holding = {
        kind.model_fields["type"].default
        for kind in typing.get_args(AnyEvent)
        if any(field.annotation == tuple[Block, ...] for field in kind.model_fields.values())
    }
    assert holding == set(MAY_HOLD_MEDIA)


@pytest.mark.django_db(transaction=True)
def test_a_message_with_a_broken_picture_is_refused_and_nothing_is_stored(alice, acme, converse):
    conversation, scripted = converse()
    said = UserMessage(content=(Text(text="Look"), BAD))
    with pytest.raises(Invalid) as refused:
        send_events(actor=alice, conversation=conversation, events=[said])
    assert refused.value.field == "events[0].content[1].source.data"
    assert "PNG, JPEG, GIF or WebP" in refused.value.hint
    with pytest.raises(Invalid):
        post_message(actor=alice, conversation=conversation, text="Look", attachments=[BAD])
    before = Conversation.objects.count()
    with pytest.raises(Invalid) as refused:
        begin_session(
            caller=None,
            actor=alice,
            organisation=acme,
            agent=conversation.agent_version.agent,
            environment=conversation.environment,
            messages=[said],
        )
    assert refused.value.field == "initial_events[0].content[1].source.data"
    assert Conversation.objects.count() == before
    assert not Event.objects.filter(conversation=conversation).exists()
    assert not scripted.requests


@pytest.mark.django_db(transaction=True)
def test_a_custom_tools_broken_picture_is_refused_and_the_call_still_waits(alice, converse):
    tool = CustomTool(name="camera", description="Takes a picture.")
    conversation, _ = converse([reply(call("camera")), reply("Fine.")], custom_tools=(tool,))
    post_message(actor=alice, conversation=conversation, text="Go")
    rested(conversation)
    use = Event.objects.get(conversation=conversation, type="agent.custom_tool_use")
    with pytest.raises(Invalid):
        answer_custom_tool(actor=alice, conversation=conversation, call_uid=use.uid, content=(BAD,))
    answer = UserCustomToolResult(custom_tool_use_id=use.uid, content=(BAD,))
    with pytest.raises(Invalid) as refused:
        send_events(actor=alice, conversation=conversation, events=[answer])
    assert refused.value.field == "events[0].content[0].source.data"
    answer_custom_tool(
        actor=alice, conversation=conversation, call_uid=use.uid, content=as_blocks("Dark.")
    )
    rested(conversation, 2)


@pytest.mark.django_db(transaction=True)
def test_a_tools_broken_picture_reaches_the_model_as_words(alice, converse, monkeypatch):
    good = Image(source=Base64Source(media_type="image/png", data=GOOD))

    def look(_context: ToolContext, _input: dict[str, Any]) -> ToolOutput:
        return ToolOutput((Text(text="Two pictures:"), good, BAD))

    camera = Tool("camera", "Takes pictures.", {"type": "object"}, look, Effect.READ)
    with_camera = {**catalogue.all_tools(), "camera": camera}
    monkeypatch.setattr("conversations.kits.all_tools", lambda: with_camera)
    conversation, scripted = converse([reply(call("camera")), reply("I see.")])
    post_message(actor=alice, conversation=conversation, text="Go")
    rested(conversation)
    stored = Event.objects.get(conversation=conversation, type="agent.tool_result").value
    first, second, third = stored.content
    assert (first.text, second) == ("Two pictures:", good)
    assert "cannot be decoded" in third.text
    assert len(scripted.requests) == 2


@pytest.fixture
def program(alice, acme) -> Client:
    issued = create_token(actor=alice, organisation=acme, name="program", scopes=TokenScope.values)
    return Client(headers={"authorization": f"Bearer {issued.secret}"})


def at_v1(uid: str, block: Any) -> tuple[str, Any]:
    content = [{"type": "text", "text": "Look"}, block]
    return f"/v1/sessions/{uid}/events", {"events": [{"type": "user.message", "content": content}]}


def at_agui(uid: str, block: Any) -> tuple[str, Any]:
    data = {"type": "data", "value": block["source"]["data"], "mimeType": "image/png"}
    part = {"type": "image", "source": data}
    message = {"id": "m", "role": "user", "content": [part]}
    body = {"threadId": uid, "runId": "r", "messages": [message], "tools": [], "context": []}
    return "/agui", {**body, "state": {}, "forwardedProps": {}}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("door", "field"),
    [
        (at_v1, "events[0].content[1].source.data"),
        (at_agui, "messages[0].content[0].source.value"),
    ],
)
def test_doors_of_programs_name_what_is_wrong(
    program, converse, door: Callable[[str, Any], tuple[str, Any]], field: str
):
    conversation, _ = converse()
    address, body = door(conversation.uid, {"type": "image", "source": WIRE})
    answer = program.post(address, body, "application/json")
    assert answer.status_code == 400, answer.content
    assert b"cannot be decoded" in answer.content
    assert json.dumps(field).encode() in answer.content
    assert not Event.objects.filter(conversation=conversation).exists()
    still()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("door", [at_v1, at_agui])
def test_doors_of_programs_say_when_to_come_back_while_other_files_of_hers_are_opened(
    program, alice, converse, door: Callable[[str, Any], tuple[str, Any]]
):
    conversation, _ = converse()
    address, body = door(conversation.uid, {"type": "image", "source": WIRE})
    with media._for_requests.place(alice.pk):
        answer = program.post(address, body, "application/json")
    assert answer.status_code == 429, answer.content
    assert int(answer["Retry-After"]) > 0
    assert b'"busy"' in answer.content
    assert not Event.objects.filter(conversation=conversation).exists()
    still()


@pytest.mark.django_db(transaction=True)
def test_a_service_account_takes_the_place_of_whoever_made_it(alice, acme, environment, make_agent):
    robot = create_service_account(actor=alice, organisation=acme, name="Robot")
    its = create_conversation(
        actor=robot, organisation=acme, agent=make_agent(), environment=environment
    )
    with media._for_requests.place(alice.pk), pytest.raises(Busy, match="of yours"):
        post_message(actor=robot, conversation=its, text="", attachments=[BAD])
    with pytest.raises(Invalid, match="cannot be decoded"):
        post_message(actor=robot, conversation=its, text="", attachments=[BAD])


@pytest.mark.django_db(transaction=True)
def test_a_document_that_is_no_pdf_is_refused(program, converse):
    conversation, _ = converse()
    source = {"type": "base64", "media_type": "application/pdf", "data": GOOD}
    address, body = at_v1(conversation.uid, {"type": "document", "source": source})
    answer = program.post(address, body, "application/json")
    assert answer.status_code == 400
    assert b"cannot be read as a PDF" in answer.content
    assert not Event.objects.filter(conversation=conversation).exists()


@pytest.mark.django_db(transaction=True)
def test_the_pages_of_a_document_are_counted_here_and_held_back_with_its_call(
    program, alice, acme, staff, converse
):
    conversation, scripted = converse(["Never."])
    owns = {"scope": Budget.Scope.USER, "organisation": acme, "user": alice}
    set_budget(actor=staff, unit="tokens", period="day", limit=200_000, **owns)
    source = {"type": "base64", "media_type": "application/pdf", "data": coded(paper(50))}
    address, body = at_v1(conversation.uid, {"type": "document", "source": source})
    answer = program.post(address, body, "application/json")
    assert answer.status_code == 200, answer.content
    rested(conversation)
    said = Event.objects.get(conversation=conversation, type="user.message").value
    assert said.content[1].pages == 50
    assert not scripted.requests
    conversation.refresh_from_db()
    assert conversation.stop_reason == "budget_reached"
    told = program.get(f"/v1/sessions/{conversation.uid}/events").json()["data"]
    (echo,) = [event for event in told if event["type"] == "user.message"]
    assert echo["content"][1] == {
        "type": "document",
        "source": source,
        "title": None,
        "context": None,
    }
    body["events"][0]["content"][1]["pages"] = 1
    assert program.post(address, body, "application/json").status_code == 400
