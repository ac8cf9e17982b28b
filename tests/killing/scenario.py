"""The conversation that is killed: text, parallel reads, a write, an effect outside that asks a person,
and a message that waits. The same write and effect may be made by a composed skill's tool, or the effect by a
tool of an MCP server, which asks a person before it does it. The agent's replies depend on the request alone,
so it survives restarts."""

from __future__ import annotations

import json
from pathlib import Path

from django.conf import settings
from django.test import Client

from accounts.actions.organisations import create_organisation
from accounts.models import Organisation, User
from agents.models import Agent, AgentVersion, Environment
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, McpUse, SkillUse, ToolRule
from harness.content import Text
from harness.messages import ModelRequest, ToolAnswer
from mcpservers.actions.servers import add_server
from mcpservers.asking import ASK
from mcpservers.models import McpServer
from providers.scripted import Answer, call, reply
from skills_app.actions.releases import ask_for_release, decide_release
from skills_app.actions.skills import create_skill
from tests.killing import analysis, tree

SCRIPT = "killed"
FIRST, SECOND = "Do the work.", "And a word more."
SKILL, COMPOSED = "filing", "skill__filing__file"
SERVER, REMOTE = "counter", "mcp__counter__count"
WRITE = "write_file"
FILE, CONTENT = "result.txt", "done\n"
SOURCE = f"""
from agentsite_skill import CallFailed, call_tool

def file():
    done = []
    for name, given in (
        ("list_files", {{}}),
        ("{WRITE}", {{"path": "{FILE}", "content": "done\\n"}}),
        ("count", {{}}),
    ):
        try:
            call_tool(name, **given)
        except CallFailed:  # it may have happened: whoever reads the answer looks
            continue
        done.append(name)
    return done
"""
LAST_WORDS = {FIRST: "The work is done.", SECOND: "A word more."}


SUMMARY = "It was looked, written and counted."


def answer(request: ModelRequest) -> Answer:
    if is_tree():
        return tree.answer(request)
    if is_analysis():
        return analysis.answer(request)
    if request.purpose == "compaction":
        return reply(SUMMARY)
    parts = [part for message in request.messages for part in message.parts]
    if any(isinstance(part, Text) and part.text == SECOND for part in parts):
        return reply(LAST_WORDS[SECOND])
    answered = sum(isinstance(part, ToolAnswer) for part in parts)
    if is_composed():
        return reply("By a skill.", call(COMPOSED)) if not answered else reply(LAST_WORDS[FIRST])
    steps = {
        0: reply("I look first.", call("list_files"), call("glob", pattern="*")),
        2: reply("Now I write.", call(WRITE, path=FILE, content=CONTENT)),
        3: reply(call("count")),
    }
    if is_mcp():
        where = getattr(settings, "KILLING_EFFECTS")  # noqa: B009 - known to the matrix only
        steps[3] = reply(call(REMOTE, where=where))
    return steps.get(answered, reply(LAST_WORDS[FIRST]))


def is_tree() -> bool:
    """Whether a lead has subagents do the work (`tests.killing.tree`)."""
    return bool(getattr(settings, "KILLING_TREE"))  # noqa: B009 - known to the matrix only


def is_analysis() -> bool:
    """Whether a document and the conversation are read in the background (`tests.killing.analysis`)."""
    return bool(getattr(settings, "KILLING_ANALYSIS"))  # noqa: B009 - known to the matrix only


def is_composed() -> bool:
    """Whether a composed skill does the work."""
    return bool(getattr(settings, "KILLING_COMPOSED"))  # noqa: B009 - known to the matrix only


def is_mcp() -> bool:
    """Whether a tool of an MCP server has the effect (`tests.killing.remote`)."""
    return bool(getattr(settings, "KILLING_MCP_URL"))  # noqa: B009 - known to the matrix only


def effect() -> str:
    """The tool that has it, which asks a person."""
    return REMOTE if is_mcp() else "count"


def calls() -> list[str]:
    """Those that are in the log at the end."""
    if is_mcp():
        return ["list_files", "glob", WRITE, REMOTE, ASK]
    if is_composed():
        return [COMPOSED, "list_files", WRITE, "count"]
    return ["list_files", "glob", WRITE, "count"]


def _release_skill(alice: User, acme: Organisation) -> None:
    tool = {"name": "file", "description": "Files a result.", "entry": "file.py:file"}
    manifest = {"tools": [tool], "calls": ["list_files", WRITE, "count"]}
    head = f"---\nname: {SKILL}\ndescription: Files results.\n---\n\nCall its tool.\n"
    files = {
        "SKILL.md": head.encode(),
        "agentsite.yaml": json.dumps(manifest).encode(),
        "file.py": SOURCE.encode(),
    }
    version = create_skill(actor=alice, organisation=acme, files=files)
    ask_for_release(actor=alice, version=version)
    decide_release(actor=alice, version=version, approve=True)


def prepare() -> tuple[Conversation, str]:
    """People, agent and an empty conversation; with the session key of its owner."""
    alice = User.objects.create_user("alice", "alice@example.org", "secret")
    acme = create_organisation(actor=alice, name="Acme")
    if is_composed():
        _release_skill(alice, acme)
    if is_mcp():
        server = add_server(
            actor=alice,
            organisation=acme,
            scope=McpServer.Scope.ORGANISATION,
            name=SERVER,
            url=getattr(settings, "KILLING_MCP_URL"),  # noqa: B009 - known to the matrix only
        )
        if server.last_error:
            raise RuntimeError(server.last_error)
    agent = Agent.objects.create(name="Killed")
    config = AgentConfig(
        provider="scripted",
        model=SCRIPT,
        tools=(ToolRule(tool="*"), ToolRule(tool="count", permission="always_ask")),
        skills=(SkillUse(name=SKILL),) if is_composed() else (),
        mcp_servers=(McpUse(name=SERVER),) if is_mcp() else (),
    )
    agent.current = AgentVersion.objects.create(
        agent=agent, number=1, stored_config=config.model_dump(mode="json")
    )
    agent.save(update_fields=["current"])
    conversation = create_conversation(
        actor=alice,
        organisation=acme,
        agent=agent,
        environment=Environment.objects.create(name="Own workspace"),
        features={"teams": is_tree()},
    )
    if is_analysis():
        analysis.prepare(conversation)
    browser = Client()
    browser.force_login(alice)
    return conversation, browser.cookies[settings.SESSION_COOKIE_NAME].value


def goes_back() -> bool:
    """Whether a person goes back and on at the end."""
    return bool(getattr(settings, "KILLING_BRANCHES"))  # noqa: B009 - known to the matrix only


def compacts() -> bool:
    """Whether a person asks for a summary at the end."""
    return bool(getattr(settings, "KILLING_COMPACTION"))  # noqa: B009 - known to the matrix only


def happened(call_uid: str, told: list[str]) -> bool:
    """Whether a person who looks finds that the effect of a call happened."""
    return bool(told) if is_mcp() else call_uid in told


def effects(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
