"""What tests of documents begin with."""

from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]
