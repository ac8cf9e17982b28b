"""Conversations with scripts, leads with subagents, and a collector on the loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conversations.conftest import converse, environment, make_agent
from tests.standins.collector import Collector

__all__ = ["converse", "environment", "make_agent"]


@pytest.fixture
def collector(settings) -> Iterator[Collector]:
    made = Collector()
    settings.AGENTSITE_OTLP_ENDPOINT = made.address
    settings.AGENTSITE_OTLP_HEADERS = {"authorization": "Bearer abc"}
    yield made
    made.stop()
