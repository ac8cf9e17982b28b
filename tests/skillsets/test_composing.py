"""Composed skills: their tools run in a sandbox that shows them nothing else, and their calls are ours."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.models import Environment
from agentsite.seeding import seed
from conversations.actions.deciding import decide_call
from conversations.actions.messages import post_message
from conversations.models import Conversation
from harness.agentconfig import ToolRule
from harness.content import text_of
from harness.errors import Invalid
from harness.events import AgentToolUse
from jobs.engine import engine
from providers.scripted import Hold, call, reply, say
from sandbox.policy import read_policy
from skills_app.actions.skills import kill_skill
from skills_app.folder import faults_of, read_folder
from skills_app.manifest import Exposed, Exposes, SkillPolicy
from skillsets.channel import Channel, Forged
from skillsets.composing import policy_for
from tests.conversations.conftest import rested, until
from tests.heartbeat import MOST_SECONDS, is_bearable, longest_stall
from tests.hostile import DEAR_SCHEMAS
from tests.skills_app.conftest import text_of as skill_text
from tools_app.workspace import workspace_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("needs_bubblewrap"),
]

WORK = """
from agentsite_skill import CallFailed, call_skill, call_tool

{body}
"""


def files(
    body: str,
    *,
    name: str = "reports",
    calls: tuple[str, ...] = ("read_file", "write_file"),
    requires: tuple[str, ...] = (),
    output: dict[str, Any] | None = None,
    **policy: int,
) -> dict[str, bytes]:
    """A skill with one tool, `work`, whose function has this body."""
    tool = {
        "name": "work",
        "description": "Works.",
        "entry": "scripts/work.py:work",
        "input": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
        "output": output,
    }
    manifest = {"tools": [tool], "calls": list(calls), "policy": policy, "requires": list(requires)}
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    source = WORK.format(body=f"def work(text):\n{lines}")
    return {
        "SKILL.md": skill_text(name),
        "agentsite.yaml": json.dumps(manifest).encode(),
        "scripts/work.py": source.encode(),
    }


def begun(converse: Any, alice: Any, name: str = "reports", **more: Any) -> Conversation:
    asks = reply(call(f"skill__{name}__work", text="go"))
    conversation: Conversation
    conversation, _script = converse([asks, reply("Done.")], skills=[{"name": name}], **more)
    post_message(actor=alice, conversation=conversation, text="Go")
    return conversation


def uses(conversation: Conversation) -> dict[str, AgentToolUse]:
    rows = conversation.events.filter(type="agent.tool_use").order_by("seq")
    return {row.uid: row.value for row in rows if isinstance(row.value, AgentToolUse)}


def result(conversation: Conversation, tool: str = "skill__reports__work") -> str:
    names = {uid: use.name for uid, use in uses(conversation).items()}
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    found = [row.value for row in rows if names[row.value.tool_use_id] == tool]
    assert len(found) == 1, "answered once"
    return text_of(found[0].content)


def test_a_skills_tool_reads_and_writes_by_calls_that_stand_in_the_log(converse, released, alice):
    body = """
found = call_tool("read_file", path="in.txt")
call_tool("write_file", path="out.txt", content=text + "!")
return {"read": "Hello" in found, "text": text}
"""
    released(files(body))
    conversation, _script = converse([], skills=[{"name": "reports"}])
    conversation = begun(converse, alice)
    place = workspace_for(conversation.uid)
    place.mkdir(parents=True, exist_ok=True)
    (place / "in.txt").write_text("Hello")
    rested(conversation)
    assert json.loads(result(conversation)) == {"read": True, "text": "go"}
    assert (place / "out.txt").read_text() == "go!"
    made = list(uses(conversation).values())
    assert [(use.name, use.depth) for use in made] == [
        ("skill__reports__work", 0),
        ("read_file", 1),
        ("write_file", 1),
    ]
    assert {use.within_tool for use in made[1:]} == {"skill__reports__work"}


def test_a_nested_call_that_asks_rests_the_run_and_the_skill_goes_on_by_replay(
    converse, released, alice
):
    body = """
