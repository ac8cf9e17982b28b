"""The conversations that tests of workers begin with (`tests.conversations.conftest`), in an environment
whose tools workers carry out."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User
from agents.models import Environment
from conversations.actions.messages import post_message
from conversations.models import Conversation
from tests.conversations.conftest import Converse, converse, make_agent, rested
from workers.actions.keys import create_key
from workers.models import EnvironmentKey

__all__ = ["converse", "make_agent"]


@pytest.fixture
def environment(db) -> Environment:
    return Environment.objects.create(name="Our machines", backend=Environment.Backend.WORKER)


@pytest.fixture
def key(staff: User, environment: Environment) -> EnvironmentKey:
    return create_key(actor=staff, environment=environment, name="worker one").key


@pytest.fixture
def begin(alice: User, converse: Converse):
    """A conversation of alice's, at rest after its first steps."""

    def start(*script: Any, **config: Any) -> Conversation:
        conversation, _ = converse(list(script), **config)
        post_message(actor=alice, conversation=conversation, text="Go.")
        rested(conversation)
        return conversation

    return start
