"""The cast of conversations, on a site that has the board."""

from __future__ import annotations

from tests.conversations.conftest import *  # noqa: F403
