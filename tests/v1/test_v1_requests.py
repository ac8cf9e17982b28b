"""What `/v1` makes of requests that are odd, repeated, or come at the same moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.http import HttpRequest
from django.test import Client

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from agents.actions.agents import archive_agent, create_agent
from agents.models import Agent
from conversations.actions.conversations import archive_conversation
from conversations.log import append
from harness.agentconfig import AgentConfig
from harness.content import Text
from harness.errors import Invalid
from harness.events import UserMessage
from harness.history import Entry
from live.items import Delta, OpenText
from providers.scripted import reply
from tests.conversations.conftest import rested, still, types
from tests.patience import PATIENCE
from tests.skills_app.conftest import released  # noqa: F401 - a fixture
from tools_app.media import TEXT_CHARACTERS
from v1.agents import AgentUpdate
from v1.deployments import DeploymentUpdate
from v1.stream import _frame, _Previews
from v1.streams import _after


@pytest.fixture
def program(alice, acme) -> Client:
    """Alice's, with every scope there is; a fault is answered, as a server would."""
    issued = create_token(actor=alice, organisation=acme, name="program", scopes=TokenScope.values)
    return Client(headers={"x-api-key": issued.secret}, raise_request_exception=False)


def post(program: Client, address: str, body: Any = None, **headers: str) -> Any:
    return program.post(address, body or {}, "application/json", headers=headers)


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["sessions", "sessions/{uid}/events", "agents"])
def test_a_body_nested_too_deep_is_refused_at_every_address(program, converse, address):
    conversation, _script = converse()
    deep = '{"events": ' + "[" * 100_000 + "]" * 100_000 + "}"
    answer = program.post(f"/v1/{address.format(uid=conversation.uid)}", deep, "application/json")
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.django_db
def test_a_document_of_text_that_is_too_long_is_refused_at_its_place(program, converse):
    conversation, _script = converse()
    before = types(conversation)
    source = {"type": "text", "media_type": "text/plain", "data": "x" * (TEXT_CHARACTERS + 1)}
    content = [{"type": "text", "text": "Read."}, {"type": "document", "source": source}]
    body = {"events": [{"type": "user.message", "content": content}]}
    answer = post(program, f"/v1/sessions/{conversation.uid}/events", body)
    assert answer.status_code == 413
    assert "source.data" in answer.json()["error"]["message"]
    assert "at most 1,000,000" in answer.json()["error"]["message"]
    assert types(conversation) == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    [
        "sessions/%00",
        "sessions?agent_id=%00",
        "sessions/{uid}/events?types[]=%00",
        "sessions/{uid}/resources/%00",
        "sessions/{uid}/threads/%00",
        "agents/%00",
        "environments/%00",
        "files/%00",
        "vaults/%00",
        "vaults/%00/credentials/%00",
        "files?after_id=%00",
        "models/%00",
    ],
)
def test_a_nul_in_an_address_finds_nothing(program, converse, address):
    """PostgreSQL takes no such text, so that asking it would be a fault."""
    conversation, _script = converse()
    answer = program.get(f"/v1/{address.format(uid=conversation.uid)}")
    assert answer.status_code in {200, 400, 404}
    if answer.status_code == 200:
        assert answer.json()["data"] == []


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["agent", "agent_with_overrides"])
@pytest.mark.parametrize("version", [2**31, 2**63, 2**70])
def test_a_version_past_every_column_is_none_of_the_agents(
    program, make_agent, environment, kind, version
):
    chosen = {"type": kind, "id": make_agent("one").uid, "version": version}
    event = {"type": "user.message", "content": [{"type": "text", "text": "Hello"}]}
    bodies = {
        "sessions": {"environment_id": environment.uid},
        "deployments": {
            "name": "D",
            "environment_id": environment.uid,
            "initial_events": [event],
        },
        "agents": {"name": "A", "model": "demo"},
        f"agents/{chosen['id']}": {"version": version, "system": "Anew."},
    }
    for address, body in bodies.items():
        if address == "deployments" and kind != "agent":
            continue
        if address == "agents":
            roster = {"type": "coordinator", "agents": [{**chosen, "type": "agent"}]}
            body = {**body, "multiagent": roster}
        elif "/" not in address:
            body = {**body, "agent": chosen}
        answer = post(program, f"/v1/{address}", body)
        assert 400 <= answer.status_code < 500, (address, answer.content)
        assert "/" in address or str(version) in answer.json()["error"]["message"]


