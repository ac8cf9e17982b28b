"""web_fetch in a real run: the conversation's environment decides where it may go."""

from __future__ import annotations

import pytest

from accounts.models import User
from agents.models import Environment
from conversations.actions.messages import post_message
from harness.content import text_of
from providers.scripted import call, reply
from tests.conversations.conftest import Converse, rested

pytestmark = pytest.mark.django_db(transaction=True)

LISTED = """
network_policies:
  inside:
    endpoints:
      - {host: 127.0.0.1, port: 80}
"""


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("", "127.0.0.1 is not listed in network_policies"),
        (LISTED, "it is an address of this machine"),
    ],
)
def test_the_environments_list_and_what_no_list_opens(
    alice: User, environment: Environment, converse: Converse, policy: str, reason: str
):
    environment.policy = policy
    environment.save(update_fields=["policy"])
    conversation, _ = converse(
        [reply(call("web_fetch", url="http://127.0.0.1/")), reply("I could not.")]
    )
    post_message(actor=alice, conversation=conversation, text="Fetch it.")
    rested(conversation)
    result = conversation.events.get(type="agent.tool_result").value
    assert result.is_error
    assert reason in text_of(result.content)
