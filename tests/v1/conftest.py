"""The conversations that tests of v1 begin with (`tests.conversations.conftest`)."""

from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]
