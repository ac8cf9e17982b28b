"""What answers a question, or answers it before it is asked, takes `approvals:decide` at every door."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.api.authentication import caller_with
from accounts.models import Organisation, TokenScope, User
from agents.models import Agent, AgentVersion, Environment
from api import incoming
from api.commands import scope_of
from api.visitors import Visitor
from approvals.decisions import asks_less
from conversations.actions.conversations import create_conversation
from conversations.actions.messages import set_feature
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, Features, Permission, ToolRule
from harness.errors import Forbidden
from tests.approvals.asking import asks
from tests.architecture.sources import PRODUCT, called_in, mentions
from tests.conversations.conftest import MakeAgent

pytestmark = pytest.mark.django_db(transaction=True)

WRITE, DECIDE = TokenScope.CONVERSATIONS_WRITE, TokenScope.APPROVALS_DECIDE

FRAMES: dict[str, tuple[dict[str, Any], TokenScope]] = {
    "message": ({"content": "Hello"}, WRITE),
    "interrupt": ({}, WRITE),
    "cancel": ({}, WRITE),
    "tool_approval_response": ({"request_id": "sevt_1", "decision": "approve"}, DECIDE),
    "tool_approval_response: no": ({"request_id": "sevt_1", "decision": "deny"}, DECIDE),
    "tool_approval_response: all": ({"request_id": "sevt_1", "decision": "auto_approve"}, DECIDE),
    "plan_approval": ({"decision": "approve"}, DECIDE),
    "plan_approval: no": ({"decision": "reject"}, DECIDE),
    "toggle_plan_mode": ({"enabled": False}, DECIDE),
    "toggle_plan_mode: on": ({"enabled": True}, WRITE),
    "toggle_teams": ({"enabled": False}, WRITE),
    "toggle_teams: on": ({"enabled": True}, WRITE),
    "toggle_approval": ({"enabled": False}, DECIDE),
    "toggle_approval: on": ({"enabled": True}, WRITE),
    "toggle_tracing": ({"enabled": False}, WRITE),
    "set_aside": ({"event_id": "sevt_1"}, WRITE),
    "redact": ({"event_id": "sevt_1"}, WRITE),
    "toggle_tracing: on": ({"enabled": True}, WRITE),
}
"""Every frame that does something, and the scope it takes."""
HARMLESS = {"ping", "auth"}


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)


def secret_of(user: User, organisation: Organisation, *scopes: TokenScope) -> str:
    issued = create_token(actor=user, organisation=organisation, name="Tests", scopes=scopes)
    return issued.secret


def test_every_frame_that_does_something_is_in_the_table() -> None:
    assert {name.partition(":")[0] for name in FRAMES} == set(incoming.TYPES) - HARMLESS


@pytest.mark.django_db
@pytest.mark.parametrize("scope", TokenScope)
def test_each_frame_takes_its_scope_and_no_other_does(
    alice: User, acme: Organisation, scope: TokenScope
) -> None:
    visitor = Visitor(alice, caller_with(secret_of(alice, acme, scope)))
    for name, (fields, wanted) in FRAMES.items():
        frame = incoming.parse(json.dumps({"type": name.partition(":")[0], **fields}))

        assert scope_of(frame) == wanted, name
        if scope == wanted:
            visitor.require(scope_of(frame))
        else:
            with pytest.raises(Forbidden):
                visitor.require(scope_of(frame))


# --- requests -------------------------------------------------------------------------------------


class World:
    """An agent that holds itself back, and a conversation with it in which a call waits."""

    def __init__(self, alice: User, acme: Organisation, agent: Agent, place: Environment) -> None:
        self.alice, self.acme, self.agent, self.place = alice, acme, agent, place

    def conversation(self) -> Conversation:
        return create_conversation(
            actor=self.alice, organisation=self.acme, agent=self.agent, environment=self.place
        )


@pytest.fixture
def world(
    alice: User, acme: Organisation, make_agent: MakeAgent, environment: Environment
) -> World:
    features = Features(approval=True, plan_mode=True)
    return World(alice, acme, make_agent("Careful", features=features), environment)


def confirm(client: Client, world: World) -> Any:
    asked = asks(world.conversation())
    event = {"type": "user.tool_confirmation", "tool_use_id": asked.call_uid, "result": "allow"}
    where = f"/v1/sessions/{asked.conversation.uid}/events"
    return client.post(where, {"events": [event]}, "application/json")


def resume(client: Client, world: World) -> Any:
    asked = asks(world.conversation())
    answer = {"interruptId": asked.call_uid, "status": "resolved", "payload": {"approved": True}}
    body = {
        "threadId": asked.conversation.uid,
        "runId": "run-1",
        "messages": [],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        "resume": [answer],
    }
    return client.post("/agui", body, "application/json")


def begin_session_without(feature: str) -> Callable[[Client, World], Any]:
    def begin(client: Client, world: World) -> Any:
        body = {
            "agent": world.agent.uid,
            "environment_id": world.place.uid,
            "x_features": {feature: False},
        }
        return client.post("/v1/sessions", body, "application/json")

    begin.__name__ = f"begin_session_without_{feature}"
    return begin


def begin_chat_without(feature: str) -> Callable[[Client, World], Any]:
    def begin(client: Client, world: World) -> Any:
        body = {"preset": world.agent.uid, f"enable_{feature}": False}
        return client.post("/api/chat", body, "application/json")

    begin.__name__ = f"begin_chat_without_{feature}"
    return begin


def tightened(agent: Agent, **config: Any) -> None:
    """Staff give it a version that is held back more: the one from before stays to be chosen."""
    assert agent.current is not None
    stored = AgentConfig(**{**agent.current.stored_config, **config}).model_dump(mode="json")
    number = agent.current.number + 1
    agent.current = AgentVersion.objects.create(agent=agent, number=number, stored_config=stored)
    agent.save(update_fields=["current"])


def begin_with_version(client: Client, world: World, number: int, **more: Any) -> Any:
    chosen = {"type": "agent", "id": world.agent.uid, "version": number}
    body = {"agent": chosen, "environment_id": world.place.uid, **more}
    return client.post("/v1/sessions", body, "application/json")


def begin_with_a_version_from_before_a_rule(client: Client, world: World) -> Any:
    tightened(world.agent, tools=(ToolRule(tool="bash", permission="always_ask"),))
    return begin_with_version(client, world, 1)


def begin_with_a_version_from_before_a_switch(client: Client, world: World) -> Any:
    tightened(world.agent, features=Features())
    tightened(world.agent, features=Features(approval=True))
    return begin_with_version(client, world, 2)


def drop_asking(client: Client, world: World) -> Any:
    """A session asks before commands, and then no more."""
    toolset = {
        "type": "agent_toolset_20260401",
        "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}],
    }
    body = {
        "agent": {"type": "agent_with_overrides", "id": world.agent.uid, "tools": [toolset]},
        "environment_id": world.place.uid,
    }
    begun = client.post("/v1/sessions", body, "application/json")
    assert begun.status_code == 200, begun.content
    toolset["configs"][0]["permission_policy"] = {"type": "always_allow"}  # type: ignore[index]
    where = f"/v1/sessions/{begun.json()['id']}"
    return client.post(where, {"agent": {"tools": [toolset]}}, "application/json")


ACTS = [
    confirm,
    resume,
    begin_session_without("approval"),
    begin_session_without("plan_mode"),
    begin_chat_without("approval"),
    begin_chat_without("plan_mode"),
    begin_with_a_version_from_before_a_rule,
    begin_with_a_version_from_before_a_switch,
    drop_asking,
]
OTHERS = [scope for scope in TokenScope if scope is not DECIDE]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_a_request_that_decides_takes_the_scope(
    world: World, act: Callable[[Client, World], Any]
) -> None:
    refused = act(Client(headers={"x-api-key": secret_of(world.alice, world.acme, *OTHERS)}), world)
    # The stream of AG-UI tells of a refusal in its first frame.
    said = b"".join(refused.streaming_content) if refused.streaming else refused.content
    assert b"approvals:decide" in said

    allowed = act(
        Client(headers={"x-api-key": secret_of(world.alice, world.acme, *TokenScope)}), world
    )
    assert allowed.status_code == 200


def test_what_only_holds_the_agent_back_takes_no_such_scope(world: World) -> None:
    client = Client(headers={"x-api-key": secret_of(world.alice, world.acme, *OTHERS)})
    body = {"agent": world.agent.uid, "environment_id": world.place.uid}
    for features in ({}, {"approval": True}, {"teams": False}, {"plan_mode": True}):
        begun = client.post("/v1/sessions", {**body, "x_features": features}, "application/json")
        assert begun.status_code == 200, begun.content

    conversation = world.conversation()
    set_feature(actor=world.alice, conversation=conversation, feature="plan_mode", enabled=True)


def test_a_version_that_holds_the_agent_back_as_much_takes_no_such_scope(world: World) -> None:
    tightened(world.agent, instructions="Be brief.")
    client = Client(headers={"x-api-key": secret_of(world.alice, world.acme, *OTHERS)})
    for number in (1, 2):
        assert begin_with_version(client, world, number).status_code == 200

    tightened(world.agent, features=Features(approval=True))
    stricter = begin_with_version(client, world, 1)
    assert stricter.status_code == 200
    loosened = begin_with_version(client, world, 1, x_features={"approval": False})
    assert loosened.status_code == 403


def test_a_refused_version_begins_nothing(world: World) -> None:
    client = Client(headers={"x-api-key": secret_of(world.alice, world.acme, *OTHERS)})
    refused = begin_with_a_version_from_before_a_rule(client, world)
    assert refused.status_code == 403
    assert not Conversation.objects.exists()


DOORS = {
    # Tokens come in here; each is in the tables above, or tried in `tests/pipelines/test_doors.py`.
    "agui/following.py",
    "agui/servers.py",  # it only adds rules that ask: tests/agui
    "api/chat.py",
    "api/commands.py",
    "api/conversations.py",  # forks: tests/conversations/test_forking.py
    "api/pipelines.py",
    "mcpdoor/asking.py",  # by that scope: tests/mcpdoor/test_tasks.py
    "mcpdoor/tools.py",  # with an agent as it is: it takes no version, rule or switch
    "v1/events.py",
    "v1/sessions.py",
    # Nobody is at a door: what a token may not do was refused when the order was kept
    # (`schedules.actions.orders`), and trials are begun by those who manage the agent.
    "schedules/running.py",
    "evals/running.py",
    "pipelines/running.py",  # likewise, when a run was started (`pipelines.actions.runs`)
    # People in their browsers, and the operator's shell.
    "approvals/admin.py",
    "terminal/local.py",
    "terminal/pipelines.py",
    "chat/consumers.py",
    "chat/views/branches.py",
    "approvals/views/approvals.py",
    "chat/views/changes.py",
    "chat/views/creation.py",
    "pipelines/views/definitions.py",
    "pipelines/views/runs.py",
    "tryouts/views.py",
}
DECIDING = {
    "answer_as_shown",
    "begin_conversation",
    "begin_session",
    "change_tools",
    "create_conversation",
    "decide_approval",
    "decide_call",
    "decide_step",
    "fork_conversation",
    "fork_session",
    "send_events",
    "set_feature",
    "start_run",
}


def test_no_other_door_decides_or_switches() -> None:
    found = {
        str(path)
        for path in PRODUCT
        if "actions" not in path.parts and mentions(path, DECIDING) and called_in(path) & DECIDING
    }

    assert found == DOORS


def test_asking_less_is_to_drop_what_holds_back_or_to_allow_anew() -> None:
    def rule(permission: Permission, tool: str = "bash") -> ToolRule:
        return ToolRule(tool=tool, permission=permission)

    ask, allow, deny = rule("always_ask"), rule("always_allow"), rule("always_deny")
    assert asks_less([ask], [])
    assert asks_less([deny], [])
    assert asks_less([], [allow])
    assert asks_less([deny], [allow])
    assert not asks_less([], [ask])
    assert not asks_less([ask], [deny])
    assert not asks_less([allow], [])
    assert not asks_less([allow, ask], [ask, allow])