CONFIGURED: dict[str, dict[str, Any]] = {
    "bare": {},
    "careful": {
        "effort": "high",
        "instructions": "Help.",
        "tools": [
            {"tool": "*", "permission": "always_ask", "note": "Because of the audit."},
            {"tool": "bash", "options": {"two_people": True}, "permission": "always_ask"},
            {"tool": "web_fetch", "permission": "always_deny"},
        ],
    },
    "of a page": {
        "roster": {
            "only": True,
            "inline": True,
            "agents": [{"agent": "self", "name": "twin"}],
            "advisor": "demo",
        }
    },
    "without anybody": {"roster": {"only": True}},
    "coordinator": {
        "roster": {"only": True, "form": "coordinator", "agents": [{"agent": "self"}]},
        "features": {"teams": True},
    },
}


@pytest.mark.django_db
@pytest.mark.parametrize("what", CONFIGURED)
def test_an_agent_that_is_written_back_as_it_was_read_stays_the_version_it_is(
    program,
    alice,
    acme,
    released,  # noqa: F811
    what,
):
    use = {"name": "code-review", "version": "stable", "digest": released().digest}
    agent = create_agent(
        actor=alice,
        organisation=acme,
        name="One",
        description="",
        config=AgentConfig.model_validate(
            {"provider": "demo", "skills": [use], **CONFIGURED[what]}
        ),
    )
    read = program.get(f"/v1/agents/{agent.uid}").json()
    sent = {name: read[name] for name in AgentUpdate.model_fields}
    answer = post(program, f"/v1/agents/{agent.uid}", sent)
    assert answer.json() == read
    agent.refresh_from_db()
    assert agent.versions.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"vault_ids": ["vlt_none"]}, "vault_ids[0]"),
        (
            {"resources": [{"type": "memory_store", "memory_store_id": "memstore_none"}]},
            "resources[0]",
        ),
    ],
)
def test_a_refusal_names_the_place_in_a_list_as_it_is_written(
    program, make_agent, environment, more, field
):
    body = {"agent": make_agent("one").uid, "environment_id": environment.uid}
    answer = post(program, "/v1/sessions", body | more)
    assert answer.json()["error"]["details"]["field"] == field


ODD_TOOL = {
    "type": "custom",
    "name": "a b",
    "description": "D",
    "input_schema": {"type": "object"},
}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({"tools": [ODD_TOOL]}, "agent.tools[0].name"),
        ({"mcp_servers": [{"type": "url", "name": "No", "url": "x"}]}, "agent.mcp_servers"),
    ],
)
def test_what_is_wrong_with_the_agent_of_a_session_is_named_below_it(
    program, make_agent, environment, odd, field
):
    wanted = {"type": "agent_with_overrides", "id": make_agent("one").uid}
    body = {"environment_id": environment.uid}
    session = post(program, "/v1/sessions", {**body, "agent": wanted["id"]}).json()["id"]
    for address, sent in (
        ("/v1/sessions", {**body, "agent": {**wanted, **odd}}),
        (f"/v1/sessions/{session}", {"agent": odd}),
    ):
        answer = post(program, address, sent)
        assert answer.json()["error"]["details"]["field"] == field, answer.content