call_tool("write_file", path="one.txt", content="1")
call_tool("edit_file", path="one.txt", old_text="1", new_text="2")
return call_tool("read_file", path="one.txt")
"""
    released(files(body, calls=("write_file", "edit_file", "read_file")))
    rules = (
        ToolRule(tool="*"),
        ToolRule(tool="edit_file", permission="always_ask"),
    )
    conversation = begun(converse, alice, tools=rules)
    rested(conversation)
    conversation.refresh_from_db()
    assert conversation.stop_reason == "requires_action"
    asked = next(uid for uid, use in uses(conversation).items() if use.name == "edit_file")
    place = workspace_for(conversation.uid) / "one.txt"
    place.write_text("1 by a person")  # what a second write_file would undo
    decide_call(actor=alice, conversation=conversation, call_uid=asked, allow=True)
    rested(conversation, 2)
    assert "2 by a person" in result(conversation)
    assert [use.name for use in uses(conversation).values()] == [
        "skill__reports__work",
        "write_file",
        "edit_file",
        "read_file",
    ]


def test_a_skill_that_asks_for_something_else_after_the_wait_is_stopped(converse, released, alice):
    body = """
import time
call_tool("read_file", path=str(time.time()))
call_tool("write_file", path="a.txt", content="1")
return "never"
"""
    released(
        files(
            body.replace('call_tool("read', '\ntry:\n    call_tool("read').replace(
                "time()))", "time()))\nexcept CallFailed:\n    pass"
            )
        )
    )
    rules = (ToolRule(tool="*"), ToolRule(tool="write_file", permission="always_ask"))
    conversation = begun(converse, alice, tools=rules)
    rested(conversation)
    asked = next(uid for uid, use in uses(conversation).items() if use.name == "write_file")
    decide_call(actor=alice, conversation=conversation, call_uid=asked, allow=True)
    rested(conversation, 2)
    assert "asks for other input for read_file" in result(conversation)


REACHES = {
    "the workspace": "import os; return str(os.listdir('/workspace'))",
    "its own files": "open('/skills/reports/more.txt', 'w')",
    "the network": "import urllib.request as u; u.urlopen('http://example.org', timeout=3)",
    "other processes": "import os, signal; os.kill(1, signal.SIGKILL); os.kill(2, 0); "
    "raise OSError('killed nobody')",
    "the server's data": "import os; return str(os.listdir(os.environ['AGENTSITE_DATA_DIR']))",
    "a module of ours": "import django",
    "the call's folder": "open('/run/skill-call/more', 'w')",
}


@pytest.mark.parametrize("reach", REACHES)
def test_the_process_of_a_skill_reaches_nothing_beyond_its_files(converse, released, alice, reach):
    released(files(REACHES[reach]))
    conversation = begun(converse, alice)
    rested(conversation)
    row = conversation.events.filter(type="agent.tool_result").last()
    assert row.value.is_error, text_of(row.value.content)
    assert "failed" in text_of(row.value.content) or "ended" in text_of(row.value.content)


@pytest.mark.parametrize(
    ("body", "policy", "words"),
    [
        ("while True: pass", {"seconds": 1}, "longer than its 1 seconds"),
        ("while True: pass", {"seconds": 20, "cpu_seconds": 1}, "ended without an answer"),
        ("return len('x' * 10 ** 9)", {"memory_mb": 64}, "emory"),
        ("import os; os._exit(3)", {}, "exit code 3"),
        ("return object()", {}, "not JSON serializable"),
        ("return 'x' * 2_000_000", {}, "bytes at once"),
        ("raise ValueError('No such table')", {}, "ValueError: No such table"),
    ],
)
def test_a_skill_that_goes_wrong_is_ended_with_the_reason(
    converse, released, alice, body, policy, words
):
    released(files(body, **policy))
    conversation = begun(converse, alice)
    rested(conversation)
    assert words in result(conversation)


@pytest.mark.parametrize(
    "line",
    [
        '{"result": "forged"}',
        '{"token": "guessed", "result": "forged"}',
        '{"token": null, "call": "write_file", "number": 1, "input": {}}',
        "not even JSON",
        "[]",
    ],
)
def test_what_does_not_know_the_secret_is_not_believed(converse, released, alice, line):
    released(files(f"open('/run/skill-call/up', 'w').write({line!r} + chr(10)); return 'mine'"))
    conversation = begun(converse, alice)
    rested(conversation)
    assert "does not come from the process" in result(conversation)
    assert len(uses(conversation)) == 1


def test_half_a_character_of_a_skill_reaches_no_event(converse, released, alice):
    body = r"""
