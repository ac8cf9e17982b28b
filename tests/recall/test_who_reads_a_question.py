"""What a call acts on may be its owner's own: where a conversation is shared, those see it who may decide."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.actions.tokens import create_token
from accounts.api.authentication import caller_with
from accounts.models import Organisation, TokenScope, User
from agentsite.asgi import application
from agui.following import find_or_begin
from approvals.models import Approval
from chat.presentation import frames
from conversations.actions.deciding import decide_call
from conversations.actions.sharing import share_conversation
from conversations.log import append
from conversations.models import Conversation, Event
from harness.errors import NotFound
from harness.events import AgentToolUse
from harness.history import Entry
from memory.actions.remembering import own_store, remember
from memory.models import Memory
from terminal.door import Stored
from terminal.local import LocalDoor
from tests.approvals.asking import a_reviewer, asks
from tests.cast import ClientOf
from tests.patience import PATIENCE
from v1.outgoing import wire_events

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "The office is in Lisbon."
INSTEAD = "shown to those alone who may decide on it"


@pytest.fixture
def mine(alice: User, acme: Organisation) -> Memory:
    store = own_store(actor=alice, organisation=acme)
    return remember(actor=alice, store=store, text=TEXT, key="office").memory


@pytest.fixture
def asking(alice: User, converse: Any, mine: Memory) -> Approval:
    return asks(converse()[0], {"id": mine.uid}, tool="forget_memory")


def let_in(conversation: Conversation, user: User, role: str = "viewer") -> User:
    share_conversation(
        actor=conversation.owner, conversation=conversation, user_uid=user.uid, role=role
    )
    return user


def token_of(user: User, organisation: Organisation) -> str:
    scopes = [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
    issued = create_token(actor=user, organisation=organisation, name="Tests", scopes=scopes)
    return issued.secret


def doors(user: User, approval: Approval, client_of: ClientOf) -> dict[str, str]:
    """What the reader is given of the conversation, by where."""
    conversation, uid = approval.conversation, approval.conversation.uid
    browser = client_of(user)
    program = Client(headers={"x-api-key": token_of(user, approval.organisation)})
    older = browser.get(f"/c/{uid}/older/", {"before": conversation.last_seq + 1})
    looks: Any = LocalDoor(user, approval.organisation).follow(uid)
    with closing(looks):
        kept = (item.event for item in looks if isinstance(item, Stored))
        call = next(event for event in kept if event["id"] == approval.call_uid)
    return {
        "page": browser.get(f"/c/{uid}/").content.decode(),
        "older": older.content.decode(),
        "socket": str(frames.changes(conversation, 0, reader=user).units),
        "v1": program.get(f"/v1/sessions/{uid}/events").content.decode(),
        "terminal": str(call),
    }


def test_a_viewer_reads_that_there_is_more_and_not_what_the_memory_says(
    alice: User, bob: User, asking: Approval, client_of: ClientOf
) -> None:
    let_in(asking.conversation, bob)
    for place, shown in doors(alice, asking, client_of).items():
        assert TEXT in shown, place
        assert INSTEAD not in shown, place
    decide_call(
        actor=alice, conversation=asking.conversation, call_uid=asking.call_uid, allow=False
    )
    for place, shown in doors(bob, asking, client_of).items():
        assert TEXT not in shown, place
        assert INSTEAD in shown, place


def test_who_may_decide_is_shown_it(bob: User, asking: Approval, client_of: ClientOf) -> None:
    let_in(asking.conversation, bob, "decider")
    for place, shown in doors(bob, asking, client_of).items():
        assert TEXT in shown, place


def test_a_reviewer_whom_it_is_shared_with_is_shown_it(
    acme: Organisation, asking: Approval, client_of: ClientOf
) -> None:
    rita = let_in(asking.conversation, a_reviewer(acme))
    assert TEXT in doors(rita, asking, client_of)["page"]


def test_agui_is_for_the_owner_alone(bob: User, acme: Organisation, asking: Approval) -> None:
    let_in(asking.conversation, bob)
    caller = caller_with(token_of(bob, acme))
    assert caller is not None
    with pytest.raises(NotFound):
        find_or_begin(caller, asking.conversation.uid, "", "")


@pytest.mark.parametrize("after", ["", "?after=0"], ids=["from now on", "the log"])
@pytest.mark.parametrize("role", ["viewer", "decider"])
async def test_the_socket_of_programs_shows_it_to_whom_may_decide(
    bob: User, acme: Organisation, asking: Approval, role: str, after: str
) -> None:
    def prepared() -> tuple[str, str]:
        let_in(asking.conversation, bob, role)
        return asking.conversation.uid, token_of(bob, acme)

    uid, secret = await sync_to_async(prepared)()
    line = WebsocketCommunicator(
        application,
        f"/api/chat/{uid}/ws{after}",
        headers=[(b"authorization", f"Bearer {secret}".encode())],
    )
    assert (await line.connect(timeout=PATIENCE))[0]
    frame: dict[str, Any] = {}
    while frame.get("type") != "tool_approval_request":
        frame = orjson.loads((await line.receive_output(timeout=PATIENCE))["text"])
    await line.disconnect(timeout=PATIENCE)
    told = str(frame["tools"][0]["acts_on"])
    assert (TEXT in told, INSTEAD in told) == (role == "decider", role == "viewer")


def looks_at_approvals(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as asked:
        act()
    return sum('"approvals_approval"' in query["sql"] for query in asked)


def test_however_many_calls_are_shown_what_they_act_on_is_asked_once(
    alice: User, converse: Any, mine: Memory
) -> None:
    conversation: Conversation = converse()[0]
    log = Event.objects.filter(conversation=conversation)
    acts: dict[str, Callable[[], object]] = {
        "page": lambda: frames.page(conversation, reader=alice),
        "v1": lambda: wire_events(log.all(), reader=alice),
    }

    def looks() -> dict[str, int]:
        return {place: looks_at_approvals(act) for place, act in acts.items()}

    without = looks()
    quiet = AgentToolUse(name="memory", input={"command": "view", "path": "/memories"})
    append(conversation.pk, [Entry.of(quiet) for _ in range(3)])
    assert looks() == {"page": without["page"], "v1": 1}
    asks(conversation, {"id": mine.uid}, tool="forget_memory")
    once = looks()
    for _ in range(3):
        asks(conversation, {"id": mine.uid}, tool="forget_memory")
    assert looks() == once
    assert once["v1"] == 1