@pytest.mark.django_db
def test_a_path_that_names_no_file_is_refused_by_the_name_it_was_sent_under(
    program, make_agent, environment
):
    data = SimpleUploadedFile("a.txt", b"a")
    file = {"type": "file", "file_id": program.post("/v1/files", {"file": data}).json()["id"]}
    body = {"agent": make_agent("one").uid, "environment_id": environment.uid}
    session = post(program, "/v1/sessions", body).json()["id"]
    odd = {**file, "mount_path": "/mnt/session/a/"}
    for address, sent, field in (
        ("/v1/sessions", {**body, "resources": [odd]}, "resources"),
        (f"/v1/sessions/{session}/resources", odd, "mount_path"),
    ):
        answer = post(program, address, sent)
        assert answer.json()["error"]["details"]["field"] == field, answer.content


@pytest.mark.django_db
def test_what_is_wrong_with_one_of_several_events_is_named_where_it_stands(program, converse):
    conversation, _script = converse()
    said = [{"type": "text", "text": text} for text in ("Hello", " ")]
    events = [{"type": "user.message", "content": [text]} for text in said]
    outcome = {"type": "user.define_outcome", "description": "D", "max_iterations": 1}
    outcome |= {"rubric": {"type": "text", "content": "- One"}}
    allowed = {"type": "user.tool_confirmation", "tool_use_id": "sevt_1", "result": "allow"}
    address = f"/v1/sessions/{conversation.uid}/events"
    tried = {
        "events[1].content": events,
        "events[1].x_checks": [events[0], outcome | {"x_checks": [{"run": "a", "criterion": 2}]}],
        "events[1].deny_message": [events[0], allowed | {"deny_message": "No."}],
    }
    for field, sent in tried.items():
        answer = post(program, address, {"events": sent})
        assert answer.status_code == 400, answer.content
        assert answer.json()["error"]["details"]["field"] == field
    body = {"agent": conversation.agent_version.agent.uid, "initial_events": events}
    answer = post(program, "/v1/sessions", body | {"environment_id": conversation.environment.uid})
    assert answer.json()["error"]["details"]["field"] == "initial_events[1].content"


@pytest.mark.django_db
def test_what_an_action_refuses_comes_with_what_to_do(program, alice, converse):
    conversation, _script = converse()
    session = f"/v1/sessions/{conversation.uid}"
    odd = {"act": "regenerate", "event_id": "sevt_1", "model": "a\x01b"}
    said = {"type": "user.message", "content": [{"type": "text", "text": "Hello"}]}
    order = {
        "name": "D",
        "agent": conversation.agent_version.agent.uid,
        "environment_id": conversation.environment.uid,
        "initial_events": [said],
        "vault_ids": ["vlt_1", "vlt_1"],
    }
    answers = [
        post(program, f"{session}/events", {"events": [said]}, **{"Idempotency-Key": "k" * 201}),
        post(program, f"{session}/x_branch", odd),
        post(program, "/v1/deployments", order),
    ]
    archive_conversation(actor=alice, conversation=conversation, archived=True)
    answers.append(post(program, session, {"title": "Anew"}))
    assert [answer.status_code for answer in answers] == [400, 400, 400, 409]
    assert all(answer.json()["error"]["details"].get("hint") for answer in answers)


