"""What a turn asks the tables before it asks its model: a person waits for each of these statements."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from conversations import claims
from conversations.actions.messages import post_message
from conversations.kits import plan_kit
from conversations.models import Conversation
from tests.conversations.conftest import Converse

MOST_TO_POST = 14
MOST_TO_CLAIM = 8
MOST_TO_PLAN = 8


def asked(act: Callable[[], object]) -> list[str]:
    """Without the marks of transactions."""
    with CaptureQueriesContext(connection) as caught:
        act()
    marks = ("SAVEPOINT", "RELEASE", "BEGIN")
    return [each["sql"] for each in caught if not each["sql"].startswith(marks)]


def turn(alice: User, conversation: Conversation) -> tuple[list[str], list[str], list[str]]:
    def loaded() -> Conversation:
        rows = Conversation.objects.with_what_a_page_shows()
        return rows.get(pk=conversation.pk)

    here = loaded()
    posting = asked(
        lambda: post_message(actor=alice, conversation=here, text="Good morning", key="one")
    )
    claiming = asked(lambda: claims.claim(conversation.pk))
    here = loaded()
    return posting, claiming, asked(lambda: plan_kit(here))


def test_a_turn_of_a_plain_conversation_asks_little_before_its_model(
    alice: User, converse: Converse
) -> None:
    turn(alice, converse()[0])  # what is read once in a process
    posting, claiming, planning = turn(alice, converse()[0])
    assert len(posting) <= MOST_TO_POST, "\n".join(posting)
    assert len(claiming) <= MOST_TO_CLAIM, "\n".join(claiming)
    assert len(planning) <= MOST_TO_PLAN, "\n".join(planning)
