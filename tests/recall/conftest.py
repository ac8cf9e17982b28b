"""What tests of memory in conversations begin with."""

from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]