@pytest.mark.django_db
def test_a_deployment_that_is_written_back_as_it_was_read_stays_as_it_is(
    program, make_agent, environment
):
    source = {"type": "text", "media_type": "text/plain", "data": "To be read."}
    content = [{"type": "text", "text": "Read."}, {"type": "document", "source": source}]
    order = {
        "name": "D",
        "agent": make_agent("one").uid,
        "environment_id": environment.uid,
        "initial_events": [{"type": "user.message", "content": content}],
    }
    made = post(program, "/v1/deployments", order).json()
    sent = {name: made[name] for name in DeploymentUpdate.model_fields if name != "schedule"}
    answer = post(program, f"/v1/deployments/{made['id']}", sent)
    assert answer.status_code == 200, answer.content
    assert answer.json() | {"updated_at": ""} == made | {"updated_at": ""}


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["coordinator", "multiagent_20261001"])
def test_a_member_that_is_written_beside_others_leaves_those_as_they_are(
    program, alice, acme, form
):
    """What a page calls them, which of them is the agent itself, and who is offered no more."""

    def made(name: str, **config: Any) -> Agent:
        described = AgentConfig.model_validate({"provider": "demo", **config})
        return create_agent(
            actor=alice, organisation=acme, name=name, description="", config=described
        )

    old, new = made("old"), made("new")
    members = [{"agent": "self", "name": "twin"}, {"agent": old.uid, "name": "elder"}]
    agent = made("One", roster={"only": True, "agents": members, "form": form})
    archive_agent(actor=alice, agent=old)
    body = program.get(f"/v1/agents/{agent.uid}").json()["multiagent"]
    held = body["agents"] if form == "coordinator" else body["subagents"]["predefined_agents"]
    held.append({"type": "agent", "id": new.uid})
    answer = post(program, f"/v1/agents/{agent.uid}", {"multiagent": body})
    assert answer.status_code == 200, answer.content
    agent.refresh_from_db()
    assert agent.current is not None
    named = [(each.agent, each.name) for each in agent.current.config.roster.agents]
    assert named == [("self", "twin"), (old.uid, "elder"), (new.uid, "new")]


ENDS_OF_TIME = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z"]


@pytest.mark.django_db
@pytest.mark.parametrize("moment", ENDS_OF_TIME)
def test_a_moment_at_an_end_of_time_is_refused_where_it_stands(
    program, make_agent, environment, moment
):
    event = {"type": "user.message", "content": [{"type": "text", "text": "Hello"}]}
    order = {
        "name": "D",
        "agent": make_agent("one").uid,
        "environment_id": environment.uid,
        "initial_events": [event],
    }
    vault = post(program, "/v1/vaults", {"display_name": "V"}).json()["id"]
    auth = {
        "type": "mcp_oauth",
        "mcp_server_url": "https://mcp.example.org/",
        "access_token": "long-enough-to-be-one",
    }
    made = post(program, "/v1/deployments", order)
    assert made.status_code == 200, made.content
    tried = {
        ("/v1/deployments", "x_dates[0]"): order | {"x_dates": [moment]},
        (f"/v1/deployments/{made.json()['id']}", "x_dates[0]"): {"x_dates": [moment]},
        (f"/v1/vaults/{vault}/credentials", "auth.expires_at"): {
            "auth": auth | {"expires_at": moment}
        },
    }
    for (address, field), body in tried.items():
        answer = post(program, address, body)
        assert answer.status_code == 400, answer.content
        assert answer.json()["error"]["details"]["field"] == field


@pytest.mark.django_db
@pytest.mark.parametrize("end", ["gt", "gte", "lt", "lte"])
def test_a_cursor_of_agents_is_bound_to_every_filter_however_it_is_spelt(program, make_agent, end):
    make_agent("one"), make_agent("two")
    year = 2020 if end.startswith("g") else 2220

    def ask(**query: Any) -> Any:
        return program.get("/v1/agents", {"limit": 1, "beta": "true"} | query)

    asked = {f"created_at[{end}]": f"{year}-01-01T00:00:00Z", "include_archived": "true"}
    page = ask(**asked).json()["next_page"]
    assert page
    alike = {f"created_at_{end}" if "[" in name else name: asked[name] for name in reversed(asked)}
    assert program.get("/v1/agents", {"page": page, "limit": 5} | alike).status_code == 200
    later = {f"created_at[{end}]": f"{year + 1}-01-01T00:00:00Z"}
    for other in ({}, asked | later, {"include_archived": "true"}):
        refused = ask(page=page, **other)
        assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (400, "page")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address", ["models/one%0Amore", "sessions/%0A/", "no/such%0A", "a%0A%0Ab"]
)
def test_an_address_with_a_line_feed_is_answered_by_this_door_and_not_by_a_page(program, address):
    answer = program.get(f"/v1/{address}")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")


