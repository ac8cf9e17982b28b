"""What agents say to each other: untrusted content goes where their words go."""

from __future__ import annotations

import pytest

from accounts.models import User
from agents.models import Environment
from approvals.models import Approval
from chat.presentation import frames
from conversations.actions.children import answer_of, begin_child, tell_agent
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.actions.sharing import share_conversation
from conversations.models import Conversation
from harness.content import text_of
from harness.errors import Conflict, Invalid, NotFound
from providers.scripted import Hold, call, reply, say
from tests.conversations.conftest import Converse, rested, types, until
from tests.conversations.strangers import more_tools, then_send, turn, upload, why_it_asks

__all__ = ["more_tools"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("more_tools")]


def child_of(
    parent: Conversation, playing: Conversation, environment: Environment, text: str = "Do it."
) -> Conversation:
    """A child of `parent` with the agent of another conversation, whose script it plays."""
    return begin_child(
        actor=parent.owner,
        parent=parent,
        agent=playing.agent_version.agent,
        environment=environment,
        text=text,
    )


def tainted(alice: User, converse: Converse) -> Conversation:
    conversation, _ = converse([reply(call("read_file", path="notes.txt")), reply("Read.")])
    upload(alice, conversation, "notes.txt", "evil words\n")
    turn(alice, conversation)
    return conversation


def test_a_child_begins_with_what_its_parent_had_read(
    alice: User, converse: Converse, environment: Environment
) -> None:
    parent = tainted(alice, converse)
    playing, _ = converse(then_send())

    child = child_of(parent, playing, environment)

    reason = why_it_asks(rested(child))
    assert "(notes.txt: it was uploaded, by way of the agent above)" in reason
    assert child.parent == parent


def test_a_child_at_work_hears_that_somebody_was_let_in_above(
    alice: User, bob: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse()
    hold = Hold()
    playing, _ = converse([reply(say("Hm", hold))])
    child = child_of(parent, playing, environment)
    until(hold.reached.is_set)

    share_conversation(actor=alice, conversation=parent, user_uid=bob.uid, role="viewer")

    hold.release.set()
    assert "x.readers_joined" in types(rested(child))
    assert not parent.events.filter(type="x.readers_joined").exists(), "it does not work"


def test_a_child_of_a_parent_that_read_nothing_is_not_asked_about(
    alice: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse([])
    playing, _ = converse(then_send())

    assert why_it_asks(rested(child_of(parent, playing, environment))) == ""


def test_an_agents_word_does_not_end_what_only_a_persons_ends(
    alice: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse([])
    playing, _ = converse(
        [
            reply(call("fetch", url="x")),
            reply("Read."),
            *then_send(),
            *then_send(),
        ]
    )
    child = rested(child_of(parent, playing, environment))

    tell_agent(actor=alice, sender=parent, receiver=child, text="Now send it.")
    rested(child, 2)
    assert "Untrusted content (fetch)" in why_it_asks(child)

    (asked,) = Approval.objects.filter(conversation=child)
    decide_call(actor=alice, conversation=child, call_uid=asked.call_uid, allow=False)
    rested(child, 3)

    assert turn(alice, child, 4) == ""


def test_what_a_child_has_read_comes_back_with_its_answer(
    alice: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse(then_send())
    playing, _ = converse(
        [reply(call("fetch", url="x")), reply("The page says: obey."), reply("!")]
    )
    child = rested(child_of(parent, playing, environment))
    post_message(actor=alice, conversation=child, text="Thank you.")
    rested(child, 2)

    answer = answer_of(actor=alice, child=child)
    assert (
        text_of(answer.content) if not isinstance(answer.content, str) else answer.content
    ) == "!"
    assert answer.untrusted
    assert answer.untrusted_by == "fetch, by way of the agent below"

    tell_agent(actor=alice, sender=child, receiver=parent, text="I have read it.")
    assert "(fetch, by way of the agent below)" in why_it_asks(rested(parent))


def test_a_child_that_read_nothing_brings_nothing_back(
    alice: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse(then_send())
    playing, _ = converse([reply("Seven.")])
    child = rested(child_of(parent, playing, environment))

    answer = answer_of(actor=alice, child=child)
    assert (answer.content, answer.untrusted) == ("Seven.", False)
    tell_agent(actor=alice, sender=child, receiver=parent, text="Seven.")
    assert why_it_asks(rested(parent)) == ""


def test_the_page_says_that_an_agent_wrote(
    alice: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse([])
    playing, _ = converse([reply("Seven.")])
    child = rested(child_of(parent, playing, environment))

    first, *_rest = frames.page(child, limit=10).units
    assert "Another agent wrote" in str(first)
    assert "alice" not in str(first)


def test_only_parent_and_child_of_the_same_person_speak_to_each_other(
    alice: User, mallory: User, converse: Converse, environment: Environment
) -> None:
    parent, _ = converse([])
    other, _ = converse([reply("Seven.")])
    child = rested(child_of(parent, other, environment))

    for sender, receiver in ((parent, other), (other, parent), (child, child)):
        with pytest.raises(NotFound):
            tell_agent(actor=alice, sender=sender, receiver=receiver, text="Hello.")
    with pytest.raises(NotFound):
        tell_agent(actor=mallory, sender=parent, receiver=child, text="Hello.")
    with pytest.raises(NotFound):
        begin_child(
            actor=mallory,
            parent=parent,
            agent=other.agent_version.agent,
            environment=environment,
            text="Hello.",
        )
    with pytest.raises(NotFound):
        answer_of(actor=mallory, child=child)
    with pytest.raises(NotFound):
        answer_of(actor=alice, child=parent)
    assert parent.children.count() == 1
    assert child.events.filter(type="user.message").count() == 1


def test_an_empty_word_and_one_too_many_are_refused(
    alice: User, converse: Converse, environment: Environment, settings: object
) -> None:
    parent, _ = converse([])
    playing, _ = converse([reply("Seven.")])
    with pytest.raises(Invalid):
        child_of(parent, playing, environment, text=" ")
    assert not parent.children.exists()

    child = rested(child_of(parent, playing, environment))
    settings.AGENTSITE_QUEUED_MESSAGES = 0  # type: ignore[attr-defined]
    with pytest.raises(Conflict):
        tell_agent(actor=alice, sender=parent, receiver=child, text="More.")
