"""The conversations that tests of boards and teams begin with (`tests.conversations.conftest`)."""

from __future__ import annotations

import pytest

from accounts.models import Organisation, User
from agents.models import Environment
from conversations.models import Conversation
from teams_app.boards import board_of, stored
from teams_app.models import Board
from tests.conversations.conftest import MakeAgent, converse, environment, make_agent
from tests.conversations.scenes import begin

__all__ = ["converse", "environment", "make_agent"]


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, make_agent: MakeAgent, environment: Environment
) -> Conversation:
    return begin(alice, acme, make_agent("Lead", provider="demo"), environment, title="The move")


def home(board: Board) -> Conversation:
    """The conversation whose board it is."""
    assert board.conversation is not None
    return board.conversation


@pytest.fixture
def board(conversation: Conversation) -> Board:
    return stored(board_of(conversation))
