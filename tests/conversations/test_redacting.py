"""What a person takes out of a conversation stands nowhere any more that this server reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from api import commands, incoming
from audit.models import AuditEntry
from chat.presentation.frames import changes, page
from chat.presentation.frozen import frozen
from conversations.actions.links import make_link
from conversations.actions.messages import post_message, withdraw_message
from conversations.actions.redacting import redact_content
from conversations.log import append
from conversations.models import Conversation, Event, Link
from conversations.search import matching, words_of
from harness.content import Text
from harness.errors import Conflict, Forbidden, NotFound
from harness.events import (
    AgentMessage,
    AgentThreadContextCompacted,
    AgentToolResult,
    AgentToolUse,
    EndTurn,
    InputTaken,
    SessionStatusIdle,
    SessionStatusRunning,
    UserMessage,
)
from harness.history import Entry
from harness.texts import Texts
from harness.transcript import build_messages
from keeping.export import as_json, as_markdown
from providers.scripted import reply
from tests.conversations.conftest import rested, still, types

SECRET = "swordfish"

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(alice, converse) -> dict[str, Any]:
    """A conversation in which a secret was said by everybody, and summed up."""
    conversation, _ = converse()
    message = Entry.of(UserMessage(content=(Text(text=f"It is {SECRET}."),)))
    append(conversation.pk, [message], actor=alice)
    Conversation.objects.filter(pk=conversation.pk).update(title=f"It is {SECRET}.")
    call = Entry.of(AgentToolUse(name="echo", input={}))
    answer = Entry.of(AgentMessage(content=(Text(text=f"So, {SECRET}"),)))
    more = Entry.of(AgentMessage(content=(Text(text=f"; {SECRET}!"),), continues=answer.uid))
    result = AgentToolResult(tool_use_id=call.uid, content=(Text(text=SECRET),))
    entries = [
        Entry.of(SessionStatusRunning()),
        Entry.of(InputTaken(event_ids=(message.uid,))),
        call,
        Entry.of(result),
        answer,
        more,
        Entry.of(SessionStatusIdle(stop_reason=EndTurn())),
    ]
    append(conversation.pk, entries)
    conversation.refresh_from_db()
    return {
        "conversation": conversation,
        "message": message.uid,
        "answer": answer.uid,
        "call": call.uid,
    }


def stored(conversation: Conversation) -> str:
    return json.dumps(list(Event.objects.filter(conversation=conversation).values_list("payload")))


def roles_of(conversation: Conversation) -> list[str]:
    rows = Event.objects.filter(conversation=conversation).order_by("seq")
    return [each.role for each in build_messages([row.entry() for row in rows], texts=Texts())]


def everywhere(conversation: Conversation) -> str:
    """All that is read of it: log, page, prompt, exports, titles."""
    conversation.refresh_from_db()
    entries = [
        row.entry() for row in Event.objects.filter(conversation=conversation).order_by("seq")
    ]
    prompt = build_messages(entries, texts=Texts())
    exports = "".join([*as_json(conversation), *as_markdown(conversation)])
    parts = [stored(conversation), *page(conversation).units, repr(prompt), exports]
    return "".join([*parts, conversation.title])


def found(alice) -> int:
    return matching(Conversation.objects.visible_to(alice), words_of(SECRET)).count()


def test_words_that_everybody_said_are_gone_from_everywhere_once_each_was_redacted(alice, told):
    conversation = told["conversation"]
    assert found(alice) == 1
    make_link(actor=alice, conversation=conversation, days=7, details=True, members_only=True)
    for place in ("message", "answer", "call"):
        assert SECRET in everywhere(conversation)
        redact_content(actor=alice, conversation=conversation, event_uid=told[place])
    assert SECRET not in everywhere(conversation)
    assert found(alice) == 0
    link = Link.objects.get()
    assert SECRET not in repr(frozen(link)) + link.title


def test_ids_numbers_and_order_stay_and_the_dialogue_has_the_same_form(alice, told):
    conversation = told["conversation"]
    log = Event.objects.filter(conversation=conversation).order_by("seq")
    before, roles = list(log.values_list("seq", "uid", "type")), roles_of(conversation)
    for place in ("message", "answer", "call"):
        redact_content(actor=alice, conversation=conversation, event_uid=told[place])
    assert list(log.values_list("seq", "uid", "type"))[: len(before)] == before
    assert roles_of(conversation) == roles


def test_a_summary_that_the_words_went_into_goes_with_them_and_an_earlier_one_stays(alice, told):
    conversation = told["conversation"]
    first = Event.objects.get(uid=told["message"])
    summaries = [
        AgentThreadContextCompacted(summary=f"Of {SECRET}", through=told["call"], messages=1),
        AgentThreadContextCompacted(summary=f"Of that: {SECRET}", through=told["answer"]),
    ]
    append(conversation.pk, [Entry.of(each) for each in summaries])
    later = Event.objects.get(uid=told["answer"])
    redact_content(actor=alice, conversation=conversation, event_uid=later.uid)
    kept = Event.objects.filter(conversation=conversation, type="agent.thread_context_compacted")
    one, two = (row.value.summary for row in kept.order_by("seq"))
    assert (SECRET in one, SECRET in two) == (True, False)
    redact_content(actor=alice, conversation=conversation, event_uid=first.uid)
    assert all(SECRET not in row.value.summary for row in kept)


def test_an_open_page_draws_it_anew_in_its_place_as_a_reload_does(alice, told):
    conversation = told["conversation"]
    for place in ("message", "answer", "call"):
        before = page(conversation)
        redact_content(actor=alice, conversation=conversation, event_uid=told[place])
        (unit,) = (
            one for one in changes(conversation, before.seq).units if one["key"] == told[place]
        )
        assert unit["html"] in page(conversation).units
        assert "removed" in unit["html"]


def test_twice_is_once_and_the_audit_log_names_who_without_the_words(alice, told):
    conversation = told["conversation"]
    row = redact_content(actor=alice, conversation=conversation, event_uid=told["message"])
    again = redact_content(actor=alice, conversation=conversation, event_uid=told["message"])
    assert again.pk == row.pk
    entry = AuditEntry.objects.get(action="content_redacted")
    assert entry.actor == alice
    assert SECRET not in json.dumps(entry.details)


def test_a_title_that_a_person_gave_stays(alice, told):
    conversation = told["conversation"]
    Conversation.objects.filter(pk=conversation.pk).update(title="Fish")
    redact_content(actor=alice, conversation=conversation, event_uid=told["message"])
    conversation.refresh_from_db()
    assert conversation.title == "Fish"


@pytest.mark.django_db(transaction=True)
def test_a_message_that_waits_is_withdrawn_first_and_redacted_then(alice, converse):
    conversation, _ = converse([reply("Hello.")])
    post_message(actor=alice, conversation=conversation, text="Hi")
    rested(conversation)
    still()
    waiting = Entry.of(UserMessage(content=(Text(text=SECRET),)))
    append(conversation.pk, [waiting], actor=alice)
    with pytest.raises(Conflict, match="waits"):
        redact_content(actor=alice, conversation=conversation, event_uid=waiting.uid)
    withdraw_message(actor=alice, conversation=conversation, message_uid=waiting.uid)
    still()
    redact_content(actor=alice, conversation=conversation, event_uid=waiting.uid)
    assert SECRET not in stored(conversation)


def test_nobody_else_redacts_and_nothing_that_says_nothing_is_redacted(alice, bob, mallory, told):
    conversation = told["conversation"]
    for person in (bob, mallory):
        with pytest.raises((NotFound, Forbidden)):
            redact_content(actor=person, conversation=conversation, event_uid=told["message"])
    rest = Event.objects.get(conversation=conversation, type="session.status_idle")
    with pytest.raises(Conflict):
        redact_content(actor=alice, conversation=conversation, event_uid=rest.uid)
    for uid in ("sevt_none", "\0"):
        with pytest.raises(NotFound):
            redact_content(actor=alice, conversation=conversation, event_uid=uid)
    assert SECRET in stored(conversation)
    assert "x.content_redacted" not in types(conversation)


def test_the_page_asks_whether_she_is_sure(alice, client_of, told):
    conversation = told["conversation"]
    browser = client_of(alice)
    shown = browser.get(reverse("conversations:event", args=[told["message"]])).content.decode()
    address = reverse("conversations:redact", args=[conversation.uid, told["message"]])
    assert address in shown
    assert browser.post(address).status_code == 400
    assert SECRET in stored(conversation)
    assert browser.post(address, {"sure": "1"}).status_code == 302
    assert told["message"] in {row.value.event_id for row in done(conversation)}
    again = browser.get(reverse("conversations:event", args=[told["message"]])).content.decode()
    assert address not in again


def test_programs_at_the_socket_redact_and_all_are_told(alice, told):
    conversation = told["conversation"]
    sent = {"type": "redact", "event_id": told["answer"], "key": "k"}
    (answer,) = commands.act(
        incoming.parse(json.dumps(sent)), actor=alice, conversation=conversation
    )
    assert (answer["type"], answer["key"]) == ("accepted", "k")
    assert [row.value.event_id for row in done(conversation)] == [told["answer"]]


def done(conversation: Conversation) -> Any:
    return Event.objects.filter(conversation=conversation, type="x.content_redacted")
