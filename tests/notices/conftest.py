"""What tests of these mails begin with."""

from tests.conversations.conftest import converse, environment, make_agent, still_engine

__all__ = ["converse", "environment", "make_agent", "still_engine"]
