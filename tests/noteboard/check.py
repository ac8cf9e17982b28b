"""What the board does once it is installed. Run by `test_an_app_joins` with the board's settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.urls import reverse

from chat.presentation.frames import page as page_of
from conversations.actions.messages import post_message
from conversations.kitparts import NameTaken
from conversations.kits import tools_of
from conversations.projections import Turn, follow
from conversations.sandboxing import plan_sandbox
from harness.events import AgentThinking, AppEvent, dump, know, load
from keeping.export import as_json, as_markdown
from providers.scripted import call, reply
from tests.conversations.conftest import Converse, rested

from .events import NotePinned
from .kitpart import PIN
from .models import Note

pytestmark = pytest.mark.django_db(transaction=True)


def pinned(converse: Converse):
    conversation, script = converse([reply(call("pin_note", text="Buy milk")), reply("Done.")])
    post_message(actor=conversation.owner, conversation=conversation, text="Pin it")
    return rested(conversation), script


def test_its_tool_is_offered_and_its_event_becomes_a_row_with_the_log(converse):
    conversation, script = pinned(converse)
    assert [note.text for note in Note.objects.filter(conversation=conversation)] == ["Buy milk"]
    (row,) = conversation.events.filter(type="x.note_pinned")
    assert Note.objects.get().seq == row.seq
    assert load(row.payload) == NotePinned(text="Buy milk")
    assert "pin_note" in {tool.name for tool in script.requests[0].tools}
    result = conversation.events.get(type="agent.tool_result").value
    assert result.content[0].text == "It hangs on the board of alice."


def test_its_section_stands_in_the_prompt(converse):
    _conversation, script = pinned(converse)
    assert "There are 0 notes on the board." in script.requests[0].system


def test_its_event_is_told_on_the_page(converse):
    conversation, _script = pinned(converse)
    page = page_of(conversation)
    assert any("Pinned: Buy milk" in unit for unit in page.units)


def test_its_page_shows_alices_notes_to_alice_alone(converse, client_of, alice, mallory):
    pinned(converse)
    assert "Buy milk" in client_of(alice).get("/notes/").content.decode()
    assert "Buy milk" not in client_of(mallory).get("/notes/").content.decode()


def test_a_name_that_is_taken_is_refused_whoever_takes_it():
    class Another(AppEvent):
        type: str = "x.note_pinned"

    class Ours(AppEvent):
        type: str = "agent.message"

    for kind in (Another, Ours):
        with pytest.raises(ValueError, match="event"):
            know(kind)
    with pytest.raises(TypeError, match="plain"):
        follow(lambda *_given: None, AgentThinking, turn=Turn.AFTER)


def test_nobodys_tool_stands_in_anothers_place(converse):
    conversation, _script = converse([])
    sandbox = plan_sandbox(conversation, conversation.config, Path())
    with pytest.raises(NameTaken, match="bash"):
        tools_of(sandbox, {"bash": PIN})


def test_it_is_read_where_the_log_is_read(converse, client_of, alice):
    conversation, _script = pinned(converse)
    (row,) = conversation.events.filter(type="x.note_pinned")
    events = json.loads("".join(as_json(conversation)))["events"]
    assert [event for event in events if event["id"] == row.uid]
    assert "Done." in "".join(as_markdown(conversation))
    address = reverse("conversations:conversation", args=[conversation.uid])
    assert "Pinned: Buy milk" in client_of(alice).get(address).content.decode()


def test_a_payload_of_it_loads_as_it_was_stored():
    event = NotePinned(text="A")
    assert load(dump(event)) == event
