"""The conversations that tests of prompts begin with (`tests.conversations.conftest`), and one prompt."""

from __future__ import annotations

import pytest

from prompts.actions.prompts import create_prompt
from prompts.filling import Variable
from prompts.models import Prompt
from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]

TEXT = "Answer {{person}} of {{organisation}} in a {{tone}} tone. Leave {{braces}} alone."


@pytest.fixture
def tone(alice, acme) -> Prompt:
    """Of Acme, labelled production."""
    made: Prompt = create_prompt(
        actor=alice,
        organisation=acme,
        name="tone",
        text=TEXT,
        variables=[Variable(name="tone", default="kind")],
        label="production",
    )
    return made
