"""What tests of a person's own data begin with."""

from tests.conversations.conftest import converse, environment, make_agent

__all__ = ["converse", "environment", "make_agent"]
