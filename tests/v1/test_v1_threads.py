"""The threads of a session on `/v1`: paged, filtered by status, read by the SDK's own types."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.beta.sessions import (
    BetaManagedAgentsSessionThread,
    BetaManagedAgentsStreamSessionThreadEvents,
)
from django.test import Client, RequestFactory
from pydantic import TypeAdapter

from accounts.actions.tokens import create_token
from accounts.models import TokenScope, User
from agents.actions.own import make_own_agent
from agents.narrowing import Wishes
from conversations.actions.conversations import create_conversation
from conversations.actions.sharing import share_conversation, unshare_conversation
from conversations.log import append
from conversations.models import Conversation
from harness.events import (
    EndTurn,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionUpdated,
)
from harness.history import Entry
from v1.streams import Following
from wire.ids import thread_id

pytestmark = pytest.mark.django_db

THREADS = TypeAdapter(list[BetaManagedAgentsSessionThread])
EVENTS = TypeAdapter(list[BetaManagedAgentsStreamSessionThreadEvents])


@pytest.fixture
def program(alice, acme) -> Client:
    issued = create_token(
        actor=alice, organisation=acme, name="t", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    return Client(headers={"x-api-key": issued.secret})


@pytest.fixture
def family(alice, acme, converse) -> list[Conversation]:
    """A session, three conversations below it and one below the second of these."""
    session, _ = converse()

    def below(parent: Conversation) -> Conversation:
        return create_conversation(
            actor=alice,
            organisation=acme,
            agent=session.agent_version.agent,
            environment=session.environment,
            parent=parent,
        )

    children = [below(session) for _ in range(3)]
    converse()
    return [session, *children, below(children[1])]


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    body = answer.json()
    return [one.id for one in THREADS.validate_python(body["data"])]


def threads(program: Client, session: Conversation, query: str = "") -> Any:
    return program.get(f"/v1/sessions/{session.uid}/threads{query}")


def test_all_threads_come_the_sessions_own_first(program, family):
    answer = threads(program, family[0])
    assert ids(answer) == [thread_id(one.uid) for one in family]
    assert answer.json()["next_page"] is None
    parents = [one["parent_thread_id"] for one in answer.json()["data"]]
    first, second = thread_id(family[0].uid), thread_id(family[2].uid)
    assert parents == [None, first, first, first, second]


def test_threads_are_paged(program, family):
    found: list[str] = []
    page = ""
    for _ in range(3):
        answer = threads(program, family[0], f"?limit=2{page}")
        found += ids(answer)
        page = f"&page={answer.json()['next_page']}"
    assert answer.json()["next_page"] is None
    assert found == [thread_id(one.uid) for one in family]
    assert threads(program, family[1]).status_code == 404, "a thread is no session"
    assert threads(program, family[0], "?limit=1001").status_code == 400


def test_a_page_of_other_threads_is_refused(program, family, converse):
    page = threads(program, family[0], "?limit=2").json()["next_page"]
    other, _ = converse()
    for query in (f"?page={page}&statuses[]=idle", "?page=made-up"):
        assert threads(program, family[0], query).status_code == 400
    assert threads(program, other, f"?page={page}").status_code == 400


def test_threads_are_filtered_by_status(program, family):
    Conversation.objects.filter(pk=family[1].pk).update(status="running")
    Conversation.objects.filter(pk=family[2].pk).update(status="terminated")
    assert ids(threads(program, family[0], "?statuses[]=running")) == [thread_id(family[1].uid)]
    both = ids(threads(program, family[0], "?statuses[]=running&statuses[]=terminated"))
    assert both == [thread_id(one.uid) for one in family[1:3]]
    assert threads(program, family[0], "?statuses[]=asleep").status_code == 400


def test_a_threads_own_events_tell_its_status_as_a_threads(program, family):
    child = family[1]
    append(
        child.pk,
        [
            Entry.of(SessionStatusRunning()),
            Entry.of(SessionStatusIdle(stop_reason=EndTurn())),
            Entry.of(SessionStatusTerminated()),
        ],
    )
    thread = thread_id(child.uid)
    address = f"/v1/sessions/{family[0].uid}/threads/{thread}/events"
    told = EVENTS.validate_python(program.get(address).json()["data"])
    assert [one.type for one in told] == [
        f"session.thread_status_{status}" for status in ("running", "idle", "terminated")
    ]
    assert {one.session_thread_id for one in told} == {thread}
    assert {one.agent_name for one in told} == {child.agent_version.agent.name}
    assert told[1].stop_reason.type == "end_turn"
    for kind, count in (("session.thread_status_idle", 1), ("session.status_idle", 0)):
        found = program.get(f"{address}?types[]={kind}").json()["data"]
        assert len(found) == count, kind


def test_a_sessions_own_thread_tells_its_status_as_the_sessions(program, family):
    append(family[0].pk, [Entry.of(SessionStatusRunning())])
    for address in ("events", f"threads/{thread_id(family[0].uid)}/events"):
        (told,) = program.get(f"/v1/sessions/{family[0].uid}/{address}").json()["data"]
        assert told["type"] == "session.status_running"


def test_who_reads_a_session_reads_and_follows_its_threads_until_the_share_ends(
    alice, bob, acme, family
):
    session, child = family[0], family[1]
    append(child.pk, [Entry.of(SessionStatusRunning())])
    share = share_conversation(actor=alice, conversation=session, user_uid=bob.uid, role="viewer")
    issued = create_token(
        actor=bob, organisation=acme, name="t", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    address = f"/v1/sessions/{session.uid}/threads/{thread_id(child.uid)}"
    listed = Client(headers={"x-api-key": issued.secret}).get(f"{address}/events").json()["data"]
    request = RequestFactory().get(f"{address}/stream", headers={"x-api-key": issued.secret})
    following = Following(request, session.uid, thread_id(child.uid))
    news = following.read(0)
    assert ([one["type"] for one in news.events], news.over) == (
        [one["type"] for one in listed],
        None,
    )
    unshare_conversation(actor=alice, conversation=session, share_uid=share.uid)
    ended = following.read(0)
    assert ended.over is not None
    assert (ended.events, ended.over["type"]) == ((), "session.deleted")


def test_who_reads_a_session_is_not_told_what_somebodys_private_agent_is_told(
    alice, bob, acme, environment, make_agent
):
    """As nowhere else; the owner reads it back."""
    mine = make_own_agent(
        actor=alice,
        organisation=acme,
        base=make_agent("base"),
        name="Mine",
        description="",
        wishes=Wishes(instructions="A secret of mine."),
    )
    session = create_conversation(
        actor=alice, organisation=acme, agent=mine, environment=environment
    )
    below = create_conversation(
        actor=alice, organisation=acme, agent=mine, environment=environment, parent=session
    )
    share_conversation(actor=alice, conversation=session, user_uid=bob.uid, role="viewer")
    append(session.pk, [Entry.of(SessionUpdated(overrides={"custom_tools": []}))])

    def told(person: User) -> str:
        scopes = [TokenScope.CONVERSATIONS_READ]
        issued = create_token(actor=person, organisation=acme, name="t", scopes=scopes)
        address = f"/v1/sessions/{session.uid}"
        thread = f"{address}/threads/{thread_id(below.uid)}"
        reading = Client(headers={"x-api-key": issued.secret})
        addresses = (address, f"{address}/threads", thread, f"{address}/events")
        answers = [reading.get(each) for each in addresses]
        assert {answer.status_code for answer in answers} == {200}
        request = RequestFactory().get(address, headers={"x-api-key": issued.secret})
        followed = [str(Following(request, session.uid).read(0).events)]
        return "".join([*(answer.content.decode() for answer in answers), *followed])

    assert told(alice).count("A secret of mine.") >= 5
    assert "secret" not in told(bob)


def test_mallory_finds_no_threads_of_alices_session(mallory, elsewhere, family):
    issued = create_token(
        actor=mallory, organisation=elsewhere, name="t", scopes=[TokenScope.CONVERSATIONS_READ]
    )
    stranger = Client(headers={"x-api-key": issued.secret})
    assert threads(stranger, family[0]).status_code == 404
