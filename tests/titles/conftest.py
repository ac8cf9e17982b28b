"""What tests of titles begin with: a second script, which plays the model that names conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.ids import new_id
from providers.scripted import Scripted, registered
from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]

Naming = Callable[..., Scripted]


@pytest.fixture
def naming(settings: Any) -> Iterator[Naming]:
    """Have conversations named by the given replies."""
    with ExitStack() as open_scripts:

        def begin(*replies: Any) -> Scripted:
            name = new_id("titles")
            scripted = open_scripts.enter_context(registered(name, list(replies)))
            settings.AGENTSITE_TITLE_MODELS = {"scripted": name}
            return scripted

        yield begin
