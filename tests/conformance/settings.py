"""The site with the official runner's fixtures mounted at `/mcp`, and with its token shown for it.

The runner presents no token of its own; `admitting` shows one in its place, so that all behind is as always.
"""

from __future__ import annotations

from agentsite.settings import *  # noqa: F403
from agentsite.settings import INSTALLED_APPS, MIDDLEWARE

INSTALLED_APPS = [*INSTALLED_APPS, "tests.conformance.fixtures"]
MIDDLEWARE = ["tests.conformance.admitting.admitted", *MIDDLEWARE]
