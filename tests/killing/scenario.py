"""The conversation that is killed: text, parallel reads, a write, an effect outside that asks a person,
and a message that waits. The agent's replies depend on the request alone, so it survives restarts."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.test import Client

from accounts.actions.organisations import create_organisation
from accounts.models import User
from agents.models import Agent, AgentVersion, Environment
from conversations.actions.conversations import create_conversation
from conversations.models import Conversation
from harness.agentconfig import AgentConfig, ToolRule
from harness.content import Text
from harness.messages import ModelRequest, ToolAnswer
from harness.providers.scripted import Answer, call, reply

SCRIPT = "killed"
FIRST, SECOND = "Do the work.", "And a word more."
CALLS = ["list_files", "glob", "write_file", "count"]
WRITE = "write_file"
FILE, CONTENT = "result.txt", "done\n"
LAST_WORDS = {FIRST: "The work is done.", SECOND: "A word more."}


def answer(request: ModelRequest) -> Answer:
    parts = [part for message in request.messages for part in message.parts]
    if any(isinstance(part, Text) and part.text == SECOND for part in parts):
        return reply(LAST_WORDS[SECOND])
    answered = sum(isinstance(part, ToolAnswer) for part in parts)
    steps = {
        0: reply("I look first.", call("list_files"), call("glob", pattern="*")),
        2: reply("Now I write.", call(WRITE, path=FILE, content=CONTENT)),
        3: reply(call("count")),
    }
    return steps.get(answered, reply(LAST_WORDS[FIRST]))


def prepare() -> tuple[Conversation, str]:
    """People, agent and an empty conversation; with the session key of its owner."""
    alice = User.objects.create_user("alice", "alice@example.org", "secret")
    acme = create_organisation(actor=alice, name="Acme")
    agent = Agent.objects.create(name="Killed")
    config = AgentConfig(
        provider="scripted",
        model=SCRIPT,
        tools=(ToolRule(tool="*"), ToolRule(tool="count", permission="always_ask")),
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
    )
    browser = Client()
    browser.force_login(alice)
    return conversation, browser.cookies[settings.SESSION_COOKIE_NAME].value


def goes_back() -> bool:
    """Whether a person goes back and on at the end."""
    return bool(getattr(settings, "KILLING_BRANCHES"))  # noqa: B009 - known to the matrix only


def effects(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
