"""What tests of learning begin with: a second script, which plays the model that reads conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.ids import new_id
from providers.scripted import Scripted, registered, reply, say
from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]

Reading = Callable[..., Scripted]


def learned(*learnings: dict[str, Any]) -> Any:
    """An answer of the model that reads."""
    return reply(say(json.dumps({"learnings": learnings})))


def fact(text: str, *, message: int = 1, **more: Any) -> dict[str, Any]:
    return {"kind": "fact", "text": text, "key": "", "message": message, **more}


@pytest.fixture
def reading(settings: Any) -> Iterator[Reading]:
    """Have conversations read by a model that answers so, however little is new in them."""
    settings.AGENTSITE_TITLE_MODELS = {}
    settings.AGENTSITE_LEARNING_CHARACTERS = 1
    with ExitStack() as open_scripts:

        def begin(*replies: Any) -> Scripted:
            name = new_id("reads")
            scripted = open_scripts.enter_context(registered(name, list(replies)))
            settings.AGENTSITE_LEARNING_MODELS = {"scripted": name}
            return scripted

        yield begin
