"""Commands behind a slash: which are offered, where they lead, and that others may bring more."""

from __future__ import annotations

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from chat import commands
from chat.commands import Command, commands_of, offer, own_commands
from conversations.models import Conversation, Event
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin, talk


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent(), environment)


def test_commands_are_found_by_their_letters_and_lead_where_there_is_something(
    alice: User, mallory: User, conversation: Conversation, client_of: ClientOf
):
    address = f"{conversation.get_absolute_url()}commands/"
    assert client_of(mallory).get(address).status_code == 404
    client = client_of(alice)

    def offered(typed: str) -> list[str]:
        answer = client.get(address, {"q": typed}).json()["commands"]
        return [each["name"] for each in answer]

    assert offered("MOD") == ["model"]
    assert offered("re") == ["retry", "rename", "receipt"]
    assert offered("nothing like this") == []
    talk(conversation, "One", "Two")
    assert offered("re") == ["retry", "rewind", "rename", "receipt"]
    told = client.get(address).json()["commands"]
    for each in told:
        assert each["about"]
        ways = [each[way] for way in ("press", "address", "dialog", "text") if each[way]]
        assert len(ways) == 1, each
        if not each["press"]:
            assert client.get(ways[0]).status_code == 200, each
    last = Event.objects.get(conversation=conversation, type="user.message")
    assert f"/events/{last.uid}/" in {each["dialog"] for each in told}


def test_another_source_adds_to_them_and_takes_no_name_away(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commands, "_sources", [own_commands])

    def more(_conversation: Conversation) -> list[Command]:
        return [Command("plan", "A plan", text="Make a plan for "), Command("stop", "Mine")]

    offer(more)
    offer(more)
    found = {each.name: each for each in commands_of(conversation, conversation.owner)}
    assert found["plan"].text == "Make a plan for "
    assert found["stop"].press == "stop"
