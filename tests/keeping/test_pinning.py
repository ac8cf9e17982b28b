"""Who may write in a conversation pins its messages; what is pinned follows branches and removals."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from chat.presentation import frames
from chat.presentation.panels import panels_of
from conversations.actions.branching import rewind
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message
from conversations.actions.redacting import redact_content
from conversations.actions.sharing import share_conversation
from conversations.models import Conversation, Event, ShareRole
from harness.errors import Conflict, Forbidden, LimitReached, NotFound, TooLarge
from keeping.actions import pinning
from keeping.actions.pinning import pin_message
from keeping.export import as_markdown
from keeping.pinnedmessages import pinned_in
from tests.conversations.conftest import types
from tests.conversations.scenes import begin, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(alice, acme, environment, make_agent) -> Conversation:
    made = begin(alice, acme, make_agent("Coding"), environment)
    talk(made, "Never touch the ledger.", "I will not.")
    talk(made, "Go on.", "Done.")
    made.refresh_from_db()
    return made


def event(conversation: Conversation, kind: str, number: int = 0) -> Event:
    return Event.objects.filter(conversation=conversation, type=kind).order_by("seq")[number]


def texts(conversation: Conversation) -> list[str]:
    conversation.refresh_from_db()
    return [each.text for each in pinned_in(conversation)]


def test_messages_and_answers_are_pinned_in_the_order_of_the_dialogue(alice, conversation):
    answer = event(conversation, "agent.message")
    message = event(conversation, "user.message")
    for each in (answer, message):
        pin_message(actor=alice, conversation=conversation, event_uid=each.uid)
    assert texts(conversation) == ["Never touch the ledger.", "I will not."]
    assert pin_message(actor=alice, conversation=conversation, event_uid=answer.uid) is None
    pin_message(actor=alice, conversation=conversation, event_uid=answer.uid, pinned=False)
    assert texts(conversation) == ["Never touch the ledger."]
    pins = Event.objects.filter(conversation=conversation, type="x.message_pinned")
    assert [row.actor for row in pins] == [alice] * 3
    assert "let go of a pinned message" in "".join(as_markdown(conversation))


def test_what_is_no_message_too_long_or_too_much_is_refused(alice, conversation, monkeypatch):
    rest = event(conversation, "session.status_idle")
    long = post_message(actor=alice, conversation=conversation, text="x" * 8_001)
    message = event(conversation, "user.message")
    for uid, problem in ((rest.uid, Conflict), ("sevt_none", NotFound), (long.uid, TooLarge)):
        with pytest.raises(problem):
            pin_message(actor=alice, conversation=conversation, event_uid=uid)
    monkeypatch.setattr(pinning, "MOST", 1)
    pin_message(actor=alice, conversation=conversation, event_uid=message.uid)
    with pytest.raises(LimitReached):
        pin_message(
            actor=alice,
            conversation=conversation,
            event_uid=event(conversation, "user.message", 1).uid,
        )
    monkeypatch.setattr(pinning, "MOST_CHANGES", 1)
    with pytest.raises(LimitReached):
        pin_message(actor=alice, conversation=conversation, event_uid=message.uid, pinned=False)
    assert texts(conversation) == ["Never touch the ledger."]


def test_on_a_branch_that_was_left_nothing_is_pinned_and_it_can_be_let_go_of(alice, conversation):
    second = event(conversation, "user.message", 1)
    for each in (event(conversation, "user.message"), second):
        pin_message(actor=alice, conversation=conversation, event_uid=each.uid)
    rewind(actor=alice, conversation=conversation, event_uid=second.uid)
    assert texts(conversation) == ["Never touch the ledger."]
    answer = event(conversation, "agent.message", 1)
    with pytest.raises(Conflict):
        pin_message(actor=alice, conversation=conversation, event_uid=answer.uid)
    let_go: dict[str, Any] = {"event_uid": second.uid, "pinned": False}
    assert pin_message(actor=alice, conversation=conversation, **let_go) is not None


def test_what_is_taken_out_is_pinned_no_more_and_not_again(alice, conversation):
    message = event(conversation, "user.message")
    pin_message(actor=alice, conversation=conversation, event_uid=message.uid)
    redact_content(actor=alice, conversation=conversation, event_uid=message.uid)
    assert texts(conversation) == []
    pin_message(actor=alice, conversation=conversation, event_uid=message.uid, pinned=False)
    with pytest.raises(Conflict):
        pin_message(actor=alice, conversation=conversation, event_uid=message.uid)


def test_pins_that_nobody_can_see_are_not_counted(alice, conversation, monkeypatch):
    monkeypatch.setattr(pinning, "MOST", 1)
    first, second = (event(conversation, "user.message", number) for number in (0, 1))
    answer = event(conversation, "agent.message")
    pin_message(actor=alice, conversation=conversation, event_uid=second.uid)
    rewind(actor=alice, conversation=conversation, event_uid=second.uid)
    pin_message(actor=alice, conversation=conversation, event_uid=first.uid)
    with pytest.raises(LimitReached):
        pin_message(actor=alice, conversation=conversation, event_uid=answer.uid)
    redact_content(actor=alice, conversation=conversation, event_uid=first.uid)
    pin_message(actor=alice, conversation=conversation, event_uid=answer.uid)
    assert texts(conversation) == ["I will not."]


def test_a_fork_has_the_pins_of_what_it_copied(alice, conversation):
    first, second = (event(conversation, "user.message", number) for number in (0, 1))
    for each in (first, second):
        pin_message(actor=alice, conversation=conversation, event_uid=each.uid)
    forked = fork_conversation(actor=alice, conversation=conversation, event_uid=second.uid)
    assert texts(forked) == ["Never touch the ledger."]


def test_who_may_write_pins_and_nobody_else(alice, bob, mallory, conversation):
    message = event(conversation, "user.message")
    given: dict[str, Any] = {"conversation": conversation, "event_uid": message.uid}
    for person in (bob, mallory):
        with pytest.raises(NotFound):
            pin_message(actor=person, **given)
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    with pytest.raises(Forbidden):
        pin_message(actor=bob, **given)
    assert "x.message_pinned" not in types(conversation)
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.WRITER
    )
    pinned = pin_message(actor=bob, **given)
    assert pinned is not None
    assert pinned.actor == bob


# --- doors ----------------------------------------------------------------------------------------


def test_on_the_page_of_a_message_it_is_pinned_and_the_conversation_lists_it(
    alice, mallory, conversation, client_of
):
    page, message = client_of(alice), event(conversation, "user.message")
    address = reverse("conversations:event", args=[message.uid])
    pin = reverse("conversations:pin", args=[conversation.uid, message.uid])
    assert 'value="true">Pin<' in page.get(address).content.decode()
    seen = conversation.last_seq
    assert panels_of(conversation, {"pinned"}) == {"pinned": ""}
    page.post(pin, {"pinned": "true"})
    conversation.refresh_from_db()
    drawn = frames.changes(conversation, seen).panels["pinned"]
    assert "1 pinned message" in drawn
    assert f'href="{conversation.get_absolute_url()}?at={message.uid}#u-{message.uid}"' in drawn
    assert 'value="false">Unpin<' in page.get(address).content.decode()
    assert client_of(mallory).post(pin, {"pinned": "false"}).status_code == 404
    assert texts(conversation) == ["Never touch the ledger."]
    page.post(pin, {"pinned": "false"})
    assert texts(conversation) == []


def test_a_program_pins_lists_and_lets_go_and_mallorys_does_not(
    alice, mallory, acme, elsewhere, conversation
):
    def program(user, organisation) -> Any:
        scopes = [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
        made = create_token(actor=user, organisation=organisation, name="Program", scopes=scopes)
        client = Client(headers={"Authorization": f"Bearer {made.secret}"})
        return lambda method, body=None: getattr(client, method)(
            f"/api/conversations/{conversation.uid}/pinned", body, content_type="application/json"
        )

    hers, theirs = program(alice, acme), program(mallory, elsewhere)
    answer = event(conversation, "agent.message")
    made = hers("post", {"event_id": answer.uid})
    listed = [{"event_id": answer.uid, "by": "agent", "text": "I will not."}]
    assert (made.status_code, made.json(), hers("get").json()) == (200, listed, listed)
    assert theirs("get").status_code == 404
    assert theirs("post", {"event_id": answer.uid, "pinned": False}).status_code == 404
    assert hers("post", {"event_id": answer.uid, "pinned": "no"}).status_code == 422
    assert hers("post", {}).status_code == 422
    assert hers("post", {"event_id": answer.uid, "pinned": False}).json() == []