call_tool("write_file", path="out.txt", content="a\ud800")
return {"half": "\ud800", "nul": "\0", "number": float("inf")}
"""
    released(files(body))
    conversation = begun(converse, alice)
    rested(conversation)
    said = {"half": "\ufffd", "nul": "\ufffd", "number": None}
    assert json.loads(result(conversation)) == said
    (made,) = (use for use in uses(conversation).values() if use.name == "write_file")
    assert made.input == {"path": "out.txt", "content": "a\ufffd"}


def test_a_tool_that_the_manifest_does_not_name_cannot_be_called(converse, released, alice):
    body = """
try:
    call_tool("bash", command="id")
except CallFailed as problem:
    return str(problem)
"""
    released(files(body))
    conversation = begun(converse, alice)
    rested(conversation)
    assert "does not say that it calls bash" in result(conversation)
    assert len(uses(conversation)) == 1


def test_a_skill_calls_the_tool_of_one_that_it_requires(converse, released, alice):
    shape = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    released(files("return {'sum': len(text)}", name="tables", calls=(), output=shape))
    body = "return call_skill('tables', 'work', text='abc')['sum'] + 1"
    released(files(body, calls=("skill__tables__work",), requires=("tables>=1",)))
    conversation = begun(converse, alice)
    rested(conversation)
    assert result(conversation) == "4"
    assert result(conversation, "skill__tables__work") == '{"sum": 3}'


def test_the_capacity_planner_that_we_ship_asks_the_error_budget_that_it_requires(
    converse, alice, acme
):
    seed()
    level = {"objective": 99, "window_days": 30, "elapsed_days": 15, "total": 1_000, "bad": 5}
    given = {"peak_rate": 420, "seconds": 0.18, "slots": 16, "instances": 9, "level": level}
    asks = reply(call("skill__capacity-planner__plan", **given))
    conversation, _script = converse([asks, reply("Done.")], skills=[{"name": "capacity-planner"}])
    post_message(actor=alice, conversation=conversation, text="Go")
    rested(conversation)
    found = json.loads(result(conversation, "skill__capacity-planner__plan"))
    assert found["needed_now"] == 9
    assert found["error_budget"] == {
        "allowed": 20.0,
        "used_share": 0.25,
        "burn_rate": 0.5,
        "days_left": 45.0,
    }


def test_an_answer_that_breaks_its_schema_is_an_error(converse, released, alice):
    shape = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    released(files("return {'sum': 'three'}", output=shape))
    conversation = begun(converse, alice)
    rested(conversation)
    assert "does not match its schema" in result(conversation)


def test_a_skill_that_was_stopped_makes_no_further_call(converse, released, alice):
    body = """
call_tool("write_file", path="a.txt", content="1")
return call_tool("read_file", path="a.txt")
"""
    version = released(files(body))
    rules = (ToolRule(tool="*"), ToolRule(tool="write_file", permission="always_ask"))
    conversation = begun(converse, alice, tools=rules)
    rested(conversation)
    kill_skill(actor=alice, skill=version.skill, reason="It fetches scripts.")
    asked = next(uid for uid, use in uses(conversation).items() if use.name == "write_file")
    decide_call(actor=alice, conversation=conversation, call_uid=asked, allow=True)
    rested(conversation, 2)
    assert "It fetches scripts." in result(conversation)
    assert "read_file" not in [use.name for use in uses(conversation).values()]


def test_nothing_is_left_of_the_line_when_a_call_is_over(converse, released, alice, settings):
    released(files("return 'done'"))
    conversation = begun(converse, alice)
    rested(conversation)
    assert result(conversation) == "done"
    assert list((Path(settings.AGENTSITE_DATA_DIR) / "skill-calls").iterdir()) == []


def test_a_skill_runs_only_in_what_its_environment_has_by_now(converse, released, alice):
    released(files("return 'done'"))
    hold = Hold()
    asks = reply(say(hold, "Hm."), call("skill__reports__work", text="go"))
    conversation, _script = converse([asks, reply("Done.")], skills=[{"name": "reports"}])
    post_message(actor=alice, conversation=conversation, text="Go")
    until(hold.reached.is_set)
    Environment.objects.update(backend="docker")  # which this server does not use
    hold.release.set()
    rested(conversation)
    assert "docker" in result(conversation)


def test_the_policy_of_a_skill_is_within_the_environments():
    wide = read_policy(
        """
