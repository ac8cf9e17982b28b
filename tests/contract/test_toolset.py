"""The public toolset through the official SDK: which tools it brings, how their calls are told, and
that each has the policy the wire gave it."""

from __future__ import annotations

from providers.scripted import call, reply
from tests.contract.test_sessions import begin, confirm, idle, listed, wait_for, waiting  # noqa: F401

TOOLSET = "agent_toolset_20260401"
PUBLIC = {"bash", "edit_file", "glob", "grep", "read_file", "web_fetch", "web_search", "write_file"}


def offered(world, opening):
    """The tools that the model was told of in the turn that began with these words."""
    for request in world.service.api.requests:
        if opening in str(request.messages):
            return {tool.name for tool in request.tools}
    raise AssertionError("the model was not asked")


def test_the_toolset_brings_the_public_tools_and_no_other(alice, world, begin):  # noqa: F811
    session, opening = begin(reply("Hello."), tools=[{"type": TOOLSET}])
    idle(alice, session.id)
    assert offered(world, opening) == PUBLIC


def test_this_servers_further_tools_are_opted_into(alice, world, begin, make_agent):  # noqa: F811
    tools = [{"type": TOOLSET, "x_tools": [{"name": "ask_user"}, {"name": "calculator"}]}]
    session, opening = begin(reply("Hello."), tools=tools)
    idle(alice, session.id)
    assert offered(world, opening) == PUBLIC | {"ask_user", "calculator"}
    (toolset,) = session.agent.tools
    assert {one["name"] for one in toolset.x_tools} == {"ask_user", "calculator"}
    written_back = make_agent(tools=[tool.to_dict() for tool in session.agent.tools])
    assert written_back.tools == session.agent.tools


def test_calls_have_the_names_and_arguments_that_the_configuration_has(alice, begin):  # noqa: F811
    session, _ = begin(
        reply(call("write_file", path="a.txt", content="one\ntwo")),
        reply(call("read_file", path="a.txt", start_line=2)),
        reply(call("edit_file", path="a.txt", old_text="one", new_text="1")),
        reply(call("bash", command="cat a.txt", timeout=9)),
        reply("Done."),
        tools=[{"type": TOOLSET}],
    )
    idle(alice, session.id)
    calls = [one for one in listed(alice, session.id) if one.type == "agent.tool_use"]
    assert [(one.name, one.input) for one in calls] == [
        ("write", {"file_path": "a.txt", "content": "one\ntwo"}),
        ("read", {"file_path": "a.txt", "view_range": [2, -1]}),
        ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}),
        ("bash", {"command": "cat a.txt", "timeout_ms": 9000}),
    ]
    assert [one.x_name for one in calls] == ["write_file", "read_file", "edit_file", "bash"]
    assert {one.evaluated_permission for one in calls} == {"allow"}


def test_an_input_is_changed_in_the_words_it_was_shown_in(alice, begin):  # noqa: F811
    asks = {"enabled": True, "permission_policy": {"type": "always_ask"}}
    session, _ = begin(
        reply(call("write_file", path="a.txt", content="x")),
        reply("Written."),
        tools=[{"type": TOOLSET, "default_config": asks}],
    )
    (uid,) = waiting(alice, session.id)
    (asked,) = [one for one in listed(alice, session.id) if one.id == uid]
    edited = {**asked.input, "file_path": "b.txt"}
    alice.beta.sessions.events.send(session.id, events=[confirm(uid, x_edited_input=edited)])
    wait_for(alice, session.id, lambda _: alice_read(alice, session.id))
    (result,) = alice_read(alice, session.id)
    assert not result.is_error
    assert "Created b.txt" in "".join(block.text for block in result.content)


def alice_read(client, session_id):
    return [one for one in listed(client, session_id) if one.type == "agent.tool_result"]


def test_a_shell_does_not_ask_because_writing_does(alice, begin):  # noqa: F811
    asks = {"name": "write", "permission_policy": {"type": "always_ask"}}
    session, _ = begin(
        reply(call("bash", command="echo free")),
        reply("Said."),
        tools=[{"type": TOOLSET, "configs": [asks]}],
    )
    idle(alice, session.id)
    (told,) = [one for one in listed(alice, session.id) if one.type == "agent.tool_use"]
    assert (told.name, told.evaluated_permission, told.evaluation.type) == (
        "bash",
        "allow",
        "always_allow",
    )
    assert listed(alice, session.id)[-1].stop_reason.type == "end_turn"