def test_a_number_that_is_no_place_in_a_log_is_refused():
    request = HttpRequest()
    request.META["HTTP_LAST_EVENT_ID"] = "9" * 5_000
    with pytest.raises(Invalid):
        _after(request, None)  # type: ignore[arg-type]


def test_a_number_past_64_bits_does_not_break_a_stream():
    """Models write such inputs; a log that has one could not be followed any more."""
    assert _frame("message", {"input": {"n": 2**70}}, None).endswith(b'"n": %d}}\n\n' % 2**70)


@pytest.mark.parametrize("wanted", [frozenset(), frozenset({"agent.message", "agent.thinking"})])
def test_what_a_running_command_prints_is_no_preview(wanted):
    """It used to break the stream: the clients of this wire know no such text."""
    previews = _Previews(wanted)
    assert previews.delta(Delta("b", "output", 0, "compiling")) == []
    assert previews.open(OpenText("b", "output", None, "compiling")) == []


def test_what_comes_late_of_a_message_that_is_told_announces_nothing():
    previews = _Previews(frozenset({"agent.message"}))
    previews.delta(Delta("b", "text", 0, "Good "))
    previews.concluded([{"type": "agent.message", "id": "b"}])
    assert previews.delta(Delta("b", "text", 5, "morning")) == []
    assert previews.delta(Delta("b", "text", 0, "Good ")) == []
    assert previews.open(OpenText("b", "text", None, "Good morning")) == []


# --- wakes ----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_wake_has_a_lost_message_answered_and_stores_nothing_itself(program, alice, converse):
    conversation, _script = converse([reply("Here.")])
    # As if the process that took it had died before it gave its hint.
    append(conversation.pk, [Entry.of(UserMessage(content=(Text(text="Hello"),)))], actor=alice)
    woken = post(program, f"/v1/sessions/{conversation.uid}/wake")
    assert (woken.status_code, woken.json()["id"]) == (200, conversation.uid)
    rested(conversation)
    before = types(conversation)
    assert before.count("agent.message") == 1
    assert post(program, f"/v1/sessions/{conversation.uid}/wake").status_code == 200
    still()
    assert types(conversation) == before


@pytest.mark.django_db
def test_a_wake_takes_the_scope_for_writing_and_ones_own_session(
    alice, acme, mallory, elsewhere, converse
):
    conversation, _script = converse()
    every = set(TokenScope.values)
    for user, organisation, scopes, status in (
        (alice, acme, every - {"conversations:write"}, 403),
        (mallory, elsewhere, every, 404),
    ):
        issued = create_token(actor=user, organisation=organisation, name="program", scopes=scopes)
        client = Client(headers={"x-api-key": issued.secret})
        refused = post(client, f"/v1/sessions/{conversation.uid}/wake")
        assert refused.status_code == status


# --- at the same moment ---------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_what_many_merge_at_the_same_moment_is_all_there(program, converse, acme, make_agent):
    """Metadata and agents are read, merged and written: nobody writes what another one changed."""
    conversation, _script = converse()
    agent = make_agent("Shared", organisation=acme)
    names = [f"key{number}" for number in range(8)]
    ready = threading.Barrier(len(names))

    def write(name: str) -> list[int]:
        try:
            ready.wait(PATIENCE)
            return [
                post(program, f"/v1/{address}", {"metadata": {name: "1"}}).status_code
                for address in (f"sessions/{conversation.uid}", f"agents/{agent.uid}")
            ]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(names)) as threads:
        assert list(threads.map(write, names)) == [[200, 200]] * len(names)
    for row in (conversation, agent):
        row.refresh_from_db()
        assert sorted(row.metadata) == names