network_policies: {web: {endpoints: [{host: example.org, port: 443}]}}
filesystem_policy: {read_only: [/usr, /srv/data], read_write: [/srv/out]}
resources: {memory_mb: 128, cpu_seconds: 5}
"""
    )
    asked = Exposes(policy=SkillPolicy(memory_mb=2_048, cpu_seconds=600))
    narrowed = policy_for(wide, asked)
    assert not narrowed.endpoints
    assert narrowed.filesystem_policy.read_write == ()
    assert "/srv/data" not in narrowed.filesystem_policy.read_only
    assert not narrowed.filesystem_policy.include_workdir
    assert (narrowed.resources.memory_mb, narrowed.resources.cpu_seconds) == (128, 5)
    assert narrowed.process.env_allow == ()


async def test_a_line_that_never_ends_is_cut(settings, tmp_path):
    settings.AGENTSITE_DATA_DIR = tmp_path
    channel = Channel()
    try:
        channel._held += b"x" * 1_000_001
        with pytest.raises(Forged):
            await channel.heard_already()
    finally:
        channel.close()
    assert not channel.folder.exists()


async def test_a_long_answer_is_read_while_others_go_on(settings, tmp_path):
    settings.AGENTSITE_DATA_DIR = tmp_path

    async def hear() -> None:
        channel = Channel()
        odd = {"token": channel._token, "result": ["\0", *([[]] * 90_000)]}
        line = json.dumps(odd).encode() + b"\n"

        def say() -> None:
            with (channel.folder / "up").open("wb") as up:
                up.write(line)

        try:
            _nothing, heard = await asyncio.gather(asyncio.to_thread(say), channel.hear())
            assert len(heard["result"]) == 90_001
        finally:
            channel.close()

    assert await longest_stall(hear) <= MOST_SECONDS


async def test_an_answer_of_more_parts_than_anybodys_is_none(settings, tmp_path):
    settings.AGENTSITE_DATA_DIR = tmp_path
    channel = Channel()
    try:
        channel._held += (
            json.dumps({"token": channel._token, "result": [[]] * 240_000}).encode() + b"\n"
        )
        with pytest.raises(Forged):
            await channel.heard_already()
    finally:
        channel.close()


def test_an_answer_that_is_dear_to_check_is_refused_while_others_go_on(converse, released, alice):
    body = """
value = {}
for _level in range(40):
    value = {"x": value}
return value
"""
    released(files(body, output=DEAR_SCHEMAS["twice at every level"]))
    asked: list[Conversation] = []
    bearable: list[bool] = []

    def ask() -> None:
        asked.append(begun(converse, alice))
        rested(asked[-1])

    async def work() -> None:
        stall = await longest_stall(partial(asyncio.to_thread, ask))
        bearable.append(await is_bearable(stall, times=2))

    engine.submit(work).result()
    assert bearable == [True], "as anything else in a run that just begins"
    assert all("too large or too entangled" in result(conversation) for conversation in asked)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Work"},
        {"name": "work", "entry": "../work.py:work"},
        {"name": "work", "entry": "work.sh:work"},
        {"name": "work", "input": {"type": "string"}},
        {"name": "work", "input": {"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}},
    ],
)
def test_a_manifest_that_names_no_sound_tool_is_refused(wrong):
    tool = {"description": "Works.", "entry": "scripts/work.py:work", **wrong}
    given = {**files("return 1"), "agentsite.yaml": json.dumps({"tools": [tool]}).encode()}
    if wrong["name"] == "work" and "pattern" in str(wrong):
        read_folder(given)  # linear patterns are all that the checker runs
        return
    with pytest.raises(Invalid):
        read_folder(given)


def test_a_tool_whose_file_is_missing_keeps_the_skill_from_being_published():
    given = files("return 1")
    del given["scripts/work.py"]
    assert any("scripts/work.py" in fault for fault in faults_of(read_folder(given)))
    long = "a" * 60
    named = Exposed(name="work", description="x", entry="a.py:b")
    assert len(named.called_in(long)) > 64
