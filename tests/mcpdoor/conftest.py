"""The conversations that tests of the door for MCP clients use (`tests.conversations.conftest`)."""

from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]
