"""A turn that fails for its key says who can mend it, to a person who cannot."""

from __future__ import annotations

import pytest

from conversations.actions.conversations import create_conversation
from conversations.actions.messages import post_message
from conversations.models import Event
from tests.conversations.conftest import rested


@pytest.mark.django_db(transaction=True)
def test_a_turn_without_a_key_names_who_can_store_one(
    alice, bob, acme, environment, make_agent, settings
):
    settings.AGENTSITE_PROVIDER_KEYS = {}
    agent = make_agent(provider="anthropic", model="claude-sonnet-5-5")

    def hint(person) -> str:
        begun = create_conversation(
            actor=person, organisation=acme, agent=agent, environment=environment
        )
        post_message(actor=person, conversation=begun, text="Hello")
        rested(begun)
        error = Event.objects.get(conversation=begun, type="session.error").payload["error"]
        assert error["code"] == "not_configured"
        return str(error["hint"])

    assert hint(bob).endswith("alice can store one for everybody in Acme.")
    assert "alice" not in hint(alice)
