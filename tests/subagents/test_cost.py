"""What the start of a subagent asks of the database: as little as it needs, and each thing once."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from conversations.actions.messages import post_message
from conversations.log import append
from conversations.models import Conversation
from harness.events import AgentToolUse, CallHandedOut
from harness.history import Entry
from providers.scripted import reply
from subagents.models import Subagent
from subagents.starting import begin
from subagents.tools import ASK, CARRIER
from tests.conversations.conftest import Converse

pytestmark = pytest.mark.django_db

MOST = 52
"""Three of them so that its files go where it does not begin, whatever ends its process."""
BOOKKEEPING = re.compile(r"(SAVEPOINT|RELEASE|BEGIN|COMMIT|INSERT|UPDATE)")


def test_the_start_of_one_asks_the_database_little_and_hardly_anything_twice(
    alice: User, converse: Converse
) -> None:
    conversation, _ = converse([reply("Done.")], features={"teams": True})
    post_message(actor=alice, conversation=conversation, text="Begin.")
    _begin_one(conversation)  # builds what is built once
    queries = _begin_one(conversation)
    assert len(queries) <= MOST, "\n".join(queries)
    asked = Counter(sql for sql in queries if not BOOKKEEPING.match(sql))
    again = {sql for sql, count in asked.items() if count > 1}
    # The row itself and the number of those at work: before files are copied, and with the tree locked. The
    # one above: by whoever locks it first, and by the action that begins a child.
    assert len(again) <= 4, "\n".join(again)


def _begin_one(conversation: Conversation) -> list[str]:
    given = {"description": "Look", "prompt": "Look around.", "agent": "explore"}
    call = Entry.of(AgentToolUse(name=ASK, input=given))
    out = CallHandedOut(tool_use_id=call.uid, name=ASK, effect="read", input=given, carrier=CARRIER)
    append(conversation.pk, [call, Entry.of(out)])
    row = Subagent.objects.get(call_uid=call.uid)
    with CaptureQueriesContext(connection) as queries:
        begin(row.pk)
    row.refresh_from_db()
    assert row.state == Subagent.State.RUNNING, row.detail
    return [each["sql"] for each in queries.captured_queries]
