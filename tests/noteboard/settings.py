"""The site of the tests, with the board: all that is said of it outside its own folder."""

from __future__ import annotations

from agentsite.settings_test import *  # noqa: F403
from agentsite.settings_test import AGENTSITE_PAGES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.noteboard"]
AGENTSITE_PAGES = (*AGENTSITE_PAGES, "tests.noteboard")
