"""Several waiting calls are answered by one act: each as it was shown, all or none."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from accounts.models import User
from approvals.actions.approvals import decide_approval
from approvals.models import Approval
from chat.presentation.frames import changes, page
from conversations.actions.messages import edit_message, post_message
from conversations.actions.together import Shown, allow_calls, deny_calls, deny_with_message
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Base64Source, Image, Text
from harness.errors import AlreadyDecided, InputChanged, Invalid, MayNotDecide, NotFound, TooLarge
from harness.events import (
    AgentToolUse,
    InputTaken,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    UserMessage,
)
from harness.history import Entry
from harness.rules import AskTerms
from tests.approvals.asking import a_reviewer
from tests.conversations.conftest import Converse
from tests.pictures import picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("approvals.actions.approvals.wake", "conversations.actions.messages.wake"):
        monkeypatch.setattr(place, lambda _pk: None)


@pytest.fixture
def conversation(converse: Converse) -> Conversation:
    begun: Conversation = converse()[0]
    return begun


def ask_for(conversation: Conversation, number: int, **terms: object) -> list[Approval]:
    """Calls of one step that wait together."""
    uses = [
        Entry.of(
            AgentToolUse(
                name="write_file",
                input={"path": f"{place}.txt", "content": "x"},
                evaluated_permission="ask",
                terms=AskTerms(effect="workspace", **terms),
            )
        )
        for place in range(number)
    ]
    idle = SessionStatusIdle(stop_reason=RequiresAction(event_ids=tuple(use.uid for use in uses)))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), *uses, Entry.of(idle)])
    conversation.refresh_from_db()
    uids = [use.uid for use in uses]
    return sorted(Approval.objects.filter(call_uid__in=uids), key=lambda one: one.pk)


def of(owner: User, conversation: Conversation) -> Conversation:
    conversation.owner = owner
    conversation.save(update_fields=["owner"])
    return conversation


def as_shown(asked: list[Approval]) -> list[Shown]:
    return [Shown(one.call_uid, one.effective_sha256, one.round) for one in asked]


def states(asked: list[Approval]) -> list[str]:
    found = dict(Approval.objects.values_list("pk", "state"))
    return [found[one.pk] for one in asked]


def test_all_that_was_shown_is_allowed_by_one_act(alice: User, conversation: Conversation) -> None:
    asked = ask_for(conversation, 5)
    allow_calls(actor=alice, conversation=conversation, shown=as_shown(asked))
    assert states(asked) == ["approved"] * 5


def test_nothing_is_allowed_where_one_of_them_is_not_as_it_was_shown(
    alice: User, acme: object, conversation: Conversation
) -> None:
    asked = ask_for(conversation, 3, two_people=True)
    seen = as_shown(asked)
    rita = a_reviewer(conversation.organisation)
    decide_approval(
        actor=rita,
        approval=asked[1],
        verdict="approve",
        input_hash=asked[1].effective_sha256,
        seen_round=asked[1].round,
        edited_input={"path": "elsewhere.txt", "content": "y"},
    )
    with pytest.raises(InputChanged):
        allow_calls(actor=alice, conversation=conversation, shown=seen)
    assert states(asked) == ["pending"] * 3
    assert [one.decisions.filter(by=alice).count() for one in asked] == [0, 0, 0]


@pytest.mark.parametrize("shown", [[], [Shown("sevt_1", "", 1)]])
def test_what_nobody_was_shown_is_not_allowed(
    alice: User, conversation: Conversation, shown: list[Shown]
) -> None:
    asked = ask_for(conversation, 1)
    with pytest.raises(Invalid):
        allow_calls(actor=alice, conversation=conversation, shown=shown)
    assert states(asked) == ["pending"]


def test_a_denial_of_all_passes_over_what_somebody_decided_meanwhile(
    alice: User, conversation: Conversation
) -> None:
    asked = ask_for(conversation, 3)
    allow_calls(actor=alice, conversation=conversation, shown=as_shown(asked[:1]))
    calls = [one.call_uid for one in asked]
    deny_calls(actor=alice, conversation=conversation, call_uids=calls, reason="Not so")
    assert states(asked) == ["approved", "denied", "denied"]
    with pytest.raises(AlreadyDecided):
        deny_calls(actor=alice, conversation=conversation, call_uids=calls, reason="Not so")


def test_a_message_that_waits_becomes_the_reason_and_leaves_the_queue(
    alice: User, conversation: Conversation
) -> None:
    asked = ask_for(conversation, 2)
    sent = post_message(actor=alice, conversation=conversation, text="In src")
    edit_message(
        actor=alice, conversation=conversation, message_uid=sent.uid, text="In src instead"
    )
    deny_with_message(
        actor=alice,
        conversation=conversation,
        call_uids=[one.call_uid for one in asked],
        message_uid=sent.uid,
    )
    assert states(asked) == ["denied", "denied"]
    said = Event.objects.filter(conversation=conversation, type="user.tool_confirmation")
    assert {one.payload["deny_message"] for one in said} == {"In src instead"}
    conversation.refresh_from_db()
    assert conversation.queued_count == 0


def test_a_message_that_is_no_reason_stays_in_the_queue_and_denies_nothing(
    alice: User, conversation: Conversation
) -> None:
    asked = ask_for(conversation, 1)
    drawn = Image(source=Base64Source(media_type="image/png", data=b64encode(picture()).decode()))
    with_picture = post_message(
        actor=alice, conversation=conversation, text="Like this", attachments=[drawn]
    )
    long = post_message(actor=alice, conversation=conversation, text="long " * 1_000)
    for sent, refusal in ((with_picture, Invalid), (long, TooLarge)):
        with pytest.raises(refusal):
            deny_with_message(
                actor=alice,
                conversation=conversation,
                call_uids=[asked[0].call_uid],
                message_uid=sent.uid,
            )
    assert states(asked) == ["pending"]
    conversation.refresh_from_db()
    assert conversation.queued_count == 2


@pytest.mark.parametrize("words", [{"by_agent": True}, {"untrusted_by": "a page"}])
def test_words_that_are_no_persons_own_are_no_reason(
    alice: User, conversation: Conversation, words: dict[str, Any]
) -> None:
    asked = ask_for(conversation, 1)
    told = Entry.of(UserMessage(content=(Text(text="Send it."),), **words))
    append(conversation.pk, [told])
    with pytest.raises(Invalid):
        deny_with_message(
            actor=alice,
            conversation=conversation,
            call_uids=[asked[0].call_uid],
            message_uid=told.uid,
        )
    assert states(asked) == ["pending"]


def test_whose_words_became_the_reason_does_not_decide_on_what_the_agent_does_then(
    alice: User, bob: User, conversation: Conversation
) -> None:
    wish = Entry.of(UserMessage(content=(Text(text="Write it."),)))
    append(conversation.pk, [wish], actor=alice)
    begin = Entry.of(InputTaken(event_ids=(wish.uid,)))
    append(conversation.pk, [Entry.of(SessionStatusRunning()), begin])
    (asked,) = ask_for(conversation, 1, turn=begin.uid)
    told = Entry.of(UserMessage(content=(Text(text="Send it to me instead."),)))
    append(conversation.pk, [told], actor=bob)
    deny_with_message(
        actor=alice,
        conversation=conversation,
        call_uids=[asked.call_uid],
        message_uid=told.uid,
    )
    (after,) = ask_for(conversation, 1, turn=begin.uid)
    assert list(after.also_requested_by.all()) == [bob]


def test_nobody_decides_together_in_anothers_conversation(
    bob: User, mallory: User, staff: User, conversation: Conversation
) -> None:
    asked = ask_for(conversation, 2)
    sent = post_message(actor=conversation.owner, conversation=conversation, text="No")
    calls = [one.call_uid for one in asked]
    for stranger in (bob, mallory, staff):
        with pytest.raises(NotFound):
            allow_calls(actor=stranger, conversation=conversation, shown=as_shown(asked))
        with pytest.raises(NotFound):
            deny_calls(actor=stranger, conversation=conversation, call_uids=calls, reason="")
        with pytest.raises(NotFound):
            deny_with_message(
                actor=stranger, conversation=conversation, call_uids=calls, message_uid=sent.uid
            )
    assert states(asked) == ["pending", "pending"]


def test_calls_of_another_conversation_are_not_answered_through_ones_own(
    alice: User, converse: Converse, conversation: Conversation
) -> None:
    elsewhere: Conversation = converse()[0]
    asked = ask_for(elsewhere, 1)
    with pytest.raises(NotFound):
        allow_calls(actor=alice, conversation=conversation, shown=as_shown(asked))
    assert states(asked) == ["pending"]


def test_what_wants_a_reviewer_is_not_allowed_with_the_rest(
    bob: User, acme: object, converse: Converse
) -> None:
    begun = of(bob, converse()[0])
    asked = ask_for(begun, 2)
    Approval.objects.filter(pk=asked[1].pk).update(reviewers_only=True)
    with pytest.raises(MayNotDecide):
        allow_calls(actor=bob, conversation=begun, shown=as_shown(asked))
    assert "approved" not in states(asked)


def test_the_bar_names_what_waits_for_the_owner_and_goes_with_the_last_answer(
    alice: User, conversation: Conversation
) -> None:
    assert page(conversation).panels["waiting"] == ""
    asked = ask_for(conversation, 2)
    bar = str(page(conversation).panels["waiting"])
    for one in asked:
        assert one.call_uid in bar
        assert one.effective_sha256 in bar
    assert "1 of 2" in bar
    assert "Allow all 2" in bar
    before = conversation.last_seq
    allow_calls(actor=alice, conversation=conversation, shown=as_shown(asked))
    assert changes(conversation, before).panels["waiting"] == ""


def test_the_bar_offers_the_owner_no_call_that_is_not_hers_to_decide(
    bob: User, acme: object, converse: Converse
) -> None:
    begun = of(bob, converse()[0])
    ask_for(begun, 1, reviewers_only=True)
    bar = str(page(begun).panels["waiting"])
    assert "data-call" not in bar
    assert "somebody else" in bar
