"""What tests of a conversation's skills begin with."""

from tests.conversations.conftest import converse, environment, make_agent
from tests.sandbox.conftest import needs_bubblewrap
from tests.skills_app.conftest import released

__all__ = ["converse", "environment", "make_agent", "needs_bubblewrap", "released"]
